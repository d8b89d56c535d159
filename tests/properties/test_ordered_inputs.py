"""What is detected while an input is read is what is detected when all of it is sorted first, whatever the rules are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_ranges_of_time import cases, drawn

from coincide.adapters.order import in_total_order
from coincide.adapters.outlook import Outlook
from coincide.adapters.tableorder import taken
from coincide.engines.choice import detections
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.testing.fuzz.corpus import Example


def told(example: Example, batches: Iterable[EventBatch], tier: str, jobs: int) -> Iterator[object]:
    try:
        for batch in detections(example.book, batches, example.until, tier=tier, jobs=jobs):
            yield from map(record, batch.events)
    except RunError as error:
        yield str(error)


@given(st.integers(0, 10**9))
@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_streaming_gives_what_sorting_gives(seed: int) -> None:
    random = Random(seed)
    example = random.choice(cases())
    if not example.is_accepted or example.book.names_policies:
        return
    table = drawn(example, random).table
    delay = random.choice([0, 0, 1_000, 60_000_000])
    stirred = np.argsort(table.hi + np.array([random.randint(0, delay) for _ in range(len(table))]), kind="stable")
    events = EventBatch(table=taken(table, stirred))
    cuts = sorted({0, len(events), *random.sample(range(len(events)), min(8, len(events)))})
    batches = [events.rows(a, b) for a, b in pairwise(cuts)]
    tier, jobs, outlook = random.choice(["interpreter", "kernel"]), random.choice([1, 1, 3]), Outlook(delay)
    streamed = in_total_order(outlook.timely(batches), outlook, target=random.choice([1, 5, 20]))
    assert [*told(example, streamed, tier, jobs)] == [*told(example, in_total_order(batches), tier, jobs)], example.name
    assert outlook.late == 0
