"""Random expressions on random events: the automaton against what the specification defines it by."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engines.policies import run_with_policy
from coincide.errors import RuleError
from coincide.expr.tree import Compare, Literal, Reference
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Bind,
    Condition,
    Detect,
    Difference,
    Element,
    Expression,
    Iteration,
    Parallel,
    nullable,
)
from coincide.lang.opera.parse import parse
from coincide.lang.opera.print import core_text, print_file
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.opera import KEYS, events, expressions

Found = set[tuple[str, tuple[str, ...]]]


def text_of(body: Expression, options: str = "") -> str:
    return f"detect X {options}= {core_text(body)}\n"


def rules(body: Expression, options: str = "") -> Rulebook | None:
    """Some random expressions are refused: a parameter that no item binds, an item outside its domain."""
    try:
        return load(SourceText("rules.ce", text_of(body, options)))
    except RuleError:
        return None


def found(book: Rulebook, given_events: list[Event]) -> Found:
    made = detections(book, given_events, until=30_000)
    return {(str(d["time"]), tuple(d["from"])) for d in made}  # type: ignore[arg-type]


@given(expressions(), st.booleans())
def test_printing_and_parsing(body: Expression, restart: bool) -> None:
    text = text_of(body, "restart " if restart else "")
    try:
        file = parse(SourceText("rules.ce", text))
    except RuleError:
        return
    (statement,) = file.statements
    assert isinstance(statement, Detect)
    assert statement.body == body
    assert print_file(file) == text


@settings(deadline=None, max_examples=60)
@given(expressions(), events(), st.lists(st.integers(1, 9), max_size=3), st.booleans())
def test_splits_and_snapshots(body: Expression, some: list[Event], cuts: list[int], restart: bool) -> None:
    book = rules(body, "restart " if restart else "")
    if book is not None:
        check_detector(book, some, cuts, until=30_000)


def variants(node: Any, forking: bool = True) -> list[Any]:
    """The expression with one side chosen of every alternation that forks, in all ways, written out."""
    if isinstance(node, tuple):
        return list(product(*(variants(part, forking) for part in node)))
    if not isinstance(node, Element) or isinstance(node, Parallel):
        return [node]
    if isinstance(node, Alternation) and forking and not nullable(node):
        return [variant for part in node.parts for variant in variants(part, forking)]
    inside = forking and not isinstance(node, Iteration | Alternation)
    choices = [variants(getattr(node, f.name), inside) for f in fields(node)]
    names = [f.name for f in fields(node)]
    return [replace(node, **dict(zip(names, values, strict=True))) for values in product(*choices)]


@settings(deadline=None, max_examples=60)
@given(expressions(), events())
def test_variants_are_the_union_of_their_detections(body: Expression, some: list[Event]) -> None:
    book = rules(body)
    if book is None:
        return
    books = [rules(variant) for variant in set(variants(body))]
    if None not in books:
        assert found(book, some) == set().union(*(found(other, some) for other in books if other is not None))


def spelled_out(node: Any) -> Any:
    """The expression with every `[!E in S]` as `[S \\ E in S]` (OP-3)."""
    if isinstance(node, tuple):
        return tuple(map(spelled_out, node))
    if isinstance(node, Atom) and node.negated:
        (item,) = node.items
        assert node.domain is not None
        return Atom((replace(item, events=Difference(node.domain, item.events)),), node.domain)
    if isinstance(node, Element):
        return replace(node, **{f.name: spelled_out(getattr(node, f.name)) for f in fields(node)})
    return node


@settings(deadline=None, max_examples=80)
@given(expressions(parameters=True), events(), st.sampled_from(["interpreter", "kernel"]))
def test_a_negation_is_a_difference(body: Expression, some: list[Event], tier: str) -> None:
    book, other = rules(body), rules(spelled_out(body))
    assert (book is None) == (other is None)
    if book is not None and other is not None:
        assert detections(book, some, tier=tier, until=30_000) == detections(other, some, tier=tier, until=30_000)


def assigned(node: Any, value: float) -> Any:
    """The expression with every `k = ?x` replaced by `k = value`."""
    if isinstance(node, tuple):
        return tuple(assigned(part, value) for part in node)
    if isinstance(node, Bind):
        return Condition(Compare("=", Reference(node.attribute), Literal(value)))
    if isinstance(node, Element):
        return replace(node, **{f.name: assigned(getattr(node, f.name), value) for f in fields(node)})
    return node


@settings(deadline=None, max_examples=80)
@given(expressions(parameters=True), expressions(depth=1), events(), st.booleans())
def test_parameters_are_the_union_over_all_values(bound: Expression, free: Expression, some: list[Event], mixed: bool) -> None:
    body = Alternation((bound, free)) if mixed else bound
    book = rules(body)
    if book is None:
        return
    others = [rules(assigned(body, value)) for value in (*KEYS, 99.0)]
    assert found(book, some) == set().union(*(found(other, some) for other in others if other is not None))


@settings(deadline=None, max_examples=60)
@given(expressions(depth=2), events(), st.randoms(use_true_random=False))
def test_guaranteed_detection_does_not_depend_on_arrival(body: Expression, some: list[Event], chance: random.Random) -> None:
    """Each source publishes in its order; however the sources interleave, the answer is that of the total order."""
    try:
        book = load(SourceText("rules.ce", "sources s, t, u\n" + text_of(body)))
    except RuleError:
        return
    queues = {s: sorted((e for e in some if e.source == s), key=lambda e: e.origin) for s in ("s", "t", "u")}
    arrivals: list[Event] = []
    while any(queues.values()):
        arrivals.append(queues[chance.choice([s for s in queues if queues[s]])].pop(0))
    ends = [primitive("heartbeat", 40_000, 40_000, f"end {s}", {}, s) for s in ("s", "t", "u")]
    result = run_with_policy(book, [*arrivals, *ends], "guaranteed")
    assert not any(result.late.values())
    assert [record(d) for d in result.detections] == detections(book, some, until=39_999)
