"""Every case of CDL: the same answer however the input is split, and with a snapshot after every batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events
from coincide.engines.embedded import Engine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import load
from coincide.testing.cases import Case, find_cases
from coincide.testing.compare import unmatched
from coincide.testing.expected import read_records

CASES = Path(__file__).parents[2] / "conformance" / "cases"
DETECTIONS = find_cases(CASES / "cdl")
MIXED = find_cases(CASES / "mixed")


@pytest.mark.parametrize("snapshots", [False, True], ids=["split", "snapshots"])
@pytest.mark.parametrize("case", DETECTIONS, ids=lambda case: case.name)
def test_case_event_by_event(case: Case, snapshots: bool) -> None:
    engine, loaded_again = Engine(load(*case.rules)), load(*case.rules)
    made: list[Event] = []
    for batch in in_total_order(open_events(case.folder / "events.jsonl", strict=True)):
        for event in batch.events:
            made += engine.process(EventBatch([event])).events
            if snapshots:
                data = engine.snapshot()
                engine = Engine(loaded_again)
                engine.restore(data)
                assert engine.snapshot() == data
    made += engine.finish(case.text("until")).events
    assert unmatched(read_records(case.folder / "expected.jsonl"), map(record, made)) == ([], [])


@pytest.mark.parametrize("case", DETECTIONS, ids=lambda case: case.name)
def test_columns_say_the_same(case: Case) -> None:
    """Sets and ranges travel through the columnar face of a batch."""
    batches = list(in_total_order(open_events(case.folder / "events.jsonl", strict=True)))
    engine = Engine(load(*case.rules))
    made = [e for batch in batches for e in engine.process(EventBatch(table=batch.table)).events]
    made += engine.finish(case.text("until")).events
    assert unmatched(read_records(case.folder / "expected.jsonl"), map(record, made)) == ([], [])
