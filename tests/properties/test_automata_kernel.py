"""Automata in the kernel tier: the interpreter's answer, however the input is cut and wherever the tiers change over."""

from __future__ import annotations

import random
import re
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.detection.automaton import memory
from coincide.engines.graph import Graph
from coincide.errors import RuleError
from coincide.lang.opera.definition import Expression
from coincide.lang.opera.print import core_text
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.opera import TYPES, events, expressions

END = 30_000


def rules(text: str) -> Rulebook | None:
    """Some random expressions are refused: a parameter that no item binds, an item outside its domain."""
    try:
        return load(SourceText("rules.ce", text))
    except RuleError:
        return None


def text_of(body: Expression, options: str = "", name: str = "X") -> str:
    return f"detect {name} {options}= {core_text(body)}\n"


restart = st.sampled_from(["", "restart "])


@settings(deadline=None, max_examples=400)
@given(expressions(parallel=False), events(14), restart)
def test_the_kernel_is_the_interpreter(body: Expression, some: list[Event], options: str) -> None:
    book = rules(text_of(body, options))
    if book is not None:
        assert not book.plans()[0].tier_reasons()
        assert detections(book, some, tier="kernel", until=END) == detections(book, some, until=END)


TIMES = st.sampled_from(["00:00", "00:00:00 UTC", "23:59:59"])


@settings(deadline=None, max_examples=200)
@given(expressions(parallel=False), events(14), restart, st.integers(0, 14), TIMES)
def test_times_of_day(body: Expression, some: list[Event], options: str, before: int, time: str) -> None:
    """Around midnight, where two of the times are; the timer that stands first in the text waits for it."""
    book = rules(re.sub(r"= \d+ms", f"= at '{time}'", text_of(body, options), count=1))
    early = before * 1000
    shifted = [primitive(e.type, e.lo - early, e.hi - early, e.id or "", e.attributes, e.source) for e in some]
    if book is not None:
        assert not book.plans()[0].tier_reasons()
        assert detections(book, shifted, tier="kernel", until=END) == detections(book, shifted, until=END)


@settings(deadline=None, max_examples=200)
@given(expressions(parameters=True, parallel=False), events(14), restart)
def test_parameters_are_keys(body: Expression, some: list[Event], options: str) -> None:
    book = rules(text_of(body, options))
    if book is not None:
        assert not book.plans()[0].tier_reasons()
        assert detections(book, some, tier="kernel", until=END) == detections(book, some, until=END)


@settings(deadline=None, max_examples=60)
@given(expressions(parallel=False), events(), st.lists(st.integers(1, 9), max_size=3), restart)
def test_cuts_and_snapshots(body: Expression, some: list[Event], cuts: list[int], options: str) -> None:
    book = rules(text_of(body, options))
    if book is not None:
        check_detector(book, some, cuts, until=END)


@settings(deadline=None, max_examples=60)
@given(expressions(depth=2), expressions(depth=2), events(), st.lists(st.integers(1, 9), max_size=3))
def test_composites_as_input(first: Expression, second: Expression, some: list[Event], cuts: list[int]) -> None:
    """X's detections stand for B in the second detector; some are made by timers, some by sides of `||`."""
    text = text_of(first) + text_of(second, name="Y").replace("[B", "[X").replace("{B", "{X").replace(" B", " X")
    book = rules(text)
    if book is not None:
        check_detector(book, some, cuts, until=END)


@settings(deadline=None, max_examples=100)
@given(expressions(parallel=False), events(14), st.integers(0, 2**32))
def test_each_tier_goes_on_from_the_other(body: Expression, some: list[Event], seed: int) -> None:
    book = rules(text_of(body))
    if book is None:
        return
    chance = random.Random(seed)
    graphs = [Graph(book.plans(tier)) for tier in ("interpreter", "kernel")]
    ordered = sorted(some, key=lambda e: e.origin)
    state, made = graphs[0].initial(), []
    graph = graphs[0]
    while ordered:
        size = chance.randint(1, 3)
        batch, ordered = ordered[:size], ordered[size:]
        made += graph.advance(state, EventBatch(batch)).events
        other = chance.choice(graphs)
        state, graph = other.decode(graph.encode(state)), other
    made += graph.finish(state, END).events
    assert [record(d) for d in made] == detections(book, some, until=END)


@settings(deadline=None, max_examples=100)
@given(expressions(parallel=False), expressions(depth=2, parameters=True), events(20), st.booleans(), st.integers(1, 5))
def test_what_is_needed_no_more_goes(free: Expression, keyed: Expression, some: list[Event], bound: bool, size: int) -> None:
    book = rules(text_of(keyed if bound else free))
    if book is not None:
        with patch.object(memory, "LITTLE", 0), patch.object(memory, "MUCH", 0):
            found = detections(book, some, tier="kernel", cuts=range(0, len(some), size), until=END)
        assert found == detections(book, some, until=END)


