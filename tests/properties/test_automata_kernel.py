"""Automata in the kernel tier: the interpreter's answer, however the input is cut and wherever the tiers change over."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engines.graph import Graph
from coincide.errors import RuleError
from coincide.lang.opera.definition import Expression
from coincide.lang.opera.print import core_text
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.opera import events, expressions

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
