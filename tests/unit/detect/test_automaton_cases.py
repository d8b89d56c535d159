"""Every case of Opera: the same answer however the input is split, and with a snapshot after every batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.adapters.read import open_events
from coincide.engines.choice import until_microseconds
from coincide.rulebook import load
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import check_detector

CASES = Path(__file__).parents[2] / "conformance" / "cases"
OPERA = find_cases(CASES / "opera") + find_cases(CASES / "pretty")


@pytest.mark.brief(parameters=12)
@pytest.mark.parametrize("case", OPERA, ids=lambda case: case.name)
def test_splits_and_snapshots(case: Case) -> None:
    events = [event for batch in open_events(case.folder / "events.jsonl", strict=True) for event in batch.events]
    check_detector(load(*case.rules), events, [len(events) // 2], until_microseconds(case.text("until")))
