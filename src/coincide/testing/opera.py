"""Random Opera expressions and events, for property tests."""

from __future__ import annotations

from functools import cache, partial

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
from coincide.lang.opera.times import Duration
from coincide.model.event import Event, primitive

TYPES = ("A", "B", "C", "D")
KEYS = (1.0, 2.0, True)

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
    one = st.builds(
        lambda kind, hi, length, key, source: primitive(
            kind, (hi - length) * 1000, hi * 1000, "0", {} if key is None else {"k": key}, source
        ),
        st.sampled_from(TYPES),
        st.integers(0, 12),
        st.sampled_from((0, 0, 0, 2)),
        st.sampled_from((*KEYS, None)),
        st.sampled_from(sources),
    )
    return st.lists(one, max_size=most).map(_with_ids)


def _with_ids(found: list[Event]) -> list[Event]:
    return [
        primitive(e.type, e.lo, e.hi, str(number), e.attributes, e.source) for number, e in enumerate(found, 1)
    ]  # the id decides ties
