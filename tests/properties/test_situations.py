"""Situations: cuts and snapshots make no difference, the staged graph equals one queue, keys are independent."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide.detection.situation import interpreter
from coincide.detection.situation.plan import SituationPlan
from coincide.engines.graph import Graph
from coincide.errors import RunError
from coincide.lang.amit.definition import File
from coincide.lang.amit.parse import parse
from coincide.lang.amit.print import print_file
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.amit import event_lists, rule_files
from coincide.testing.check import check_detector, detections
from coincide.testing.compare import unmatched


@pytest.fixture(autouse=True, scope="module")
def short_chains() -> Iterator[None]:
    """Cycles may detect more and more in every round: the run is stopped early."""
    before, interpreter.LONGEST_CHAIN = interpreter.LONGEST_CHAIN, 4
    yield
    interpreter.LONGEST_CHAIN = before


cuts = st.lists(st.integers(0, 12), max_size=3)
untils = st.sampled_from([None, 30_000.0, inf])


def source(file: File) -> SourceText:
    return SourceText("rules.amit.xml", print_file(file))


def in_one_queue(rules: Rulebook, events: list[Event], until: float | None) -> list[dict[str, object]]:
    """All situations stepped event by event as one, as section 4 of the specification has it."""
    graph = Graph([SituationPlan(rules.detectors)])
    state = graph.initial()
    made = [*graph.advance(state, EventBatch(sorted(events, key=lambda e: e.origin))).events]
    return [record(d) for d in [*made, *graph.finish(state, until).events]]


@given(rule_files())
@settings(max_examples=60)
def test_printing_and_parsing_are_inverses(file: File) -> None:
    assert parse(source(file)) == file


@given(rule_files(), event_lists(), cuts, untils)
@settings(max_examples=100, deadline=None)
def test_cuts_and_snapshots_make_no_difference(file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    try:
        check_detector(load(source(file)), events, cuts, until)
    except RunError:
        assume(False)  # a chain without end


@given(rule_files(), event_lists(), untils)
@settings(max_examples=100, deadline=None)
def test_the_staged_graph_equals_one_queue(file: File, events: list[Event], until: float | None) -> None:
    rules = load(source(file))
    try:
        expected = in_one_queue(rules, events, until)
    except RunError:
        assume(False)
    assert detections(rules, events, until=until) == expected


@given(rule_files(keyed=True), event_lists(extra=("Z",)))
@settings(max_examples=60, deadline=None)
def test_key_values_are_independent_where_a_plan_says_so(file: File, events: list[Event]) -> None:
    rules = load(source(file))
    assume(all(plan.partition for plan in rules.plans()))
    try:
        whole = detections(rules, events)
    except RunError:
        assume(False)
    last = max((e.hi for e in events), default=0)
    apart = [
        d
        for key in ("a", "b", "c")
        for d in detections(rules, [e for e in events if e.attributes.get("k") == key], until=float(last))
    ]
    assert unmatched(whole, apart) == ([], [])
