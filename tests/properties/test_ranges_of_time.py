"""A run that is cut into ranges of time anywhere gives what the whole gives, whatever the rules are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events
from coincide.detection.base import in_tier
from coincide.detection.machine import openings
from coincide.engines.graph import Graph
from coincide.engines.ranges import Unsettled
from coincide.errors import RunError
from coincide.model.batch import EventBatch, merged
from coincide.model.event import Event, order_of, record
from coincide.model.table import table_of
from coincide.rulebook import loads
from coincide.testing.ecl import event_lists, rule_texts
from coincide.testing.fuzz.corpus import Example, examples
from coincide.testing.fuzz.events import RandomLines
from coincide.testing.ranges import CutRun, ranges_of

CASES = Path(__file__).parents[1] / "conformance" / "cases"


@cache
def cases() -> list[Example]:
    return [example for example in examples(CASES) if example.events]


def drawn(example: Example, random: Random, size: int = 60) -> EventBatch:
    """Events of an example, mixed and repeated, in order."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "events.jsonl"
        file.write_bytes(b"\n".join(RandomLines(example, random, size, 0).lines()))
        read = [batch for batch in in_total_order(open_events(str(file), block_size=1 << 30)) if len(batch)]
    return EventBatch(table=merged(read).table)


def whole(graph: Graph, events: EventBatch, until: float | None) -> list[object]:
    state = graph.initial()
    return _told([graph.advance(state, events), graph.finish(state, until)])


def _told(made: Sequence[EventBatch]) -> list[object]:
    return [record(event) for batch in made for event in batch.events]


def compare(seed: int) -> int:
    """How many ranges ran again."""
    random = Random(seed)
    example = random.choice(cases())
    if not example.is_accepted or example.book.names_policies:
        return 0
    events = drawn(example, random)
    graph = Graph(in_tier(example.book.compiled.plans, random.choice(["interpreter", "kernel"])))
    try:
        wanted = whole(graph, events, example.until)
    except RunError:
        return 0
    parts = ranges_of(events, random.sample(range(len(events)), min(4, len(events))), random.choice([0, 3, 10, 30]))
    cut = CutRun(graph, events, parts, example.until)
    try:
        cut.settle(len(parts))
    except Unsettled:  # then one task does all
        return 0
    assert _told(cut.made) == wanted, example.name
    return cut.again


@given(st.integers(0, 10**9))
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_ranges_give_what_the_whole_gives(seed: int) -> None:
    compare(seed)


@given(
    rule_texts(keys=False),
    event_lists(30),
    st.lists(st.integers(0, 30), max_size=4),
    st.sampled_from([0, 0, 2, 8]),
    st.sampled_from(["interpreter", "kernel"]),
    st.integers(1, 8),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_monitors_run_from_all_states(
    text: str, events: list[Event], cuts: list[int], early: int, tier: str, chunk: int, patient: bool
) -> None:
    """Those that no other reads never run again; others do as often as they stand one behind the other. Where too many states
    are left soon, all may run again, and the answer is still the same."""
    if not events:
        return
    batch = EventBatch(table=table_of(sorted(events, key=order_of)))
    graph = Graph(loads(text).plans(tier))
    parts = ranges_of(batch, [cut % len(batch) for cut in cuts], early)
    cut = CutRun(graph, batch, parts)
    with patch.multiple(openings, CHUNK=chunk, SOON=openings.SOON if patient else 1, LIVE=openings.LIVE if patient else 1):
        cut.settle(len(graph.plans) - 1 if patient else len(graph.plans) * len(parts))
    assert _told(cut.made) == whole(graph, batch, None)
    assert not cut.again or len(graph.plans) > 1 or not patient