MANY = [
    "([A(k = ?x)], [B(k = ?x)] [C(k = ?x)]) T = 40",
    "[A(k = ?x)] [B(k = ?x) in {B(k = ?x), D(k = ?x)}] ; [C(k = ?x)]",
    "([A], [T in {T, B}]) T = 6",
    "([A] ; [B in {B, D}]*, [T] | [C]) T = 8",
    "([A(k = ?x)], ([B(k = ?x)], [T in {T, C(k = ?x)}]) T = 20 [D(k = ?x)]) S = 90",
]


def many_events(count: int) -> list[Event]:
    chance = random.Random(1)
    return [
        primitive(
            chance.choice("ABCD"), (time - chance.choice((0, 0, 3))) * 1000, time * 1000, str(time), {"k": float(time * 7 % 5)}
        )
        for time in range(count)
    ]


@pytest.mark.parametrize("body", MANY)
@pytest.mark.parametrize("size", [170, 1_000])
def test_many_events(body: str, size: int) -> None:
    some = many_events(1_000)
    book = load(SourceText("rules.ce", f"detect X restart = {body}\n"))
    assert not book.plans()[0].tier_reasons()
    with patch.object(memory, "LITTLE", 50), patch.object(memory, "MUCH", 50):
        found = detections(book, some, tier="kernel", cuts=range(0, 1_000, size))
    assert found
    assert found == detections(book, some)


ALIASED = [
    "[A as a] [B as b]* [C] with n = count(b), k = a.k, every = join(b.k)",
    "[A as a, B(k = 1) as b in {A, B}] [A as a]* [C as b, C(k = 2)] with last = a.k, first = first(a.k), other = b.k",
    "([A as a], [B as b in {B, T-1}] | [T-1 as b in {T-1, C}]) T-1 = 3 with k = a.k, end = end(b), long = duration()",
    "[A(k = ?x) as a] [!B(k = ?x) as b in {B(k = ?x), C(k = ?x)}] with who = b.source, twice = x + x",
    "[!A(k = ?x) in {A(k = ?x), B(k = ?x)}] ([C(k = ?x) as c] | [D(k = ?x)]) with t = start(c)",
    "[A(duration() > 1 or time < 5)] [all as e] [all(k = 2)] with kind = e.type, name = e.id",
]


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(ALIASED), events(14), st.lists(st.integers(1, 13), max_size=3), restart)
def test_aliases_and_attributes(body: str, some: list[Event], cuts: list[int], options: str) -> None:
    book = load(SourceText("rules.ce", f"detect X {options}= {body}\n"))
    assert not book.plans()[0].tier_reasons()
    check_detector(book, some, cuts, until=END)


REASONS = [
    ("[A] || [B]", "uses parallelization"),
    ("([A], [B]) T = at '19:00 Europe/Berlin'", "uses a timer at a time of day in a time zone"),
    ("[A(k = ?x)] [B]", "has items or domains that do not carry every parameter in the same attribute"),
    ("[A(k = ?x, l = ?x)]", "compares several attributes of one event with a parameter"),
]


@pytest.mark.parametrize(("body", "reason"), REASONS)
def test_what_it_cannot_do_is_said(body: str, reason: str) -> None:
    (plan,) = load(SourceText("rules.ce", f"detect X = {body}\n")).plans()
    assert plan.tier_reasons() == (reason,)


def test_an_instant_is_a_timer_like_others() -> None:
    book = load(SourceText("rules.ce", "detect X = ([A], [T in {T, B}] | [C]) T = at '1970-01-01T00:00:00.006Z'\n"))
    assert not book.plans()[0].tier_reasons()
    assert detections(book, many_events(20), tier="kernel") == detections(book, many_events(20)) != []


def through_sets(text: str) -> str:
    """The same rules with a named set for each type, and what a filter says of the type left to the use of the set."""
    sets = "".join(f"set all{kind} = {{{kind}}}\n" for kind in TYPES)
    return sets + re.sub(r"(?<![\w-])([ABCD])(?![\w-])", r"all\1", text)


@settings(deadline=None, max_examples=80)
@given(expressions(parameters=True, parallel=False), events(14), restart)
def test_named_sets_say_as_much_as_their_types(body: Expression, some: list[Event], options: str) -> None:
    book, named = rules(text_of(body, options)), rules(through_sets(text_of(body, options)))
    if book is not None and named is not None:
        plan, other = book.plans()[0], named.plans()[0]
        assert (other.tier_reasons(), other.partition, other.columns) == ((), plan.partition, plan.columns)
        assert other.relevant == plan.relevant
        assert detections(named, some, tier="kernel", until=END) == detections(book, some, until=END)
