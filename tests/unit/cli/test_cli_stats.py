"""`coincide run --stats`, `stats.json` of cases, and what is printed of a run that has to stop (Amit)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_support import Coincide, jsonl, written

from coincide.engines.embedded import Engine
from coincide.errors import RunError
from coincide.lang.amit.functions import register, unregister
from coincide.rulebook import load

CASES = Path(__file__).parents[2] / "conformance" / "cases"
CASE = CASES / "amit" / "statistics"

EVENTS = """<amit><event name="A"><eventAttribute name="x" type="number"/></event>
  <lifespan name="run"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
"""
SEEN = """  <situation name="seen" lifespan="run"><all><operandAll event="A"/></all>
    <situationAttribute name="x" type="number" expression="A.x"/></situation>
"""
LOOP = """  <situation name="loop" lifespan="run"><nth detectionMode="immediate" repeatMode="always">
    <operandNth event="A" threshold="x = 13"/><operandNth event="loop"/></nth></situation>
"""
LAST = """  <situation name="last" lifespan="run"><all><operandAll event="seen"/></all></situation>
</amit>
"""


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    return written(tmp_path / "endless.amit.xml", EVENTS + SEEN + LOOP + LAST)


def unlucky(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "a.jsonl", [{"type": "A", "time": t, "x": 11 + t} for t in range(1, 5)])


def test_counts_of_a_run(coincide: Coincide, tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    until = (CASE / "until").read_text().split() if (CASE / "until").exists() else []
    options = ["--until", *until] if until else []
    outcome = coincide("run", CASE / "rules.amit.xml", "--events", CASE / "events.jsonl", "--stats", stats, *options)
    assert (outcome.code, outcome.err) == (0, "")
    expected: dict[str, Any] = json.loads((CASE / "stats.json").read_text())
    counted = json.loads(stats.read_text())
    assert {name: counted[name] for name in expected} == expected
    assert {"conditions", "accesses"} <= counted.keys()


@pytest.mark.parametrize("engine", ["spark", "spark-streaming"])
def test_other_engines_do_not_count(coincide: Coincide, tmp_path: Path, engine: str) -> None:
    stats = tmp_path / "stats.json"
    outcome = coincide(
        "run", CASE / "rules.amit.xml", "--events", CASE / "events.jsonl", "--stats", stats, "--engine", engine
    )  # fmt: skip
    assert (outcome.code, stats.exists()) == (2, False)
    assert outcome.err.startswith("error: --stats is for the embedded engine")


def test_policies_do_not_count(coincide: Coincide, tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    outcome = coincide(
        "run", CASE / "rules.amit.xml", "--events", CASE / "events.jsonl", "--stats", stats, "--policy", "best-effort"
    )  # fmt: skip
    assert (outcome.code, stats.exists()) == (2, False)
    assert outcome.err.startswith("error: --stats is not offered under a policy")


def test_a_place_that_cannot_be_written_is_noticed_at_once(coincide: Coincide, tmp_path: Path) -> None:
    stats = tmp_path / "nowhere" / "stats.json"
    outcome = coincide("run", CASE / "rules.amit.xml", "--events", CASE / "events.jsonl", "--stats", stats)
    assert (outcome.code, outcome.out) == (2, "")


def test_cases_compare_counts(coincide: Coincide, tmp_path: Path) -> None:
    case = tmp_path / "amit" / "counted"
    shutil.copytree(CASE, case)
    assert coincide("test", case).code == 0
    written(case / "stats.json", '{"events": 1000}')
    outcome = coincide("test", case)
    assert outcome.code == 1
    assert "stats.json: events: expected 1000" in outcome.out + outcome.err


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_what_was_detected_before_a_stop_is_printed(coincide: Coincide, endless: Path, tmp_path: Path, tier: str) -> None:
    """Of the event that cannot be finished: what precedes, in order of definition, what it never came to."""
    stats = tmp_path / "stats.json"
    outcome = coincide("run", endless, "--events", unlucky(tmp_path), "--tier", tier, "--stats", stats)
    assert outcome.code == 1
    assert "a chain of more than 1000 detections ends in situation 'loop'" in outcome.err
    made = [(record["type"], record["time"]) for record in outcome.records]
    assert made[:5] == [("seen", 1), ("last", 1), ("seen", 2), ("loop", 2), ("last", 2)]
    assert made[5:] == [("loop", 2)] * 999
    assert not stats.exists()


def test_nothing_is_kept_of_a_run_that_stops(coincide: Coincide, endless: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    outcome = coincide("run", endless, "--events", unlucky(tmp_path), "--out", out)
    assert (outcome.code, out.exists()) == (1, False)


def test_a_stop_under_a_policy(coincide: Coincide, endless: Path, tmp_path: Path) -> None:
    outcome = coincide("run", endless, "--events", unlucky(tmp_path), "--policy", "best-effort")
    made = [(record["type"], record["time"]) for record in outcome.records]
    assert (outcome.code, len(made)) == (1, 1004)
    assert made[:3] == [("seen", 1), ("last", 1), ("seen", 2)]


def test_a_function_that_fails(tmp_path: Path) -> None:
    def fail(x: float) -> float:
        return 1 / (x - 13)

    register("unlucky", fail, ["number"], "number")
    try:
        book = load(
            written(
                tmp_path / "f.amit.xml",
                EVENTS
                + '<situation name="inverse" lifespan="run"><all><operandAll event="A"/></all>'
                + '<situationAttribute name="y" type="number" expression="unlucky(A.x)"/></situation></amit>',
            )
        )
        events = [{"type": "A", "time": t, "x": 11 + t} for t in range(1, 5)]
        with pytest.raises(RunError, match="function 'unlucky' failed") as raised:
            Engine(book).process(events)
    finally:
        unregister("unlucky")
    assert raised.value.detections is not None
    assert raised.value.detections.records() == [{"type": "inverse", "time": 1, "from": ["1"], "y": -1}]
