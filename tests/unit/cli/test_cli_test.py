"""`coincide test`: what it says of cases, and its exit code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli_support import EVENTS, FOUND, RULES, Coincide, jsonl, written


@pytest.fixture
def case(tmp_path: Path) -> Path:
    folder = tmp_path / "suite" / "case"
    written(folder / "rules.ecl", RULES)
    jsonl(folder / "events.jsonl", EVENTS)
    jsonl(folder / "expected.jsonl", list(reversed(FOUND)))
    return folder


@pytest.mark.parametrize("tier", ["auto", "interpreter", "kernel"])
def test_a_case_that_passes(coincide: Coincide, case: Path, tier: str) -> None:
    outcome = coincide("test", case, "--tier", tier)
    assert (outcome.code, outcome.out) == (0, "1 passed, 0 failed\n")


def test_a_case_that_fails(coincide: Coincide, case: Path) -> None:
    shutil.copytree(case, case.parent / "good")
    wrong = {"type": "pair", "time": 30, "from": ["3"], "door": "a", "v": 8}
    jsonl(case / "expected.jsonl", [wrong, FOUND[1], {"type": "thrice", "time": 1, "from": []}])
    outcome = coincide("test", case.parent)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        f"FAILED {case} (detections)",
        '    differs     {"type":"pair","time":30,"from":["3"],"door":"a","v":8}: v is 7, not 8',
        '    missing     {"type":"thrice","time":1,"from":[]}',
        '    unexpected  {"type":"twice","time":40,"from":["4"]}',
        "1 passed, 1 failed",
    ]


def test_cases_that_pass_are_named_on_request(coincide: Coincide, case: Path) -> None:
    assert coincide("test", case, "--verbose").out == "passed suite/case\n1 passed, 0 failed\n"


def test_no_case_at_all(coincide: Coincide, tmp_path: Path) -> None:
    outcome = coincide("test", tmp_path)
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == "0 passed, 0 failed"


def test_a_case_is_run_once(coincide: Coincide, case: Path) -> None:
    assert coincide("test", case, case.parent, case).out == "1 passed, 0 failed\n"


def test_options_are_checked(coincide: Coincide, case: Path) -> None:
    assert coincide("test", case, "--tier", "fast").code == 2


def test_rules_that_name_a_policy_run_as_they_do_otherwise(coincide: Coincide, case: Path) -> None:
    """The b comes before the a, though it happened after it: best effort has seen it by then."""
    (case / "rules.ecl").unlink()
    written(case / "rules.say", "Report late when a then b using best effort detection.")
    jsonl(case / "events.jsonl", [{"type": "b", "id": "1", "time": 20}, {"type": "a", "id": "2", "time": 10}])
    (case / "expected.jsonl").write_text(coincide("run", case / "rules.say", "--events", case / "events.jsonl").out)
    assert coincide("test", case).code == 0
    assert not (case / "expected.jsonl").read_text()  # in time order a comes first, and late would be found
