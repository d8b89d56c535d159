"""States that are divided by key (DetectorPlan.split): parts go on by themselves, as pages on Spark do, and are put together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

from coincide.adapters.read import open_events
from coincide.engines.choice import until_microseconds
from coincide.engines.graph import NUMBERS, Graph
from coincide.engines.spark.groups import Group, groups
from coincide.errors import CoincideError
from coincide.expr.scalar import event_field
from coincide.model.batch import EventBatch
from coincide.model.compound import Compound
from coincide.model.event import Event, Value, record
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import Record

CASES = Path(__file__).parents[2] / "conformance" / "cases"
PARTS = 3
LEAST = {"amit": 7, "cdl": 5, "ecco": 10, "ecl": 3, "eql": 20, "match-recognize": 20, "opera": 6, "sigma": 10}
"""So many groups with keys there are at least among the cases of each language."""


def part_of(names: tuple[str, ...], values: Mapping[str, Value]) -> int:
    return crc32(repr([values[name] for name in names]).encode()) % PARTS


def key_of(names: tuple[str, ...], event: Event) -> int:
    return part_of(names, {name: event_field(name)(event) for name in names})


def in_one(graph: Graph, events: list[Event], until: float | None) -> list[Event]:
    state = graph.initial()
    return [*graph.advance(state, EventBatch(events)).events, *graph.finish(state, until).events]


def in_parts(graph: Graph, names: tuple[str, ...], events: list[Event], until: float | None) -> list[Event]:
    """The first third in one, the second in parts, the last in one again."""
    first, second = 1 + len(events) // 3, 1 + 2 * len(events) // 3
    state = graph.initial()
    made = list(graph.advance(state, EventBatch(events[:first])).events)
    parts = graph.split(graph.decode(graph.encode(state)), PARTS, partial(part_of, names))
    bound = max(event.hi for event in events[:second])
    for number, part in enumerate(parts):
        part.consumed = (number + 1) * NUMBERS
        own = [event for event in events[first:second] if key_of(names, event) == number]
        made += graph.advance(part, EventBatch(own), bound).events
    state = graph.decode(graph.encode(graph.merge([graph.decode(graph.encode(part)) for part in parts])))
    return [*made, *graph.advance(state, EventBatch(events[second:])).events, *graph.finish(state, until).events]


def divisible(case: Case, events: list[Event]) -> list[tuple[Group, Graph]]:
    rules = case.book()
    several = frozenset(name for event in events for name, value in event.attributes.items() if isinstance(value, Compound))
    found = [group for group in groups(rules, several) if group.key]
    return [(group, Graph(group.plans(rules))) for group in found]


def check(group: Group, graph: Graph, events: list[Event], until: float | None) -> None:
    try:
        expected = in_one(graph, events, until)
    except CoincideError:  # cases of runs that stop
        return
    found = in_parts(graph, group.key or (), events, until)
    written = [sorted(map(repr, (Record(record(made)) for made in some))) for some in (found, expected)]
    assert written[0] == written[1], group


@pytest.mark.parametrize("language", LEAST)
def test_parts_go_on_by_themselves(language: str) -> None:
    count = 0
    for case in find_cases(CASES / language):
        path = case.folder / "events.jsonl"
        if not path.exists() or case.text("policy") is not None:
            continue
        events = sorted((e for batch in open_events(path) for e in batch.events), key=lambda e: e.origin)
        for group, graph in divisible(case, events) if events else ():
            check(group, graph, events, until_microseconds(case.text("until")))
            count += 1
    assert count >= LEAST[language]
