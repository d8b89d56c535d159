"""How many events a second does a live run take from NATS, and how long after an event does its detection leave?

One message an event, a detection every other event. Throughput is that of CPU time of the run with its client; latency is
measured with a publisher in a process of its own that keeps a constant rate, from the time that it wrote into the event to that
at which the detection is written."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nats

from benchmarks.measure import show
from coincide import Engine, loads
from coincide.engines.live import LiveEngine
from coincide.streams.base import Made, Reading, Sink
from coincide.streams.encode import Encoder
from coincide.streams.natswire import Wire
from coincide.streams.registry import open_source
from coincide.streams.run import LiveRun, Pace

EVENTS = 100_000
RATE = 20_000
SECONDS = 5
RULES = "monitor pairs by door = repeat { push(pair, sent: sent) { sequential { open, close } } }"


class Clocked(Sink):
    """Notes how long after its event each detection comes; stops the run when there are enough."""

    def __init__(self, enough: int) -> None:
        super().__init__("clocked")
        self.latencies: list[float] = []
        self.enough = enough
        self.run: LiveRun | None = None

    def write(self, made: Sequence[Made]) -> None:
        now = time.time()
        self.latencies += [now - json.loads(each.line)["sent"] for each in made]
        if len(self.latencies) >= self.enough and self.run is not None:
            self.run.stop()

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def broker() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        server = [str(Path(sys.executable).parent / "nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(1)
            yield f"127.0.0.1:{port}"
            process.kill()


def message(number: int) -> bytes:
    kind = ("open", "close")[number // 20 % 2]
    return json.dumps({"type": kind, "time": number * 0.01, "door": f"d{number % 20}", "sent": time.time()}).encode()


def publish(address: str, subject: str, count: int, rate: float) -> None:
    """At a constant rate, a few every millisecond; 0: as fast as can be. A thin client: the publisher shares the machine."""
    asyncio.run(_make_stream(address, subject))
    host, _, port = address.partition(":")
    wire = Wire(host, int(port), {}, None, 5.0)
    begun, number = time.time(), 0
    while number < count:
        some = min(count, int((time.time() - begun) * rate) if rate else number + 500)
        if some > number:
            messages = [message(n) for n in range(number, some)]
            wire.send(b"".join(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(each), each) for each in messages))
            number = some
        if rate:
            time.sleep(0.001)
        else:
            wire.publish(subject, message(number), wire.inbox)  # an acknowledgement, so that the server does not fall behind
            number += 1
    wire.send(b"PING\r\n")
    while wire.read(1.0):
        wire.taken()
    wire.close()


async def _make_stream(address: str, subject: str) -> None:
    client = await nats.connect(f"nats://{address}")
    await client.jetstream().add_stream(name=subject, subjects=[subject])
    await client.close()


def measured(address: str, subject: str, count: int) -> tuple[list[float], float]:
    sink = Clocked(count // 2)
    book = loads(RULES)
    source = open_source(f"nats://{address}/{subject}?stream={subject}", Reading())
    begun = time.process_time()
    run = LiveRun(LiveEngine(Engine(book)), [source], [sink], Encoder(book), Pace(latency=0.005))
    sink.run = run
    for _ in run.detections():
        pass
    run.close()
    return sink.latencies, time.process_time() - begun


def main() -> None:
    figures = {}
    with broker() as address:
        publish(address, "WHOLE", EVENTS, 0)
        measured(address, "WHOLE", EVENTS)  # imports, and compiles what is not compiled yet
        _, taken = measured(address, "WHOLE", EVENTS)
        figures["from a full stream"] = f"{EVENTS / taken:,.0f} events/s"
        count = RATE * SECONDS
        work = multiprocessing.get_context("spawn").Process(target=publish, args=(address, "RATE", count, RATE))
        work.start()
        time.sleep(2)  # until it has begun
        latencies, taken = measured(address, "RATE", count)
        work.join()
        later = sorted(latencies[len(latencies) // 2 :])  # once what was there at the beginning is dealt with
        figures[f"at {RATE:,} events/s: CPU"] = f"{taken / SECONDS:.0%} of a core"
        figures["latency, median"] = f"{later[len(later) // 2] * 1000:.1f} ms"
        figures["latency, 99 %"] = f"{later[int(len(later) * 0.99)] * 1000:.1f} ms"
    show("Live, from NATS", figures, "50,000 events/s, 99 % < 50 ms")


if __name__ == "__main__":
    main()
