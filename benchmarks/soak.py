"""Does a service that runs for long keep its memory, and keep up?

`python -m benchmarks soak --minutes 30 --rate 20000`: `coincide serve` reads a stream of NATS to which a process publishes at a
constant rate, with checkpoints, a delay, absence that ends by the clock, and events that come too late. Every few seconds its
memory and its own metrics are looked at; in the end there is what they were at the beginning, once it was warm and at the
end, and by how much memory grew a minute."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.live import broker, stream_of
from benchmarks.measure import show
from coincide.streams.natswire import Wire

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
MONITORS = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }\n"
PATTERNS = "detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 20s\n"
DOORS = 20_000
RARE, LATE = 5, 50_000
"""One event in so many is of a type that rules read; one in so many comes ten seconds too late."""
WARM = 60.0
"""Seconds, or a fifth of the time: until all is compiled, and as many keys and detections are remembered as ever will be."""
EVERY = 5.0


class Sample(NamedTuple):
    """Seconds from the start, MiB of memory, and what the service tells of itself."""

    at: float
    memory: float
    metrics: dict[str, float]


def message(number: int) -> bytes:
    """A door is opened, and soon closed: but for one in a hundred."""
    door = (number // (2 * RARE)) % DOORS
    kind = (b"open", b"close" if door % 100 else b"ping")[number // RARE % 2] if number % RARE == 0 else b"ping"
    time_of = time.time() * 1000 - (10_000 if number % LATE == LATE - 1 else 0)
    return b'{"type":"%s","time":%d,"door":"d%d","value":%d}' % (kind, time_of, door, number)


def publish(address: str, subject: str, count: int, rate: float, paused: Any) -> None:
    """At a constant rate. `paused` gets the longest time for which it could not: what was to be told then comes late by it."""
    host, _, port = address.partition(":")
    wire = Wire(host, int(port), {}, None, 5.0)
    begun, number = time.monotonic(), 0
    before = begun
    while number < count:
        now = time.monotonic()
        paused.value, before = max(paused.value, now - before), now
        some = min(count, int((now - begun) * rate))
        frames = [b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(each), each) for each in map(message, range(number, some))]
        if frames:
            wire.send(b"".join(frames))
        number = some
        wire.read(0.001)  # what the server asks is answered
    wire.flush(30.0)
    wire.close()


class Service:
    """`coincide serve`, as a user starts it."""

    def __init__(self, folder: Path, address: str) -> None:
        rules = folder / "rules"
        rules.mkdir()
        (rules / "pairs.ecl").write_text(MONITORS)
        (rules / "left.ce").write_text(PATTERNS)
        options = [
            "--out",
            folder / "found.jsonl",
            "--checkpoint",
            folder / "kept",
            "--delay",
            "100ms",
            "--listen",
            "127.0.0.1:0",
        ]
        command = [*RUN, "serve", rules, "--events", f"nats://{address}/IN?stream=IN", *options]
        self._log = folder / "log"
        with self._log.open("wb") as written:
            self.process = subprocess.Popen([*map(str, command)], stderr=written)
        while not (found := re.search(r'"address": ?"([^"]+)"', self._log.read_text(encoding="utf-8"))):
            self._check()
            time.sleep(0.1)
        self._url = found[1]

    def _check(self) -> None:
        if (code := self.process.poll()) is not None:
            raise RuntimeError(f"it has ended ({code}):\n{self._log.read_text(encoding='utf-8')[-4000:]}")

    def look(self, begun: float) -> Sample:
        self._check()
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=30) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line and not line.startswith("#")]
        return Sample(
            time.monotonic() - begun, memory, {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines)}
        )

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def slope(samples: list[Sample]) -> float:
    """MiB a minute, by least squares."""
    if len(samples) < 2:
        return 0.0
    times, sizes = [s.at / 60 for s in samples], [s.memory for s in samples]
    middle, mean = sum(times) / len(times), sum(sizes) / len(sizes)
    above = sum((t - middle) * (s - mean) for t, s in zip(times, sizes, strict=True))
    return above / sum((t - middle) ** 2 for t in times)


def total(sample: Sample, name: str) -> float:
    return sum(value for label, value in sample.metrics.items() if label.partition("{")[0] == name)


def soaked(minutes: float, rate: int) -> tuple[list[Sample], int, float, int]:
    """Samples, the events that were published, the longest pause of who did, and the exit code of the service."""
    count = int(minutes * 60 * rate)
    with broker() as address, tempfile.TemporaryDirectory() as folder:
        stream_of(address, "IN", max_msgs=150 * rate)
        service = Service(Path(folder), address)
        try:
            context = multiprocessing.get_context("spawn")
            paused = context.Value("d", 0.0)
            work = context.Process(target=publish, args=(address, "IN", count, rate, paused), daemon=True)
            begun = time.monotonic()
            work.start()
            samples = [service.look(begun)]
            while work.is_alive() or total(samples[-1], "coincide_events_total") < count:
                time.sleep(EVERY)
                samples.append(service.look(begun))
                if samples[-1].at > 60 * minutes + 120:  # it does not keep up
                    break
                if len(samples) % 12 == 0:
                    told(samples[-1])
            return samples, count, paused.value, service.stop()
        finally:
            service.process.kill()


def told(sample: Sample) -> None:
    taken = total(sample, "coincide_events_total")
    lag = 1000 * total(sample, "coincide_lag_seconds")
    print(f"  {sample.at / 60:5.1f} min  {sample.memory:7.1f} MiB  {taken:14,.0f} events  lag {lag:6.0f} ms", flush=True)


def figures(samples: list[Sample], published: int, paused: float, code: int) -> dict[str, Any]:
    end = samples[-1]
    warm = [s for s in samples if s.at >= min(max(WARM, end.at / 5), end.at / 2)]
    lags = sorted(1000 * total(s, "coincide_lag_seconds") for s in warm if s is not end)
    return {
        "events published": f"{published:,}",
        "  longest pause of the publisher": f"{1000 * paused:.0f} ms",
        "  taken": f"{total(end, 'coincide_events_total'):,.0f}",
        "  too late (of those made so)": f"{total(end, 'coincide_events_late_total'):,.0f} of {published // LATE:,}",
        "detections": f"{total(end, 'coincide_detections_total'):,.0f}",
        "memory at the start": f"{samples[0].memory:.1f} MiB",
        f"  after {warm[0].at:.0f} s": f"{warm[0].memory:.1f} MiB",
        "  at the end": f"{end.memory:.1f} MiB",
        "  at most": f"{max(s.memory for s in samples):.1f} MiB",
        "  growth once warm": f"{slope(warm):+.2f} MiB a minute",
        "lag, median and most": f"{lags[len(lags) // 2]:.0f} ms, {lags[-1]:.0f} ms" if lags else "",
        "state as it is kept, at the end": f"{total(end, 'coincide_state_bytes') / 1024:.0f} KiB",
        "exit code after SIGTERM": str(code),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks soak")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--rate", type=int, default=20_000, help="events a second")
    given = parser.parse_args(arguments)
    print(f"\nA service for {given.minutes:g} minutes at {given.rate:,} events/s (load {os.getloadavg()[0]:.1f})")
    show("", figures(*soaked(given.minutes, given.rate)), "flat memory, nothing lost")


if __name__ == "__main__":
    main(sys.argv[1:])
