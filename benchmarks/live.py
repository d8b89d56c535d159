"""How many events a second does a live run take from NATS, and how long after an event does its detection leave?

One message an event, a detection every other event. Throughput is that of CPU time of the run with its client. Latency is
measured with a publisher in a process of its own that keeps a constant rate, with checkpoints and without: from the time that the
publisher wrote into the event to that at which the detection is written, and within that from the time at which the run had read
it. On a machine that does other things, too, the first is mostly that of the scheduler; the second is what the run takes."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import nats

from benchmarks.measure import show
from coincide import Engine, loads
from coincide.engines.live import LiveEngine
from coincide.model.batch import EventBatch
from coincide.streams.base import Made, Reading, Sink
from coincide.streams.encode import Encoder
from coincide.streams.nats import NatsSource
from coincide.streams.natswire import Wire
from coincide.streams.process import prepare
from coincide.streams.run import LiveRun, Pace

EVENTS = 100_000
RATES = (20_000, 50_000)
SECONDS = 16
RULES = "monitor pairs by door = repeat { push(pair, sent: sent, number: number) { sequential { open, close } } }"


class Read(NatsSource):
    """Notes when how many messages had been read."""

    def __init__(self, url: str) -> None:
        super().__init__(url, Reading())
        self.counts: list[int] = [0]
        self.times: list[float] = [0.0]

    def events(self, messages: Sequence[bytes], name: str) -> EventBatch:
        self.counts.append(self.counts[-1] + len(messages))
        self.times.append(time.time())
        return super().events(messages, name)


@dataclass
class Seen:
    """What was measured: for each detection the seconds since its event was sent and since it was read; and of the process, its
    CPU time and the longest time that it spent collecting garbage."""

    since_sent: list[float] = field(default_factory=list)
    since_read: list[float] = field(default_factory=list)
    cpu: float = 0.0
    collecting: float = 0.0


class Clocked(Sink):
    """Notes when each detection comes, and looks at it later; stops the run when there are enough."""

    def __init__(self, enough: int) -> None:
        super().__init__("clocked")
        self.left = enough
        self.written: list[tuple[float, list[bytes]]] = []
        self.run: LiveRun | None = None

    def write(self, made: Sequence[Made]) -> None:
        self.written.append((time.time(), [each.line for each in made]))
        self.left -= len(made)
        if self.left <= 0 and self.run is not None:
            self.run.stop()

    def look(self, seen: Seen, source: Read) -> None:
        for at, lines in self.written:
            for said in map(json.loads, lines):
                seen.since_sent.append(at - said["sent"])
                seen.since_read.append(at - source.times[bisect_left(source.counts, said["number"])])

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
            try:
                yield f"127.0.0.1:{port}"
            finally:
                process.kill()


def message(number: int) -> bytes:
    kind, door, sent = ("open", "close")[number // 20 % 2], number % 20, time.time()
    return b'{"type":"%s","time":%.2f,"door":"d%d","sent":%.6f,"number":%d}' % (
        kind.encode(),
        number * 0.01,
        door,
        sent,
        number + 1,
    )


def publish(address: str, subject: str, count: int, rate: float) -> None:
    """To a stream that is there, at a constant rate, a few every millisecond; 0: as fast as can be. A thin client: the publisher
    shares the machine."""
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


def stream_of(address: str, subject: str, **limits: int) -> None:
    """Makes a stream of a subject, which has the subject's name."""

    async def make() -> None:
        client = await nats.connect(f"nats://{address}")
        await client.jetstream().add_stream(name=subject, subjects=[subject], **limits)
        await client.close()

    asyncio.run(make())


@contextmanager
def collections(seen: Seen) -> Iterator[None]:
    """The longest collection of garbage meanwhile."""
    begun = 0.0

    def note(phase: str, _: object) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.perf_counter()
        else:
            seen.collecting = max(seen.collecting, time.perf_counter() - begun)

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


def measured(address: str, subject: str, count: int, folder: Path | None = None) -> Seen:
    book = loads(RULES)
    source = Read(f"nats://{address}/{subject}?stream={subject}")
    sink, seen = Clocked(count // 2), Seen()
    begun = time.process_time()
    with collections(seen):
        run = LiveRun(
            LiveEngine(Engine(book)), [source], [sink], Encoder(book, kept=folder is not None), Pace(latency=0.005), folder
        )
        sink.run = run
        for _ in run.detections():
            pass
        run.close()
    seen.cpu = time.process_time() - begun
    sink.look(seen, source)
    return seen


def at_a_rate(address: str, subject: str, rate: int, folder: Path | None = None) -> Seen:
    """While somebody publishes. The first half is left out: until all is compiled and warm."""
    count = rate * SECONDS
    stream_of(address, subject)
    work = multiprocessing.get_context("spawn").Process(target=publish, args=(address, subject, count, rate), daemon=True)
    work.start()
    seen = measured(address, subject, count, folder)
    work.join()
    return seen


def spread(seconds: Sequence[float]) -> str:
    later = sorted(seconds[len(seconds) // 2 :])
    return f"{later[len(later) // 2] * 1000:.1f} ms, 99 % {later[int(len(later) * 0.99)] * 1000:.1f} ms"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks live")
    parser.add_argument("--rate", type=int, action="append", help="events a second, as often as you like")
    rates = parser.parse_args(arguments or []).rate or RATES
    figures = {"load of the machine": f"{os.getloadavg()[0]:.1f}"}
    prepare()
    with broker() as address:
        stream_of(address, "WHOLE")
        publish(address, "WHOLE", EVENTS, 0)
        measured(address, "WHOLE", EVENTS)  # imports, and compiles what is not compiled yet
        seen = measured(address, "WHOLE", EVENTS)
        figures["from a full stream"] = f"{EVENTS / seen.cpu:,.0f} events/s"
        for rate, name in product(rates, ("without", "with")):
            with tempfile.TemporaryDirectory() as folder:
                subject = f"{name}-{rate}".upper()
                seen = at_a_rate(address, subject, rate, Path(folder) / "kept" if name == "with" else None)
            figures[f"at {rate:,} events/s, {name} checkpoints: CPU"] = f"{seen.cpu / SECONDS:.0%} of a core"
            figures[f"  {name}: from sent to written, median"] = spread(seen.since_sent)
            figures[f"  {name}: from read to written, median"] = spread(seen.since_read)
            figures[f"  {name}: longest collection of garbage"] = f"{seen.collecting * 1000:.1f} ms"
    show("Live, from NATS", figures, "50,000 events/s, 99 % < 50 ms")


if __name__ == "__main__":
    main(sys.argv[1:])
