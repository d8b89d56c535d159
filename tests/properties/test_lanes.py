"""A run in several threads gives what one gives, in the same order, whatever the rules are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from test_ranges_of_time import cases, drawn

from coincide.engines.choice import detections
from coincide.engines.lanes import are_divided
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.model.event import record
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
