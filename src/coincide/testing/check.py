"""One check for every detector: however the input is cut, wherever a snapshot is taken, in each tier: the same answer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from zlib import crc32

import msgspec

from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value, record
from coincide.rulebook import Rulebook


class Record(dict[str, object]):
    """A detection as it is written: true is not 1, and the order of fields counts."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and msgspec.json.encode(self) == msgspec.json.encode(other)

    __hash__ = None


def detections(
    rules: Rulebook,
    events: Sequence[Event],
    *,
    tier: str = "interpreter",
    cuts: Sequence[int] = (),
    snapshots: bool = False,
    changes: bool = False,
    divided: int = 0,
    until: float | None = None,
    closed: bool = True,
) -> list[Record]:
    """Detections in the order made. `cuts` are where one batch ends and the next begins. With `changes` each begins with what was
    told of the changes in the ones before; with `divided`, from a state that was divided by key into so many parts, and put
    together again."""
    graph = Graph(rules.plans(tier))
    state = graph.initial()
    ordered = sorted(events, key=lambda e: e.origin)
    made: list[Event] = []
    told: list[bytes] = []
    bounds = [0, *sorted(c for c in cuts if 0 < c < len(ordered)), len(ordered)]
    for start, end in itertools.pairwise(bounds):
        made += graph.advance(state, EventBatch(ordered[start:end])).events
        if snapshots:
            state = graph.decode(graph.encode(state))
        elif changes:
            if told:
                told.append(graph.changes(state))
            else:
                told = [graph.changes(state, everything=True)]
            state = graph.with_changes(told[0], told[1:])
        if divided:
            state = graph.decode(_divided(rules, graph.encode(state), divided))
    made += graph.finish(state, until, closed).events
    return [Record(record(d)) for d in made]


def _divided(rules: Rulebook, data: bytes, count: int) -> bytes:
    """A state after it was divided, plan by plan as far as they have keys, and put together."""
    graph = Graph(rules.plans("interpreter"))
    state = graph.decode(data)
    for number, plan in enumerate(graph.plans):
        if plan.partition:
            parts = plan.split(state.states[number], count, partial(_part_of, count))
            state.states[number] = plan.merge([plan.decode(plan.encode(part)) for part in parts])
    return graph.encode(state)


def _part_of(count: int, values: Mapping[str, Value]) -> int:
    return crc32(repr(sorted(values.items())).encode()) % count


def check_detector(rules: Rulebook, events: Sequence[Event], cuts: Sequence[int], until: float | None = None) -> list[Record]:
    """Raises AssertionError where two ways of running disagree; returns the detections."""
    expected = detections(rules, events, until=until)
    every = range(len(events))
    for tier in ("interpreter", "kernel"):
        for where in (cuts, every):
            for snapshots in (False, True):
                found = detections(rules, events, tier=tier, cuts=where, snapshots=snapshots, until=until)
                way = f"{tier} tier, cut at {list(where)}{', with snapshots' if snapshots else ''}"
                assert found == expected, f"{way}:\n  found    {found}\n  expected {expected}"
    for tier, where in (("kernel", cuts), ("kernel", every), ("interpreter", cuts)):
        found = detections(rules, events, tier=tier, cuts=where, changes=True, until=until)
        assert found == expected, f"{tier} tier, told by changes at {list(where)}:\n  found    {found}\n  expected {expected}"
    check_division(rules, events, cuts, expected, until)
    return expected


def check_division(
    rules: Rulebook, events: Sequence[Event], cuts: Sequence[int], expected: Sequence[Record], until: float | None = None
) -> None:
    """Keys do not know of one another, so what several of them make at once may come in another order."""
    if not any(plan.partition for plan in rules.plans("interpreter")):
        return
    wanted = sorted(map(_written, expected))
    for tier, count in (("interpreter", 7), ("kernel", 2)):
        found = detections(rules, events, tier=tier, cuts=cuts, divided=count, until=until)
        way = f"{tier} tier, divided into {count} at {list(cuts)}"
        assert sorted(map(_written, found)) == wanted, f"{way}:\n  found    {found}\n  expected {expected}"


def _written(detection: Record) -> bytes:
    return msgspec.json.encode(detection)
