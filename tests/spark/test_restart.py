"""A streaming query that is killed and started again loses nothing and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import expected, random_events, texts_of_rows

from coincide.model.event import primitive
from coincide.rulebook import load

pytestmark = [pytest.mark.spark, pytest.mark.matrix]  # a Spark is started twice

RULES = """
monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }
monitor n by k = repeat { push(y) { sequential { x, x } } }
monitor all = repeat { push(z) { accumulate { a, d } } }
"""
FILES = 5


def test_killed_in_the_middle(spark: Any, tmp_path: Path) -> None:
    events = [e for e in random_events(800) if e.lo == e.hi and "k" in e.attributes]
    arrival = sorted(events, key=lambda e: e.hi)
    _write(tmp_path / "events", arrival)
    rules = tmp_path / "rules.ecl"
    rules.write_text(RULES, encoding="utf-8")

    first = _start(tmp_path, rules, "for ever")
    try:
        _wait_for(tmp_path / "checkpoint" / "commits" / "1", first)
    finally:
        os.killpg(first.pid, signal.SIGKILL)  # a session of its own: Python, Java and the workers at once
        first.wait()
    committed = len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*")))
    assert 2 <= committed < FILES, "killed too late to show anything"

    second = _start(tmp_path, rules, "finish")
    try:
        assert second.wait(timeout=240) == 0
    finally:
        if second.poll() is None:
            os.killpg(second.pid, signal.SIGKILL)
    found = texts_of_rows(spark.read.parquet(str(tmp_path / "detections")).collect())
    assert found == expected(load(rules), events)
    assert found


def _write(folder: Path, arrival: list[Any]) -> None:
    folder.mkdir()
    last = primitive("heartbeat", 10**9, 10**9, "end", {})
    size = -(-len(arrival) // FILES)
    for number in range(FILES):
        part = arrival[number * size : (number + 1) * size] + ([last] if number == FILES - 1 else [])
        columns = {
            "type": pa.array([e.type for e in part]),
            "time": pa.array([e.hi for e in part], pa.timestamp("us", "UTC")),
            "id": pa.array([e.id for e in part]),
            "k": pa.array([e.attributes.get("k") for e in part], pa.float64()),
            "v": pa.array([e.attributes.get("v") for e in part], pa.float64()),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1000 + number, 1000 + number))


def _start(folder: Path, rules: Path, trigger: str) -> subprocess.Popen[bytes]:
    script = Path(__file__).with_name("endless.py")
    command = [sys.executable, str(script), str(folder), str(rules), trigger]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while not path.exists():
        assert process.poll() is None, "the query has ended by itself"
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.02)
