"""Situations in the kernel tier: columns in, the same answers as the interpreter, whatever the cuts and snapshots."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import inf

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide.engines.graph import Graph
from coincide.errors import RunError
from coincide.lang.amit.definition import File
from coincide.lang.amit.print import print_file
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.model.table import table_of
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.amit import event_lists, rule_files

COMPARED = ("events", "detections", "situations", "candidates", "lifespans_initiated", "lifespans_terminated")
Answer = tuple[list[dict[str, object]], dict[str, object]]

cuts = st.lists(st.integers(0, 24), max_size=3)
untils = st.sampled_from([None, 30_000.0, inf])


def answer(
    rules: Rulebook, events: Sequence[Event], tier: str, cuts: Sequence[int], snapshots: bool, until: float | None
) -> Answer:
    """Detections and statistics. Snapshots are read by the other tier in turn."""
    tiers = itertools.cycle((tier, "interpreter") if snapshots else (tier,))
    graph = Graph(rules.plans(next(tiers)))
    state = graph.initial()
    ordered = sorted(events, key=lambda e: e.origin)
    made: list[Event] = []
    for start, end in itertools.pairwise([0, *sorted(c for c in cuts if 0 < c < len(ordered)), len(ordered)]):
        batch = EventBatch(ordered[start:end]) if tier == "interpreter" else EventBatch(table=table_of(ordered[start:end]))
        made += graph.advance(state, batch).events
        if snapshots:
            data = graph.encode(state)
            graph = Graph(rules.plans(next(tiers)))
            state = graph.decode(data)
    made += graph.finish(state, until).events
    statistics = graph.statistics(state)
    return [record(d) for d in made], {name: statistics.get(name) for name in COMPARED}


def check(file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    rules = load(SourceText("rules.amit.xml", print_file(file)))
    try:
        expected = answer(rules, events, "interpreter", (), False, until)
    except RunError:
        assume(False)  # a chain without end
    for snapshots in (False, True):
        for where in ((), cuts, range(len(events))):
            assert answer(rules, events, "kernel", where, snapshots, until) == expected


@given(rule_files(), event_lists(), cuts, untils)
@settings(max_examples=200, deadline=None)
def test_tiers_are_equal(file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    check(file, events, cuts, until)
