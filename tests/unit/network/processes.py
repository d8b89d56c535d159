"""Processes of a network for tests: a broker, nodes, applications. Whatever is started ends with the test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Event as Flag
from threading import Thread
from typing import Any

import msgspec

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.policies import PolicyEngine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.network.client import Network, Subscriber
from coincide.network.directory import State
from coincide.rulebook import loads

PATIENCE = 180.0
SERVER = str(Path(sys.executable).parent / "nats-server")
PROGRAM = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until(done: Callable[[], object], what: str = "it did not happen", seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Processes:
    """A broker with its store, and what was started beside it."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.folder, self._options, self.environment = folder, options, environment
        self.port, self.leaves = free_port(), free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._networks: list[Network] = []
        self.start_broker()

    def start_broker(self) -> None:
        configuration = self.folder / "broker.conf"
        configuration.write_text(
            f'jetstream {{ store_dir: "store", domain: "hub" }}\nleafnodes {{ listen: "127.0.0.1:{self.leaves}" }}\n'
        )
        store = self._options or ("-c", str(configuration))
        self.start("broker", [SERVER, "-a", "127.0.0.1", "-p", str(self.port), *store])
        until(lambda: listens(self.port), "the broker does not listen")

    def start_node(self, name: str, *more: str, url: str = "", program: Sequence[str] = PROGRAM) -> None:
        pace = ["--beat", "0.2", "--keep-every", "0.5"]
        self.start(name, [*program, "node", "--broker", url or self.url, "--name", name, *pace, *more])

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def interrupt(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)

    def network(self) -> Network:
        self._networks.append(Network(self.url))
        return self._networks[-1]

    def stop(self) -> None:
        for network in self._networks:
            with suppress(Exception):
                network.broker._outgoing.clear()
                network.close()
        for name in list(self.running):
            self.kill(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start(self, name: str, command: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **self.environment}
            )


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def alive(network: Network, *names: str) -> bool:
    members = network.status().members
    return all(name in members and members[name].alive for name in names)


def ready(network: Network) -> bool:
    state: State = network.status()
    return all(detector.ready for detector in state.detectors.values())


class Link:
    """A connection to the broker that can be cut: what is sent meanwhile is lost, and the ends are not told. `delay`: seconds."""

    def __init__(self, port: int, delay: float = 0.0) -> None:
        self._target, self._delay = port, delay
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self._whole = Flag()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        """Connections of before are gone: both ends have to begin anew."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()
        self._whole.set()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            self._whole.wait()
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # the broker is not there any more
                near.close()
                continue
            self._sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                Thread(target=self._forward, args=(a, b), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                time.sleep(self._delay)
                if self._whole.is_set():
                    target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Feed:
    """Publishes events of two sources, and knows what the embedded engine makes of them as they came."""

    def __init__(self, network: Network, expr: str, types: Sequence[str] = ("A", "B", "C")) -> None:
        self.network, self.expr, self.types = network, expr, types
        self.sources = [network.publisher(name) for name in ("s", "t")]
        self.random = Random(7)
        self.count = 0
        for source in self.sources:
            source.announce(*types)

    def publish(self, count: int, pause: float = 0.002, late: int = 0) -> None:
        for _ in range(count):
            self.count += 1
            source, now = self.random.choice(self.sources), time.time_ns() // 1_000_000 - late
            source.publish({"type": self.random.choice(self.types), "id": f"e{self.count}", "time": now})
            time.sleep(pause)

    def end(self) -> None:
        """All sources have passed everything."""
        for source in self.sources:
            source.heartbeat(time.time_ns() // 1_000_000 + 10_000)
            source.flush()

    def arrivals(self, since: int) -> list[Event]:
        reader = self.network.broker.open([self.network.subjects.every_event], since)
        found: list[Event] = []
        until(lambda: reader.caught_up, "the stream cannot be read")
        for message in reader.take():
            event = event_of(msgspec.json.decode(message.data), DEFAULT, message.number)
            found.append(msgspec.structs.replace(event, arrival=message.time))
        reader.close()
        return found

    def expected(self, since: int, detection: str) -> list[str]:
        """The embedded engine's answer to the same arrivals."""
        engine = PolicyEngine(loads(f"sources s, t\ndetect X = {self.expr}", "opera"), detection)
        events = self.arrivals(since)
        assert len([e for e in events if e.type != "heartbeat"]) == self.count, "events were lost or doubled"
        made = [d for run in engine.process(EventBatch(events)) for d in run.detections]
        return sorted(content(record(d)) for d in made)


def content(detection: dict[str, Any]) -> str:
    return msgspec.json.encode([detection["time"], detection["from"]]).decode()


def answers(subscriber: Subscriber, wanted: int, seconds: float = PATIENCE) -> list[str]:
    """So many detections, and then none more."""
    found: list[dict[str, Any]] = []
    until(lambda: found.extend(subscriber.take()) or len(found) >= wanted, f"{wanted} detections do not come", seconds)
    time.sleep(0.5)
    found.extend(subscriber.take())
    return sorted(content(each) for each in found)
