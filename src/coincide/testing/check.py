"""One check for every detector: however the input is cut, wherever a snapshot is taken, in each tier: the same answer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
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
    until: float | None = None,
    closed: bool = True,
) -> list[Record]:
    """Detections in the order made. `cuts` are where one batch ends and the next begins. With `changes` each begins with what was
    told of the changes in the ones before."""
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
    made += graph.finish(state, until, closed).events
    return [Record(record(d)) for d in made]


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
    return expected
