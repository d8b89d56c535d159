"""Situations in the kernel tier: columns in, the same answers as the interpreter, whatever the cuts and snapshots."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide.detection.situation import plan as situations
from coincide.detection.situation.operators import BEHAVIOURS
from coincide.detection.situation.plan import SituationPlan
from coincide.engines import together
from coincide.engines.graph import Graph
from coincide.errors import RunError
from coincide.expr.tree import Call, Literal
from coincide.lang.amit.attributes import parse_text
from coincide.lang.amit.definition import EventKey, EventType, File, Key, Lifespan, Operand, Situation, SituationAttribute
from coincide.lang.amit.functions import expression_functions
from coincide.lang.amit.print import print_file
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.model.table import table_of
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.amit import event_lists, rule_files
from coincide.testing.check import check_detector

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


@given(rule_files(cycles=False), event_lists(), cuts, untils)
@settings(max_examples=300, deadline=None)
def test_the_compiled_loop_equals_the_interpreter(file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    within = replace(file, items=tuple(within_the_loop(i) if isinstance(i, Situation) else i for i in file.items))
    rules = load(SourceText("rules.amit.xml", print_file(within)))
    assert all(isinstance(plan, SituationPlan) and not plan.loop_reasons() for plan in rules.plans())
    check(within, events, cuts, until)


def told_by_changes(rules: Rulebook, events: Sequence[Event], cuts: Sequence[int], until: float | None) -> Answer:
    """Only what has changed is kept after each batch, and every second one begins with what was kept."""
    graph = Graph(rules.plans("kernel"))
    state = graph.initial()
    base, changes = graph.encode(state), list[bytes]()
    ordered = sorted(events, key=lambda e: e.origin)
    made: list[Event] = []
    bounds = [0, *sorted(c for c in cuts if 0 < c < len(ordered)), len(ordered)]
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        made += graph.advance(state, EventBatch(table=table_of(ordered[start:end]))).events
        if graph.tells_changes(state) and number % 5 != 4:
            changes.append(graph.changes(state))
        else:
            base, changes = graph.changes(state, True) if graph.tells_changes(state) and number % 2 else graph.encode(state), []
        if number % 2:
            state = graph.with_changes(base, changes)
    made += graph.finish(state, until).events
    statistics = graph.statistics(state)
    return [record(d) for d in made], {name: statistics.get(name) for name in COMPARED}


@pytest.mark.parametrize("spare", [0, 4096])
@given(file=rule_files(cycles=False), events=event_lists(), cuts=cuts, until=untils)
@settings(max_examples=60, deadline=None)
def test_changes_are_enough(spare: int, file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    """Also if what nobody refers to goes after every step (`spare`)."""
    within = replace(file, items=tuple(within_the_loop(i) if isinstance(i, Situation) else i for i in file.items))
    rules = load(SourceText("rules.amit.xml", print_file(within)))
    expected = answer(rules, events, "interpreter", (), False, until)
    with patch("coincide.detection.situation.kernel.state.SPARE", spare):
        for where in (cuts, range(len(events))):
            assert told_by_changes(rules, events, where, until) == expected


@given(rule_files(2, cycles=False), event_lists(150), cuts, untils)
@settings(max_examples=100, deadline=None)
def test_long_lists_of_candidates(file: File, events: list[Event], cuts: list[int], until: float | None) -> None:
    """Candidates are many where nothing is consumed or few things match: then indexes serve instead of scans."""
    within = replace(file, items=tuple(_many(i) if isinstance(i, Situation) else i for i in file.items))
    rules = load(SourceText("rules.amit.xml", print_file(within)))
    expected = answer(rules, events, "interpreter", (), False, until)
    for where in ((), cuts):
        assert answer(rules, events, "kernel", where, bool(where), until) == expected


def _many(situation: Situation) -> Situation:
    """A join by equality of what is hardly ever equal; others as the loop can do them."""
    situation = within_the_loop(situation)
    operator = situation.operator
    if not BEHAVIOURS[operator.kind].joins or len(operator.operands) < 2:
        return situation
    last = f"o{len(operator.operands) - 1}"
    text = f"o0.x = {last}.x and o0.time + 3 < {last}.time" if situation.name == "s0" else f"o0.x = {last}.x and o0.k = {last}.k"
    once = tuple(replace(o, quantifier="first" if o.quantifier == "each" else o.quantifier) for o in operator.operands)
    return replace(situation, operator=replace(operator, operands=once, where=parse_text(text, expression_functions())))


def within_the_loop(situation: Situation) -> Situation:
    """The situation with what the compiled loop cannot do left out."""
    operator = situation.operator
    kind = "atmost" if operator.kind == "at" else operator.kind
    mode = "deferred" if kind in ("not", "atmost", "unless") else operator.mode
    behaviour = BEHAVIOURS[kind]
    counting, joins, timed = behaviour.counts, behaviour.joins, behaviour.delays or behaviour.ticks
    operands = operator.operands or (() if behaviour.ticks else (Operand("A", "o0", quantifier="each"),))
    plain = not joins or mode == "deferred"
    operator = replace(
        operator,
        kind=kind,
        mode=mode,
        operands=tuple(_plain(o, kind, plain) for o in operands),
        where=None if kind == "not" else operator.where,
        keys=() if kind == "not" else operator.keys,
        repeat=operator.repeat if joins or kind in ("atleast", "nth", "every") else "always",
        quantity=max(operator.quantity, 1) if counting else 1,
        interval=operator.interval if timed else 0,
        pattern="",
        correlate=operator.correlate if behaviour.delays else "ignore",
    )
    attributes = tuple(
        a for a in situation.attributes if joins or not isinstance(a.expression, Call) or a.expression.name != "end"
    )
    return replace(situation, operator=operator, attributes=_with_all(attributes))


def _plain(operand: Operand, kind: str, plain: bool) -> Operand:
    if plain:
        operand = replace(operand, override=None, retain=None, consumption=None)
    joins, quantified = BEHAVIOURS[kind].joins, BEHAVIOURS[kind].counts or kind == "unless"
    strict = (joins or quantified) and operand.strict and (operand.quantifier != "each" or kind == "unless")
    quantifier = operand.quantifier if joins or quantified else "each"
    weights = (operand.weight, operand.counted) if quantified else (1, True)
    return replace(operand, strict=strict, quantifier=quantifier, weight=weights[0], counted=weights[1])


def _with_all(attributes: tuple[SituationAttribute, ...]) -> tuple[SituationAttribute, ...]:
    """Whatever reads the situation finds all attributes that keys and conditions name."""
    have = {a.name for a in attributes}
    kinds = {"x": "number", "k": "string", "b": "boolean"}
    return (*attributes, *(SituationAttribute(name, kind, Literal(None)) for name, kind in kinds.items() if name not in have))


@settings(deadline=None, max_examples=60)
@given(rule_files(cycles=False), event_lists(extra=()), st.lists(st.integers(1, 23), max_size=3), st.integers(0, 999))
def test_any_situations_of_one_form(file: File, some: list[Event], cuts: list[int], seed: int) -> None:
    """Copies with other types and thresholds; what is counted is the same, too."""
    with patch.object(situations, "MOST", 2), patch.object(together, "SEVERAL", 2):
        rules = load(SourceText("rules.amit.xml", _copies(file, Random(seed))))
        check_detector(rules, some, cuts, 30_000.0)
        expected = answer(rules, some, "interpreter", (), False, 30_000.0)
        for snapshots in (False, True):
            assert answer(rules, some, "kernel", cuts, snapshots, 30_000.0) == expected


THRESHOLDS = (None, "x > 0", "k = 'a'", "x >= 2")


def _copies(file: File, dice: Random) -> str:
    """Each situation has a lifespan of its own, and stands there with three orders of types."""
    kinds = [item for item in file.items if isinstance(item, EventType)]
    lifespans = {item.name: item for item in file.items if isinstance(item, Lifespan)}
    texts = [print_file(File((*kinds, Key("K", tuple(EventKey(kind.name, "k") for kind in kinds)))))]
    for n, situation in enumerate(within_the_loop(item) for item in file.items if isinstance(item, Situation)):
        for others in ("ABC", "BCA", "CAB"):
            name = f"s{n}{others}"
            operands = tuple(_another(operand, dice) for operand in situation.operator.operands)
            own = replace(situation, name=name, lifespan=f"l{name}", operator=replace(situation.operator, operands=operands))
            text = print_file(File((replace(lifespans[situation.lifespan], name=f"l{name}"), own)))
            texts.append(re.sub(r"\b[ABC]\b", lambda found, others=others: others["ABC".index(found[0])], text))
    return "\n".join(["<amit>", *(re.sub(r"</?amit[^>]*>|<\?xml[^>]*>", "", text) for text in texts), "</amit>"])


def _another(operand: Operand, dice: Random) -> Operand:
    """With another threshold, of an external event."""
    text = dice.choice(THRESHOLDS)
    test = None if text is None else parse_text(text, expression_functions())
    return replace(operand, event=operand.event if operand.event in "ABC" else "A", threshold=test)
