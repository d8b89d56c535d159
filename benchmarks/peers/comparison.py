"""All contestants on one question: equal rows, and processor time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.contestants import Contestant, contestants, plain_rows
from benchmarks.peers.processor import Failed, processor_seconds
from benchmarks.peers.questions import QUESTIONS
from benchmarks.peers.workload import Stream

FEW = 1_000
LEAST = 0.1
"""Seconds by which one start-up differs from another: so much is counted at least."""


@dataclass(frozen=True)
class Result:
    """What one contestant needed; or why there is nothing to tell."""

    name: str
    startup: float = 0
    seconds: float = 0
    speed: float = 0
    problem: str = ""

    def __str__(self) -> str:
        return self.problem or f"{self.startup:>16.1f} {self.seconds:>14.1f} {self.speed:>15,.0f}"


@dataclass(frozen=True)
class Comparison:
    words: str
    events: int
    rows: int
    results: tuple[Result, ...]


def compare(name: str, events: int, names: Sequence[str] = ()) -> Comparison:
    """All contestants, or those whose name holds one of the words; each result is printed as it comes."""
    question = QUESTIONS[name]
    made = question.stream(events)
    with tempfile.TemporaryDirectory() as folder:
        loop = next(one for one in contestants(name) if "loop" in one.name)
        expected = _run(loop, made, Path(folder))[1]
        print(f"\n{question.words}: {len(made):,} events, {len(expected):,} rows")
        print(f"  load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        print(f"  {'':<40} {'start-up, CPU s':>16} {'events, CPU s':>14} {'events / CPU s':>15}")
        results = _results(name, names, made, expected, Path(folder))
        return Comparison(question.words, len(made), len(expected), tuple(results))


def _results(name: str, names: Sequence[str], made: Stream, expected: set, folder: Path) -> Iterator[Result]:
    for contestant in contestants(name):
        if not names or any(word.lower() in contestant.name.lower() for word in names):
            result = _result(contestant, made, expected, folder)
            print(f"  {contestant.name:<40} {result}", flush=True)
            yield result


def _result(contestant: Contestant, made: Stream, expected: set, folder: Path) -> Result:
    if missing := contestant.missing():
        return Result(contestant.name, problem=f"left out: {missing}")
    try:
        if "coincide" in contestant.name:
            _run(contestant, made.head(FEW), folder)  # compiled code comes into its cache
        startup, _ = _run(contestant, made.head(1), folder)
        whole, found = _run(contestant, made, folder)
    except Failed as failed:
        return Result(contestant.name, problem=f"failed: {failed}")
    if found != expected:
        return Result(
            contestant.name, problem=f"other rows: {len(expected - found):,} missing, {len(found - expected):,} too many"
        )
    seconds = max(whole - startup, LEAST)
    return Result(contestant.name, startup, seconds, len(made) / seconds)


def _run(contestant: Contestant, made: Stream, folder: Path) -> tuple[float, set]:
    """Processor seconds of the whole run, from a file of events to a file of rows; and these."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        events, out = Path(own) / "events.csv", Path(own) / f"found{contestant.ending}"
        made.write(events, header=contestant.header)
        seconds = processor_seconds(contestant.command(Path(own), events, out))
        return seconds, plain_rows(contestant.read(out), len(made) + 1)
