"""Every ECCO conformance case on the embedded engine: cut into single events, and restored after every batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.adapters.read import open_events
from coincide.engines.choice import until_microseconds
from coincide.rulebook import load
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import detections
from coincide.testing.compare import unmatched
from coincide.testing.expected import read_records

CASES = find_cases(Path(__file__).parents[2] / "conformance" / "cases" / "ecco")


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 58


@pytest.mark.parametrize("snapshots", [False, True], ids=["cut", "restored"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_cut_into_single_events(case: Case, snapshots: bool) -> None:
    events = [e for batch in open_events(case.folder / "events.jsonl", strict=True) for e in batch.events]
    until = until_microseconds(case.text("until"))
    book = load(*case.rules)
    whole = detections(book, events, until=until)
    found = detections(book, events, cuts=range(len(events)), snapshots=snapshots, until=until)
    missing, unexpected = unmatched(read_records(case.folder / "expected.jsonl"), found)
    assert (missing, unexpected) == ([], [])
    assert found == whole  # the order too
