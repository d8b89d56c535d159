"""One check for every detector: however the input is cut, wherever a snapshot is taken, in each tier: the same answer."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from unittest.mock import patch

import msgspec

from coincide.detection.base import in_tier
from coincide.detection.columns import codec
from coincide.engines.graph import Graph
from coincide.engines.touching import of_keys, row_hashes, touched
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event, record
from coincide.model.table import table_of
from coincide.rulebook import Rulebook

BEHIND = 1_000_000
"""So much later than the last event, in microseconds, time has come."""


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
    changes_so_far: list[bytes] = []
    bounds = [0, *sorted(c for c in cuts if 0 < c < len(ordered)), len(ordered)]
    for start, end in itertools.pairwise(bounds):
        made += graph.advance(state, EventBatch(ordered[start:end])).events
        if snapshots:
            state = graph.decode(graph.encode(state))
        elif changes:
            if changes_so_far:
                changes_so_far.append(graph.changes(state))
            else:
                changes_so_far = [graph.changes(state, everything=True)]
            state = graph.with_changes(changes_so_far[0], changes_so_far[1:])
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
    for cut in cuts:
        check_portion(rules, sorted(events, key=lambda e: e.origin), cut)
    return expected


def check_portion(rules: Rulebook, ordered: Sequence[Event], cut: int) -> bool:
    """Of a state that was told by changes before the cut, the portion of some keys makes of events with these what the whole
    makes of them, but for what timers of others lead to. Returns whether there is a portion."""
    key = next((detector.partition for detector in rules.detectors if detector.partition), ())
    alike = [detector for detector in rules.detectors if sorted(detector.partition or ()) == sorted(key)]
    graph = Graph(in_tier(rules.compiled.plans_for(alike), "kernel"))
    if not graph.is_divided_by(key) or not 0 < cut < len(ordered) or ordered[cut - 1].hi >= ordered[cut].hi:
        return False
    changes = _told(graph, [ordered[: cut // 2], ordered[cut // 2 : cut]], ordered[cut].hi)
    later = EventBatch(table=table_of(list(ordered[cut:])))
    rows = row_hashes(later, key)
    if rows is None:
        return False
    hashes = touched(rows)[::2]
    own = EventBatch(table=later.table.take(of_keys(rows, hashes)))
    stored = graph.divided(changes[0], changes[1:], len(key))

    def made(of_all: bool, batch: EventBatch) -> Counter[bytes] | None:
        state = graph.with_changes(changes[0], changes[1:]) if of_all else None
        if stored is not None and not of_all:
            state = graph.portion(stored, hashes)
        found = None if state is None else graph.advance(state, batch, ordered[-1].hi + BEHIND).events
        return None if found is None else Counter(msgspec.json.encode(record(detection)) for detection in found)

    whole, portion, idle, idle_portion = made(True, own), made(False, own), made(True, EMPTY), made(False, EMPTY)
    if whole is None or portion is None or idle is None or idle_portion is None:
        return False
    assert not portion - whole, f"of some keys alone at {cut}:\n  found    {portion}\n  expected {whole}"
    others = idle - idle_portion
    assert whole - portion == others, f"of some keys alone at {cut}:\n  missing  {whole - portion}\n  expected {others}"
    return True


def _told(graph: Graph, parts: Sequence[Sequence[Event]], bound: int) -> list[bytes]:
    """What is told of a state after each of two parts of its events, with all keys to be found."""
    state, changes = graph.initial(), list[bytes]()
    with patch.object(codec, "MANY", 1):
        for number, (part, until) in enumerate(zip(parts, (None, bound), strict=True)):
            graph.advance(state, EventBatch(list(part)), until)
            changes.append(graph.changes(state, everything=number == 0))
    return changes
