"""Plans that are shown the events of their own types only give the same answer as those that see them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.adapters.read import open_events
from coincide.engines import routing
from coincide.engines.choice import until_microseconds
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import detections

CASES = Path(__file__).parents[1] / "conformance" / "cases"
BY_TIME = "ecco/found-stamps-and-keys"  # under new stamps, events count that no definition names


def some_cases() -> list[Case]:
    told = [
        case
        for case in find_cases(CASES)
        if case.path("expected.jsonl") and case.path("events.jsonl") and not case.path("policy")
    ]
    return [case for number, case in enumerate(told) if number % 15 == 0 or case.name == BY_TIME]


@pytest.mark.parametrize("case", some_cases(), ids=lambda case: case.name)
def test_routed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event for batch in open_events(case.folder / "events.jsonl") for event in batch.events]
    rules, until = case.book(), until_microseconds(case.text("until"))
    expected = detections(rules, events, until=until)
    monkeypatch.setattr(routing, "MANY", 1)
    assert detections(rules, events, until=until) == expected
