"""Equality conditions find partners by their hash: for `where x.k = y.k` not everything that is stored need be looked at.

What is found is tested like everything else, so an index only leaves out what would fail. It is made from the store whenever
it is needed, and is not part of what a snapshot keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from coincide.detection.algebra.occurrence import Occurrence
from coincide.detection.algebra.scope import Environment, environment, value_of
from coincide.expr.tree import Compare, Expr, Reference
from coincide.model.event import Value

Item = TypeVar("Item")
Values = tuple[Value, ...]
SPARE = 64
"""So many more than twice what was kept are stored before what is too old is looked for again."""


@dataclass(frozen=True, eq=False)
class Equality:
    """What an arriving occurrence and its partner have in common, and how to read it from either."""

    arriving: tuple[Callable[[Environment], Value], ...]
    stored: tuple[Callable[[Environment], Value], ...]

    def of_arriving(self, occurrence: Occurrence) -> Values | None:
        return _values(self.arriving, occurrence)

    def of_stored(self, item: Any) -> Values | None:
        """Of an occurrence, or of what has one."""
        return _values(self.stored, getattr(item, "occurrence", item))


def _values(readers: Iterable[Callable[[Environment], Value]], occurrence: Occurrence) -> Values | None:
    """None if any is null: null equals nothing."""
    names = environment(None, occurrence)
    values = tuple(read(names) for read in readers)
    return None if None in values else values


def equality(tests: Iterable[Expr], arriving: frozenset[str], stored: frozenset[str]) -> Equality | None:
    """From the tests `x.k = y.k` with one alias on each side; None if there are none."""
    pairs = [pair for test in tests if (pair := _pair(test, arriving, stored)) is not None]
    if not pairs:
        return None
    return Equality(tuple(value_of(a) for a, _ in pairs), tuple(value_of(b) for _, b in pairs))


def _pair(test: Expr, arriving: frozenset[str], stored: frozenset[str]) -> tuple[Expr, Expr] | None:
    if not (isinstance(test, Compare) and test.op == "="):
        return None
    for a, b in ((test.left, test.right), (test.right, test.left)):
        if isinstance(a, Reference) and isinstance(b, Reference) and a.alias in arriving and b.alias in stored:
            return a, b
    return None


class Index(Generic[Item]):
    """The items of one list by what they have in common, in their order there. It holds for as long as the list is the same
    and is changed with it."""

    def __init__(self, items: list[Item], equality: Equality) -> None:
        self.items = items
        self._initial_size = len(items)
        self._equality = equality
        self._by_values: dict[Values, list[Item]] = {}
        self.add(items)

    def add(self, items: Iterable[Item]) -> None:
        for item in items:
            values = self._equality.of_stored(item)
            if values is not None:
                self._by_values.setdefault(values, []).append(item)

    def partners(self, arriving: Occurrence) -> Sequence[Item]:
        values = self._equality.of_arriving(arriving)
        return () if values is None else self._by_values.get(values, ())

    def remove(self, used: Iterable[Item]) -> None:
        """From the list too. Items have no equality but their identity."""
        for item in used:
            self.items.remove(item)
            values = self._equality.of_stored(item)
            if values is not None:
                self._by_values[values].remove(item)

    @property
    def crowded(self) -> bool:
        return len(self.items) > 2 * self._initial_size + SPARE


def index_of(state: msgspec.Struct, items: list[Item], equality: Equality) -> Index[Item]:
    """The index of a state's list; the state's class must have room for it beside its fields (`dict=True`)."""
    known: Index[Item] | None = state.__dict__.get("index")
    if known is None or known.items is not items:
        known = state.__dict__["index"] = Index(items, equality)
    return known
