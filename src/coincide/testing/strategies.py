"""Hypothesis strategies: random expressions and the awkward values that they should meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from coincide.expr.tree import (
    Alias,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
    transform,
)
from coincide.expr.vector import Table, milliseconds_of, spaces_of
from coincide.model.column import Column, column_of
from coincide.model.event import Event, Value, primitive
from coincide.model.numbers import EXACT, LEAST, MOST, is_number, number_of
from coincide.model.space import Space

T = TypeVar("T")

ATTRIBUTES = ("n", "m", "k", "j", "s", "t", "b", "x")  # x is of mixed types
KINDS = {"n": "number", "m": "number", "k": "whole", "j": "whole", "s": "text", "t": "text", "b": "flag", "x": "mixed"}

AWKWARD_NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, -0.49999999999999994, 0.1, 1e-9, 1e16, 1e17,
    4503599627370495.5, 4503599627370497.0, -4503599627370495.5, 9007199254740993.0, 1e300, -1e300, 1.7976931348623157e308,
    5e-324, -5e-324, 2.2250738585072014e-308, 12345.678, 100.0, -7.25,
)  # fmt: skip
AWKWARD_TEXTS = (
    "", "a", "A", "ab", "aB", "b", " a ", "%", "a%", "_", "\\", "a\\%b", "'", '"', "é", "e\u0301", "ß", "İ", "Σας", "\uffff",
    "😀", "😀a", "\U00010000", "\ue000", "1", "1.5", "true", "null", ".", "a.b", "(", "[", "\u00a0x", "\u2028",
)  # fmt: skip

numbers: st.SearchStrategy[float] = st.one_of(
    st.sampled_from(AWKWARD_NUMBERS),
    st.integers(-5, 5).map(float),
    st.integers(-40, 40).map(lambda i: i / 2 + 1e-12 * (i % 3 - 1)),
    st.floats(allow_nan=False, allow_infinity=False),
)
wholes: st.SearchStrategy[float] = st.one_of(
    st.builds(lambda border, step: number_of(border + step), st.sampled_from((-EXACT, EXACT, MOST - 3)), st.integers(-3, 3)),
    st.builds(lambda step: number_of(LEAST + step), st.integers(0, 3)),
    st.integers(-3, 3).map(float),
    st.integers(LEAST, MOST).map(number_of),
)
"""Whole numbers, many of them near the ends of what doubles and 64 bits hold."""

texts: st.SearchStrategy[str] = st.one_of(
    st.sampled_from(AWKWARD_TEXTS),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=4),
)


constants_of_numbers: st.SearchStrategy[float] = numbers | wholes


def values(kind: str = "mixed") -> st.SearchStrategy[Value]:
    """Values of an attribute of that kind, nulls among them."""
    kinds: dict[str, st.SearchStrategy[Value]] = {"number": numbers, "text": texts, "flag": st.booleans()}
    if kind == "whole":
        return st.none() | wholes
    return st.one_of(st.none(), *([kinds[kind]] if kind in kinds else kinds.values()))


def attributes() -> st.SearchStrategy[dict[str, Value]]:
    return st.fixed_dictionaries({name: values(kind) for name, kind in KINDS.items()})


spaces: st.SearchStrategy[Space | None] = st.one_of(
    st.none(),
    st.builds(Space, x=st.sampled_from([0.0, 3.0, -3.0]), y=st.sampled_from([0.0, 4.0, -4.0])),
    st.builds(Space, lat=st.floats(-90, 90), lon=st.floats(-180, 180), zone=st.sampled_from([None, "gate"])),
    st.builds(Space, zone=st.sampled_from(["gate", "hall"])),
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    lo = draw(st.integers(-(10**15), 2 * 10**16))
    hi = lo + draw(st.sampled_from([0, 1, 500, 1000, 123_456_789]))
    identifier, source = draw(st.sampled_from(["1", "2", "q9"])), draw(st.sampled_from([None, "nyse", "a"]))
    return primitive(draw(st.sampled_from(["a", "b", "ab"])), lo, hi, identifier, draw(attributes()), source, draw(spaces))


def table_of(events: Sequence[Event]) -> Table:
    """Events as columns."""
    lo, hi = (np.array([getattr(e, name) for e in events], np.int64) for name in ("lo", "hi"))
    columns = {name: column_of([e.attributes.get(name) for e in events]) for name in ATTRIBUTES}
    columns |= {name: column_of([getattr(e, name) for e in events]) for name in ("type", "id", "source")}
    columns["time"] = Column(len(events), numbers=milliseconds_of(hi))
    return Table(len(events), columns, lo, hi, spaces_of([e.space for e in events]))


def samples(strategy: st.SearchStrategy[T], count: int, start: int = 0) -> list[T]:
    """Examples, the same ones each time, for a test that must take many at once."""
    found: list[T] = []

    @seed(start)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


# Trees that the parser can make.

EVENT_CALLS = ("start", "end", "duration", "zone")
TEXT_TO_TEXT = ("lower", "upper", "trim")
TESTS_OF_TEXTS = ("contains", "starts_with", "ends_with", "matches")
NUMERIC = ("abs", "round", "floor", "ceil", "sqrt")


def negative(operand: Expr) -> Expr:
    """As the parser does it: a minus before a number belongs to the number."""
    if isinstance(operand, Literal) and is_number(operand.value):
        return Literal(-operand.value)
    return Negate(operand)


def leaves(extra: Sequence[Expr] = ()) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.sampled_from([Reference(a) for a in ATTRIBUTES]),
        st.sampled_from([Reference("type"), Reference("source"), Reference("missing"), *extra]),
        st.builds(Literal, st.one_of(constants_of_numbers, texts, st.booleans(), st.none())),
    )


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    some = st.lists(inner, min_size=1, max_size=4).map(tuple)

    def call(names: Sequence[str], arguments: st.SearchStrategy[tuple[Expr, ...]]) -> st.SearchStrategy[Expr]:
        return st.builds(Call, st.sampled_from(names), arguments)

    return st.one_of(
        st.builds(Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), inner, inner),
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Not, inner),
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner),
        st.builds(negative, inner),
        st.builds(In, inner, some, st.booleans()),
        st.builds(
            In,
            inner,
            st.lists(st.builds(Literal, texts | constants_of_numbers), min_size=3, max_size=5).map(tuple),
            st.booleans(),
        ),
        st.builds(Between, inner, inner, inner, st.booleans()),
        st.builds(Like, inner, inner, st.booleans()),
        st.builds(IsNull, inner, st.booleans()),
        call(NUMERIC, st.tuples(inner)),
        call(("round",), st.tuples(inner, st.builds(Literal, st.integers(-3, 3).map(float)))),
        call(("power", *TESTS_OF_TEXTS), st.tuples(inner, inner)),
        call(("length", *TEXT_TO_TEXT), st.tuples(inner)),
        call(("min", "max", "concat", "coalesce"), some),
        call(("if",), st.tuples(inner, inner, inner)),
    )


@lru_cache
def sensible(kind: str, depth: int, extra: tuple[Expr, ...] = ()) -> st.SearchStrategy[Expr]:
    """Trees whose types mostly fit, so that few of them are always null."""
    names = [Reference(name) for name, k in KINDS.items() if k in (kind, "mixed") or (kind == "number" and k == "whole")]
    constants: dict[str, st.SearchStrategy[Value]] = {"number": constants_of_numbers, "text": texts, "flag": st.booleans()}
    leaf: st.SearchStrategy[Expr] = st.sampled_from(names) | st.sampled_from(names) | st.builds(Literal, constants[kind])
    if extra:
        leaf |= st.sampled_from(extra)
    if depth == 0:
        return leaf
    number, text, flag = (sensible(k, depth - 1, extra) for k in ("number", "text", "flag"))
    same = {"number": number, "text": text, "flag": flag}[kind]

    def call(names: Sequence[str], *arguments: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.builds(Call, st.sampled_from(names), st.tuples(*arguments))

    def test(operand: st.SearchStrategy[Expr]) -> list[st.SearchStrategy[Expr]]:
        return [
            st.builds(Compare, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), operand, operand),
            st.builds(In, operand, st.lists(operand, min_size=1, max_size=4).map(tuple), st.booleans()),
            st.builds(Between, operand, operand, operand, st.booleans()),
        ]

    ways: dict[str, list[st.SearchStrategy[Expr]]] = {
        "number": [
            st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), number, number),
            st.builds(negative, number),
            call(NUMERIC, number),
            call(("min", "max", "power"), number, number),
            call(("length",), text),
        ],
        "text": [call(TEXT_TO_TEXT, text), call(("min", "max", "concat"), text, text), call(("concat",), text, number)],
        "flag": [
            *test(number),
            *test(text),
            st.builds(Compare, st.sampled_from(["=", "<="]), flag, flag),
            st.builds(And, st.tuples(flag, flag)),
            st.builds(Or, st.tuples(flag, flag)),
            st.builds(Not, flag),
            st.builds(IsNull, number | text | flag, st.booleans()),
            st.builds(Like, text, text, st.booleans()),
            call(TESTS_OF_TEXTS, text, text),
        ],
    }
    return st.one_of(leaf, *ways[kind], call(("coalesce",), same, same), call(("if",), flag, same, same))


def trees(extra: tuple[Expr, ...] = (), max_leaves: int = 12, depth: int = 3) -> st.SearchStrategy[Expr]:
    """Expressions about one event. `extra`: further leaves, such as `start()`."""
    wild = st.recursive(leaves(extra), _grown, max_leaves=max_leaves)
    return st.one_of(wild, *(sensible(kind, depth, extra) for kind in ("number", "text", "flag", "flag")))


EVENT_LEAVES: tuple[Expr, ...] = (
    Reference("time"),
    Reference("id"),
    *(Call(name, ()) for name in EVENT_CALLS),
    Call("within_box", (Literal(-3.0), Literal(0.0), Reference("n"), Literal(4.0))),
    Call("within_radius", (Literal(0.0), Literal(0.0), Literal(5.0))),
    Call("within_radius", (Literal(48.0), Reference("n"), Literal(5e6))),
)


@st.composite
def joined_trees(draw: st.DrawFn, aliases: Sequence[str], max_leaves: int = 12) -> Expr:
    """Expressions about several events: every reference gets an alias."""
    tree = draw(trees(EVENT_LEAVES, max_leaves))

    def named(node: Expr) -> Expr:
        if isinstance(node, Reference):
            return Reference(node.name, draw(st.sampled_from(aliases)))
        if isinstance(node, Call) and node.name in (*EVENT_CALLS, "within_box", "within_radius"):
            return Call(node.name, (Alias(draw(st.sampled_from(aliases))), *node.arguments))
        return node

    return transform(tree, named)
