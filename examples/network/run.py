"""A network of five nodes: a composite event is detected in parts, one node is killed, and nothing is lost.

python examples/network/run.py [FOLDER]     FOLDER: where the picture goes (default: demo-output)"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.policies import PolicyEngine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.network.client import Network, Subscriber
from coincide.network.status import tables
from coincide.rulebook import loads

NODES = ("lobby", "stairs", "hall", "lab", "gate")
EXPR = "(([badge] ; [login]) | [alarm]) ; [logout]"
COINCIDE = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
TYPES = ("badge", "login", "alarm", "logout")


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as store:
        port = _free_port()
        server = [str(Path(sys.executable).parent / "nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", store]
        started = {"broker": subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)}
        try:
            _until(lambda: _listens(port))
            url = f"nats://127.0.0.1:{port}"
            print(f"A broker at {url}, and five nodes:")
            for name in NODES:
                print(f"    coincide node --broker {url} --name {name}")
                command = [*COINCIDE, "node", "--broker", url, "--name", name, "--beat", "0.2", "--keep-every", "1"]
                started[name] = subprocess.Popen(command)
            with Network(url) as network:
                return _show(network, url, started, folder)
        finally:
            for process in started.values():
                process.kill()
                process.wait()


def _show(network: Network, url: str, started: dict[str, Any], folder: Path) -> int:
    _until(lambda: sum(member.alive for member in network.status().members.values()) == len(NODES))
    network.command("set", "*", "patience=2s")
    sources = [network.publisher("door", "lobby"), network.publisher("desk", "lab")]
    for source in sources:
        source.announce(*TYPES)
    print(f"\n    coincide subscribe '{EXPR}' --policy minimum-load --node gate --broker {url}\n")
    subscriber = network.subscribe(EXPR, "minimum-load", detection="guaranteed", node="gate")
    _until(lambda: all(detector.ready for detector in network.status().detectors.values()))
    print(tables(network.status()))
    picture = folder / "network.svg"
    picture.write_text(network.drawing(), encoding="utf-8")
    print(f"drawn in {picture}\n")
    _publish(sources, 500)
    victim = next(iter(network.status().detectors.values())).node
    print(f"{victim} is killed (kill -9), while events come")
    started[victim].send_signal(signal.SIGKILL)
    _publish(sources, 500)
    _until(lambda: all(detector.ready and detector.node != victim for detector in network.status().detectors.values()))
    _publish(sources, 500)
    for source in sources:
        source.heartbeat(time.time_ns() // 1_000_000 + 60_000)
        source.flush()
    print()
    print(tables(network.status()))
    return _compare(network, subscriber)


def _publish(sources: list[Any], count: int) -> None:
    for _ in range(count):
        time.sleep(0.001)
        random.choice(sources).publish({"type": random.choice(TYPES), "time": time.time_ns() // 1_000_000})


def _compare(network: Network, subscriber: Subscriber) -> int:
    """What the network has detected, and what one process would have detected of the same arrivals."""
    arrivals = _arrivals(network, subscriber.subscription.since)
    engine = PolicyEngine(loads(f"sources door, desk\ndetect X = {EXPR}", "opera"), "guaranteed")
    wanted = [_content(record(d)) for run in engine.process(EventBatch(arrivals)) for d in run.detections]
    found: list[bytes] = []
    with suppress(SystemExit):  # what does not come is told as lost
        _until(lambda: found.extend(map(_content, subscriber.take())) or len(found) >= len(wanted))
    time.sleep(1.0)
    found.extend(map(_content, subscriber.take()))
    events = sum(event.type in TYPES for event in arrivals)
    lost, doubled = len(set(wanted) - set(found)), len(found) - len(set(found))
    print(f"{events:,} events, {len(found):,} detections, of one process {len(wanted):,}: {lost} lost, {doubled} doubled")
    return 0 if sorted(found) == sorted(wanted) else 1


def _arrivals(network: Network, since: int) -> list[Event]:
    reader = network.broker.open([network.subjects.every_event], since)
    _until(lambda: reader.caught_up)
    return [
        msgspec.structs.replace(event_of(msgspec.json.decode(m.data), DEFAULT, m.number), arrival=m.time) for m in reader.take()
    ]


def _content(detection: dict[str, Any]) -> bytes:
    return msgspec.json.encode([detection["time"], detection["from"]])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _until(done: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise SystemExit("the network does not answer")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")))
