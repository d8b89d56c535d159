"""A run in several threads gives what one gives, in the same order, whatever the rules are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_ranges_of_time import cases, drawn

from coincide.engines.choice import detections
from coincide.engines.lanes import are_divided
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.model.table import EventTable
from coincide.rulebook import loads
from coincide.testing.fuzz.corpus import Example


@cache
def keyed() -> list[Example]:
    return [e for e in cases() if e.is_accepted and not e.book.names_policies and are_divided(e.book)]


def told(example: Example, batches: list[EventBatch], tier: str, jobs: int) -> Iterator[object]:
    try:
        for batch in detections(example.book, batches, example.until, tier=tier, jobs=jobs):
            yield from map(record, batch.events)
    except RunError as error:
        yield str(error)


@given(st.integers(0, 10**9))
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_lanes_give_what_one_gives(seed: int) -> None:
    random = Random(seed)
    example = random.choice(keyed())
    events = drawn(example, random)
    cuts = sorted({0, len(events), *random.sample(range(len(events)), min(3, len(events)))})
    batches = [events.rows(a, b) for a, b in pairwise(cuts)]
    tier = random.choice(["interpreter", "kernel"])
    assert [*told(example, batches, tier, 3)] == [*told(example, batches, tier, 1)], example.name


def test_what_timers_detect_at_one_instant_is_in_order() -> None:
    """Its places are not numbers that columns could be ordered by."""
    book, random = loads("detect m = ([t0(k = ?k)], [T in {T, t1(k = ?k)}]) T = 3ms", "ce"), np.random.default_rng(3)
    time, size = np.sort(random.integers(0, 300, 4_000)) * 1000, 4_000
    fields = {
        "type": pa.array([f"t{n}" for n in random.integers(0, 3, size)]),
        "id": pa.array(np.arange(size)),
        "k": pa.array([f"k{n}" for n in random.integers(0, 50, size)]),
    }
    runs = [[*detections(book, [EventBatch(table=EventTable(time, time, fields))], tier="kernel", jobs=jobs)] for jobs in (1, 4)]
    one, several = ([record(event) for batch in run for event in batch.events] for run in runs)
    assert several == one
    assert len(one) > 100
    assert any(batch.has_table and not batch.table.sortable for batch in runs[1])
