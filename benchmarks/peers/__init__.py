"""How many events for a second of processor time, beside other engines that do the same? See README.md here.

`main` is what `python -m benchmarks peers` runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.contestants import CONTESTANTS, Contestant
from benchmarks.peers.processor import Failed, processor_seconds
from benchmarks.peers.workload import KEYS, Match, Stream, matches, stream

EVENTS, FEW = 1_000_000, 1_000


def main(events: int = EVENTS, names: Sequence[str] = ()) -> None:
    """All contestants, or those whose name holds one of the words."""
    made = stream(events)
    expected = matches(made)
    print(f"\nt0, then t1, then t2 of the same key within 10 s: {events:,} events, {KEYS:,} keys, {len(expected):,} matches")
    print(f"  load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"  {'':<34} {'start-up, CPU s':>16} {'events, CPU s':>14} {'events / CPU s':>15}")
    with tempfile.TemporaryDirectory() as folder:
        for contestant in (c for c in CONTESTANTS if not names or any(name.lower() in c.name.lower() for name in names)):
            print(f"  {contestant.name:<34} {_row(contestant, made, expected, Path(folder))}", flush=True)


def _row(contestant: Contestant, made: Stream, expected: set[Match], folder: Path) -> str:
    missing = contestant.missing()
    if missing:
        return f"left out: {missing}"
    try:
        _run(contestant, made.head(FEW), folder)  # files and compiled code come into their caches
        startup, _ = _run(contestant, made.head(1), folder)
        whole, found = _run(contestant, made, folder)
    except Failed as failed:
        return f"failed: {failed}"
    if found != expected:
        return f"other matches: {len(expected - found):,} missing, {len(found - expected):,} too many"
    return f"{startup:>16.1f} {whole - startup:>14.1f} {len(made) / (whole - startup):>15,.0f}"


def _run(contestant: Contestant, made: Stream, folder: Path) -> tuple[float, set[Match]]:
    """Processor seconds of the whole run, from a file of events to a file of matches; and these."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        events, out = Path(own) / "events.csv", Path(own) / f"matches{contestant.ending}"
        made.write(events, header=contestant.header)
        seconds = processor_seconds(contestant.command(Path(own), events, out))
        return seconds, set(contestant.read(out))
