"""Random Opera expressions and events, for property tests."""

from __future__ import annotations

from functools import cache, partial
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from coincide.expr.tree import Compare, Literal, Reference
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Bind,
    Concatenation,
    Condition,
    Empty,
    Expression,
    Group,
    Item,
    Iteration,
    Named,
    Parallel,
    Sequence,
    Timing,
    Union,
    chained,
)
from coincide.lang.shared.times import Duration
from coincide.model.event import Event, Value, primitive

TYPES = ("A", "B", "C", "D")
KEYS = (1.0, 2.0, True, 2.0**53, 2**53 + 1)

Names = SearchStrategy[Named]


def expressions(depth: int = 3, parameters: bool = False, parallel: bool = True) -> SearchStrategy[Expression]:
    """Expressions that can be detected; timers are named T-1, T-2, … by their depth."""
    return _matching(depth, parameters, parallel)


def _names(parameters: bool) -> Names:
    plain = st.sampled_from(TYPES).map(Named)
    tested = st.builds(_tested, st.sampled_from(TYPES), st.sampled_from(KEYS))
    bound = st.sampled_from(TYPES).map(lambda name: Named(name, (Bind("k", "x"),)))
    return bound if parameters else st.one_of(plain, plain, tested)


def _tested(name: str, key: float | bool) -> Named:
    return Named(name, (Condition(Compare("=", Reference("k"), Literal(key))),))


@cache
def _matching(depth: int, parameters: bool, parallel: bool) -> SearchStrategy[Expression]:
    """Expressions that match at least one event."""
    names, timer = _names(parameters), f"T-{depth}"
    atoms: SearchStrategy[Expression] = _atoms(names)
    if depth == 0:
        return atoms
    inner, some = _matching(depth - 1, parameters, parallel), _any(depth - 1, parameters, parallel)
    return st.one_of(
        atoms,
        st.tuples(inner, some).map(partial(_chain, Concatenation)),
        st.tuples(some, inner).map(partial(_chain, Concatenation)),
        st.tuples(inner, some).map(partial(_chain, Sequence)),
        st.tuples(inner, inner).map(partial(_chain, Alternation)),
        *([st.builds(Parallel, inner, inner)] if parallel else []),
        st.builds(Group, inner, st.lists(names, min_size=1, max_size=2).map(lambda sets: Union(tuple(sets)))),
        st.builds(_timing, inner, st.one_of(some, _timer_atoms(names, timer)), st.just(timer), st.integers(0, 4)),
    )


def _chain(kind: type[Concatenation | Sequence | Alternation], pair: tuple[Expression, Expression]) -> Expression:
    return chained(kind, *pair)


@cache
def _any(depth: int, parameters: bool, parallel: bool) -> SearchStrategy[Expression]:
    """Expressions that may match without any event."""
    matching = _matching(depth, parameters, parallel)
    return st.one_of(matching, matching.map(Iteration), matching.map(lambda body: chained(Alternation, body, Empty())))


def _atoms(names: Names) -> SearchStrategy[Expression]:
    domain = st.lists(names, min_size=1, max_size=2)
    return st.one_of(
        names.map(lambda name: Atom((Item(name),))),
        st.builds(lambda name, more: Atom((Item(name),), Union((name, *more))), names, domain),
        st.builds(lambda name, more: Atom((Item(name),), Union((name, *more)), True), names, domain),
    )


def _timer_atoms(names: Names, timer: str) -> SearchStrategy[Expression]:
    return names.map(lambda name: Atom((Item(Named(timer)),), Union((Named(timer), name))))


def _timing(first: Expression, second: Expression, timer: str, milliseconds: int) -> Expression:
    return Timing(first, second, timer, Duration(milliseconds * 1000, f"{milliseconds}ms"))


def events(most: int = 10, sources: tuple[str, ...] = ("s", "t", "u")) -> SearchStrategy[list[Event]]:
    """Events whose times, some of them intervals, are close to one another."""
    return st.builds(_events, st.integers(0, 2**32 - 1), st.integers(0, most).map(lambda fewer: most - fewer), st.just(sources))


def _events(seed: int, count: int, sources: tuple[str, ...]) -> list[Event]:
    """Hypothesis chooses the seed and how many: choice by choice, it would try few and equal ones most of the time."""
    dice = Random(seed)
    found = []
    for number in range(1, count + 1):
        hi, key = dice.randint(0, 12), dice.choice((*KEYS, *KEYS, None))
        lo = hi - dice.choice((0, 0, 0, 2))
        attributes: dict[str, Value] = {} if key is None else {"k": key}
        found.append(primitive(dice.choice(TYPES), lo * 1000, hi * 1000, str(number), attributes, dice.choice(sources)))
    return found
