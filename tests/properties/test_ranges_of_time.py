"""A run that is cut into ranges of time anywhere gives what the whole gives, whatever the rules are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events
from coincide.adapters.tableorder import sliced
from coincide.detection.base import in_tier
from coincide.detection.machine import openings
from coincide.engines.graph import Graph
from coincide.engines.ranges import Ending, Entry, Made, Range, RangedGraph, Starts, Stretch, Unsettled, settled
from coincide.errors import RunError
from coincide.model.batch import EventBatch, merged
from coincide.model.event import Event, order_of, record
from coincide.model.table import table_of
from coincide.rulebook import loads
from coincide.testing.ecl import event_lists, rule_texts
from coincide.testing.fuzz.corpus import Example, examples
from coincide.testing.fuzz.events import RandomLines

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


class Cut:
    """A run in ranges, one after another, as engines have them run side by side."""

    def __init__(self, graph: Graph, events: EventBatch, parts: Sequence[Range], until: float | None) -> None:
        self.graph, self.events, self.parts = RangedGraph(graph), events, parts
        self.ending = Ending(None, until)
        self.found: dict[int, tuple[Made, Stretch, bytes]] = {}
        self.again = 0

    def run(self, numbers: Sequence[int], starts: Sequence[Starts] | None) -> Mapping[int, Stretch]:
        before = dict(self.found)
        self.again += len(numbers) if starts is not None else 0
        for number in numbers:
            entry = None if starts is None else Entry(before[number - 1][2], starts[number])
            part, hi = self.parts[number], self.events.table.hi
            low = 0 if part.low is None else int(hi.searchsorted(part.low))
            high = len(hi) if part.end is None else int(hi.searchsorted(part.end))
            read = EventBatch(table=sliced(self.events.table, low, high))
            self.found[number] = self.graph.run(part, read, int(hi[0]), self.ending, entry)
        return {number: self.found[number][1] for number in numbers}

    def told(self, rounds: int) -> list[object]:
        """The detections, once all fits."""
        made = []
        for number, starts in enumerate(settled(len(self.parts), self.run, rounds)):
            batches, stretch, _ = self.found[number]
            made.append(merged([batch for n, batch in batches if n in stretch.chosen(starts)]))
        return _told(made)


def ranges(events: EventBatch, cuts: Sequence[int], early: int) -> list[Range]:
    """Cut at these rows; each begins so many rows early."""
    hi = events.table.hi
    firsts = [None, *sorted({int(hi[cut]) for cut in cuts if hi[cut] > hi[0]})]
    found = []
    for number, first in enumerate(firsts):
        low = None if first is None else int(hi[max(0, int(hi.searchsorted(first)) - early)])
        before = 0 if low is None else int(hi.searchsorted(low))
        found.append(Range(first, firsts[number + 1] if number + 1 < len(firsts) else None, low, before))
    return found


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
    parts = ranges(events, random.sample(range(len(events)), min(4, len(events))), random.choice([0, 3, 10, 30]))
    cut = Cut(graph, events, parts, example.until)
    try:
        assert cut.told(len(parts)) == wanted, example.name
    except Unsettled:  # then one task does all
        return 0
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
)
@settings(max_examples=100, deadline=None)
def test_monitors_run_from_all_states(text: str, events: list[Event], cuts: list[int], early: int, tier: str, chunk: int) -> None:
    """Those that no other reads never run again; those that do, as often as they stand one behind the other."""
    if not events:
        return
    batch = EventBatch(table=table_of(sorted(events, key=order_of)))
    graph = Graph(loads(text).plans(tier))
    parts = ranges(batch, [cut % len(batch) for cut in cuts], early)
    cut = Cut(graph, batch, parts, None)
    with patch.object(openings, "CHUNK", chunk):
        assert cut.told(len(graph.plans) - 1) == whole(graph, batch, None)
    assert not cut.again or len(graph.plans) > 1
