"""Values that satisfy a test, found by looking at it. Guesses: whoever asks tries them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice, product
from typing import Any

from coincide.expr.scalar import EventScope, condition
from coincide.expr.tree import And, Between, Call, Compare, Expr, In, IsNull, Like, Literal, Not, Or, Reference, without_aliases
from coincide.lang.eql.definition import Among, Matching
from coincide.lang.shared.wants import Resembling
from coincide.lang.sigma.wants import examples_of
from coincide.model.event import Event, Value, primitive
from coincide.model.numbers import is_number
from coincide.syntax import walk

Assignment = dict[str, Value]
"""Attributes of an event (and `type`, `source`) with their values."""

MOST = 8
"""Ways to satisfy one test that are looked at."""

TURNED = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
PARTS = {"contains", "starts_with", "ends_with", "matches", "stringcontains", "startswith", "endswith", "cidrmatch"}
TRIED: tuple[Value, ...] = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 100.0, -1.0, "a", "ab", "", True, False)


def ways(tests: Iterable[Expr], wanted: bool = True) -> list[Assignment]:
    """Assignments that should satisfy all tests, those that surely do first."""
    trees = list(tests)
    found = _all([_ways(tree, wanted) for tree in trees])
    checks = [check for tree in trees if (check := _checked(tree)) is not None]
    return sorted(found, key=lambda way: -sum(_passes(check, way) == wanted for check in checks))


def constants(trees: Iterable[Expr]) -> list[Value]:
    """All that trees mention, each once."""
    found = [node.value for tree in trees for node in walk(tree) if isinstance(node, Literal)]
    return list({(type(value), value): value for value in found if value is not None}.values())


def _ways(tree: Expr, wanted: bool) -> list[Assignment]:
    if isinstance(tree, Not):
        return _ways(tree.operand, not wanted)
    if isinstance(tree, And | Or):
        inner = [_ways(operand, wanted) for operand in tree.operands]
        return _all(inner) if isinstance(tree, And) is wanted else _any(inner)
    if isinstance(tree, Literal):
        return [{}] if (tree.value is True) is wanted else []
    return list(islice(_leaf(tree, wanted), MOST)) or [{}]


def _all(inner: Sequence[list[Assignment]]) -> list[Assignment]:
    """One way of each, together."""
    chosen = islice(product(*inner), 4 * MOST)
    return _distinct(merged for ways in chosen for merged in _merged(ways))


def _any(inner: Sequence[list[Assignment]]) -> list[Assignment]:
    """The first ways of all come before the second ones."""
    longest = max(map(len, inner), default=0)
    return _distinct(ways[n] for n in range(longest) for ways in inner if n < len(ways))


def _distinct(found: Iterable[Assignment]) -> list[Assignment]:
    return list({repr(sorted(way.items(), key=str)): way for way in islice(found, 8 * MOST)}.values())[:MOST]


def _merged(ways: Sequence[Assignment]) -> list[Assignment]:
    """Two texts for one attribute may both be parts of it; of two numbers, either may do."""
    nothing: Assignment = {}
    together = reduce(_joined, ways, nothing)
    return [together, {name: value for way in reversed(ways) for name, value in way.items()}]


def _joined(one: Assignment, other: Assignment) -> Assignment:
    shared = {name: _both(one[name], value) for name, value in other.items() if name in one}
    return {**one, **other, **shared}


def _both(one: Value, other: Value) -> Value:
    if isinstance(one, str) and isinstance(other, str):
        return one if other in one else other if one in other else one + other
    return other if one is None else one


# Single tests.


def _leaf(tree: Expr, wanted: bool) -> Iterator[Assignment]:
    """Of one attribute that is compared with constants; of anything else, what passes when it is tried."""
    direct: Callable[[Any, bool], Iterator[Assignment]] | None = LEAVES.get(type(tree))
    if direct is not None:
        yield from direct(tree, wanted)
    if isinstance(tree, Reference):
        yield {tree.name: wanted}
    elif not isinstance(tree, Resembling):
        yield from _tried(tree, wanted)


def _each(reference: Reference, values: Iterable[Value]) -> Iterator[Assignment]:
    return ({reference.name: value} for value in values)


def _compare(tree: Compare, wanted: bool) -> Iterator[Assignment]:
    op = tree.op if wanted else TURNED[tree.op]
    for reference, other, sign in ((tree.left, tree.right, op), (tree.right, tree.left, MIRRORED[op])):
        if isinstance(reference, Reference) and isinstance(other, Literal):
            yield from _each(reference, satisfying(sign, other.value))


def satisfying(op: str, bound: Value) -> Iterator[Value]:
    """Values that stand in this relation to the bound."""
    if is_number(bound):
        yield from ([bound] if op in ("=", "<=", ">=") else [])
        yield from ([bound + 1] if op in (">", ">=", "!=") else [bound - 1] if op in ("<", "<=") else [])
    elif isinstance(bound, str):
        yield from ([bound] if op in ("=", "<=", ">=") else [""] if op == "<" and bound else [f"{bound}x"])
    elif isinstance(bound, bool):
        yield from ([bound] if op in ("=", "<=", ">=") else [])
        yield from ([] if op == "=" else [not bound])


def _in(tree: In | Among, wanted: bool) -> Iterator[Assignment]:
    if isinstance(tree.operand, Reference):
        values = [option.value for option in tree.options if isinstance(option, Literal)]
        if wanted is not tree.negated:
            yield from _each(tree.operand, values)
        else:
            yield {tree.operand.name: _none_of(values)}


def _none_of(values: Sequence[Value]) -> Value:
    numbers = [value for value in values if is_number(value)]
    return max(numbers) + 1 if numbers else "other"


def _between(tree: Between, wanted: bool) -> Iterator[Assignment]:
    if isinstance(tree.operand, Reference):
        inside = wanted is not tree.negated
        for op, bound in ((">=" if inside else "<", tree.low), ("<=" if inside else ">", tree.high)):
            if isinstance(bound, Literal):
                yield from _each(tree.operand, satisfying(op, bound.value))


def _like(tree: Like, wanted: bool) -> Iterator[Assignment]:
    if isinstance(tree.operand, Reference) and isinstance(tree.pattern, Literal) and isinstance(tree.pattern.value, str):
        fits = tree.pattern.value.replace("%", "").replace("_", "a")
        yield {tree.operand.name: fits if wanted is not tree.negated else f"not {fits}"}


def _null(tree: IsNull, wanted: bool) -> Iterator[Assignment]:
    if isinstance(tree.operand, Reference):
        yield {tree.operand.name: None if wanted is not tree.negated else 1.0}


def _resembling(tree: Resembling, wanted: bool) -> Iterator[Assignment]:
    yield from _each(tree.operand, tree.examples if wanted else (None, "other"))


def _matching(tree: Matching, wanted: bool) -> Iterator[Assignment]:
    if isinstance(tree.operand, Reference):
        texts = [str(pattern.value) for pattern in tree.patterns]
        fitting = [e for text in texts for e in (examples_of(text) if tree.is_regular else [_without_wildcards(text)])]
        yield from _each(tree.operand, fitting if wanted else ["other"])


def _without_wildcards(text: str) -> str:
    return text.replace("*", "").replace("?", "a")


def _call(tree: Call, wanted: bool) -> Iterator[Assignment]:
    field, *rest = tree.arguments or (tree,)
    if isinstance(field, Reference) and tree.name.lower().removesuffix("~") in PARTS:
        texts = [part.value for part in rest if isinstance(part, Literal) and isinstance(part.value, str)]
        if tree.name == "matches":
            texts = [example for text in texts for example in examples_of(text)]
        if tree.name.lower() == "cidrmatch":
            texts = [text.partition("/")[0] for text in texts]
        yield from _each(field, texts if wanted else ["other"])


LEAVES: dict[type, Callable[[Any, bool], Iterator[Assignment]]] = {
    Compare: _compare,
    In: _in,
    Among: _in,
    Between: _between,
    Like: _like,
    IsNull: _null,
    Resembling: _resembling,
    Matching: _matching,
    Call: _call,
}


# By trying.


def _tried(tree: Expr, wanted: bool) -> Iterator[Assignment]:
    """Of an expression of the shared language, about one or two attributes."""
    check = _checked(tree)
    names = sorted({node.name for node in walk(tree) if isinstance(node, Reference)})
    if check is None or not 1 <= len(names) <= 2:
        return
    given = [c for c in constants([tree]) if not isinstance(c, bool)]
    around = [n for c in given if is_number(c) for n in (c, c + 1, c - 1)]
    pool = list(dict.fromkeys([*around, *(c for c in given if isinstance(c, str)), *TRIED]))
    for values in product(pool, repeat=len(names)):
        way = dict(zip(names, values, strict=True))
        if _passes(check, way) is wanted:
            yield way


def _checked(tree: Expr) -> Callable[[Event], bool] | None:
    """The test of one event, if the shared language can say it."""
    try:
        return condition(without_aliases(tree), EventScope())
    except Exception:  # a node, or a function, that only some language has
        return None


def _passes(check: Callable[[Event], bool], way: Assignment) -> bool:
    try:
        return check(event_with(way))
    except (ArithmeticError, TypeError, ValueError):
        return False


def event_with(way: Assignment) -> Event:
    own = {name: value for name, value in way.items() if name not in ("type", "source")}
    source = way.get("source")
    return primitive(str(way.get("type", "")), 0, 0, "0", own, source if isinstance(source, str) else None)
