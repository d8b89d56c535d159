"""What the tests of faults share: events that come file by file, rules of all languages with timers, what is to be found."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow.dataset as ds

import coincide

CASE = Path(__file__).parents[2] / "conformance" / "cases" / "mixed" / "timers-at-one-instant"
FURTHER = Path(__file__).parent / "rules"
"""Rules of the other languages, and one that is a stage of its own."""
WAITS = 700
"""Milliseconds that timers wait, instead of ten."""
EVENTS = 40
"""Of a file."""
POISON = [
    "{",
    "[1, 2]",
    '{"type": "a"}',
    '{"k": "p"}',
    '{"type": "b", "time": "never", "k": "q"}',
    "\u0000\ufffd",
    '""',
]


class World:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.running = folder / "running"  # there once a query has started
        self.files = self.poisoned = 0
        self._time = 0
        self._records: list[dict[str, object]] = []
        (folder / "events").mkdir(parents=True)
        (folder / "kept").mkdir()
        (folder / "rules").mkdir()
        self.rules = [self._rule(path) for path in sorted(CASE.glob("rules.*"))]
        self.rules += [str(path) for path in sorted(FURTHER.iterdir())]

    def _rule(self, path: Path) -> str:
        text = re.sub(r"(T = |\+ |interval=\"|<relative>)10\b", rf"\g<1>{WAITS}", path.read_text(encoding="utf-8"))
        assert path.name.endswith(".ecl") or str(WAITS) in text
        (self.folder / "rules" / path.name).write_text(text, encoding="utf-8")
        return str(self.folder / "rules" / path.name)

    def add(self, count: int = 1) -> None:
        """More files, each there as a whole or not at all; some have records that are none."""
        for _ in range(count):
            records = [self._record() for _ in range(EVENTS)]
            self._records += records
            lines = [json.dumps(record) for record in sorted(records, key=lambda _: self.dice.random())]
            if self.dice.random() < 0.3:
                lines.insert(self.dice.randrange(EVENTS), self.dice.choice(POISON))
                self.poisoned += 1
            self._write(lines)

    def end(self) -> None:
        """Time goes on, so that all timers have fired."""
        self._write([json.dumps({"type": "heartbeat", "time": self._time + 60_000})])

    def expected(self) -> Counter[str]:
        """The keys that the embedded engine gives."""
        return Counter(
            str(record["_key"]) for record in coincide.run(coincide.load(*self.rules), self._records, keys=True, until="inf")
        )

    def found(self, kept: str = "kept") -> Counter[str]:
        files = ds.dataset(self.folder / kept / "found", format="parquet", exclude_invalid_files=True)
        return Counter(files.to_table(columns=["_key"]).column("_key").to_pylist())

    def start(self, trigger: str) -> subprocess.Popen[bytes]:
        self.running.unlink(missing_ok=True)
        command = [sys.executable, str(Path(__file__).with_name("query.py")), str(self.folder), *self.rules, trigger]
        with (self.folder / "query.log").open("ab") as log:
            return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)

    def finish(self, trigger: str = "finish") -> int:
        """Everything that is there, to the end; what the query returns."""
        process = self.start(trigger)
        try:
            return process.wait(600)
        finally:
            kill_session(process)

    def micro_batches(self) -> int:
        """How many are done. (Spark keeps the notes of the last hundred.)"""
        done = (self.folder / "kept" / "checkpoint" / "commits").glob("[0-9]*")
        return max((int(path.name) + 1 for path in done), default=0)

    def _record(self) -> dict[str, object]:
        self._time += self.dice.choice([0, 1, 50, 200, 699, 700])
        number = f"e{len(self._records) + self.dice.random()}"
        return {"type": self.dice.choice("aab"), "time": self._time, "id": number, "k": self.dice.choice("pqrst")}

    def _write(self, lines: list[str]) -> None:
        self.files += 1
        path = self.folder / "events" / f"{self.files:06d}.json"
        aside = self.folder / "aside"
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(aside, (10**9 + self.files, 10**9 + self.files))
        aside.rename(path)


def kill_session(leader: subprocess.Popen[bytes]) -> int:
    """The driver, Java, and Python's workers, which have process groups of their own: all of one session. How many there were."""
    killed: set[int] = set()
    while members := _members(leader.pid):
        for process in members:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        killed |= members
        leader.poll()
    leader.wait()
    return len(killed)


def _members(session: int) -> set[int]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.add(int(entry.parent.name))
    return found
