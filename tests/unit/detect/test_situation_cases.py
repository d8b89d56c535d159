"""Amit's conformance cases: on the embedded engine, however the input is cut and wherever a snapshot is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coincide.adapters.read import open_events
from coincide.engines.choice import until_microseconds
from coincide.engines.embedded import Engine
from coincide.model.event import Event
from coincide.rulebook import load
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import check_detector
from coincide.testing.compare import answers, unmatched
from coincide.testing.expected import read_records

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def named(case: Case) -> str:
    return case.folder.name


def events_of(case: Case) -> list[Event]:
    return [event for batch in open_events(case.folder / "events.jsonl") for event in batch.events]


@pytest.mark.brief(parameters=11)
@pytest.mark.parametrize("case", find_cases(CASES / "amit"), ids=named)
def test_detects_however_the_input_is_cut(case: Case) -> None:
    events = events_of(case)
    until = until_microseconds(case.text("until"))
    made = check_detector(load(*case.rules), events, range(0, len(events), 3), until)
    assert unmatched(read_records(case.folder / "expected.jsonl"), made) == ([], [])


@pytest.mark.parametrize("case", [c for c in find_cases(CASES / "amit") if c.path("stats.json")], ids=named)
@pytest.mark.parametrize("snapshots", [False, True])
def test_statistics(case: Case, snapshots: bool) -> None:
    engine = Engine(load(*case.rules))
    for event in events_of(case):
        engine.process([event])
        if snapshots:
            engine.restore(engine.snapshot())
    engine.finish(case.text("until"))
    expected = json.loads(case.text("stats.json") or "")
    assert answers(expected, engine.statistics()) == []
