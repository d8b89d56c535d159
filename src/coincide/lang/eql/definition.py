"""Queries of EQL as frozen data. Conditions are the shared tree, with the tests that only EQL has (section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from coincide.errors import Diagnostic
from coincide.expr.tree import Expr, Literal
from coincide.lang.shared.about import About
from coincide.source import Span

FILTER, SEQUENCE, SAMPLE, JOIN = "filter", "sequence", "sample", "join"

TIMESTAMP = "@timestamp"
HIDDEN = frozenset({"type", "id", "time", "source", "space", "from"})
"""Names of keys and fields that a detection does not show: its own envelope has them."""


@dataclass(frozen=True)
class Among(Expr):
    """`in` and `in~`, or `not in` and `not in~`."""

    operand: Expr
    options: tuple[Expr, ...]
    any_case: bool = False
    negated: bool = False


@dataclass(frozen=True)
class Matching(Expr):
    """op is one of `:`, `like`, `like~`, `regex`, `regex~`; one of the patterns matches the whole text."""

    op: str
    operand: Expr
    patterns: tuple[Literal, ...]

    @property
    def any_case(self) -> bool:
        return self.op == ":" or self.op.endswith("~")

    @property
    def is_regular(self) -> bool:
        return self.op.startswith("regex")


@dataclass(frozen=True)
class Filter:
    """A test of one event; a category of None is `any`."""

    category: str | None
    condition: Expr
    span: Span | None = field(default=None, compare=False, repr=False)  # of the category


@dataclass(frozen=True)
class Key:
    """A value that events of one sequence have in common; `optional` (`?field`): null is a value like any other."""

    value: Expr
    optional: bool = False


@dataclass(frozen=True)
class Item:
    filter: Filter
    keys: tuple[Key, ...] = ()
    missing: bool = False
    runs: int = 1
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Pipe:
    """`head` or `tail`, of so many detections."""

    name: str
    count: int


@dataclass(frozen=True)
class Query:
    """`keys` are those of all items, in front of each item's own. A filter is a query of one item. `maxspan` is in
    microseconds."""

    name: str
    kind: str
    items: tuple[Item, ...]
    keys: tuple[Key, ...] = ()
    maxspan: int | None = None
    until: Item | None = None
    pipes: tuple[Pipe, ...] = ()
    fields: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    name_span: Span | None = field(default=None, compare=False, repr=False)
    about: About | None = field(default=None, compare=False, repr=False)  # what its file says of it

    @cached_property
    def steps(self) -> tuple[Item, ...]:
        """The items, each as often as `runs` says."""
        return tuple(item for item in self.items for _ in range(item.runs))

    @property
    def everything(self) -> tuple[Item, ...]:
        return self.items if self.until is None else (*self.items, self.until)

    def keys_of(self, item: Item) -> tuple[Key, ...]:
        return (*self.keys, *item.keys)

    @property
    def categories(self) -> frozenset[str]:
        return frozenset(item.filter.category for item in self.everything if item.filter.category is not None)

    @property
    def keeps_back(self) -> bool:
        """Does it wait for the end of the input?"""
        return any(pipe.name == "tail" for pipe in self.pipes)

    def trees(self) -> Iterator[Expr]:
        for item in self.everything:
            yield item.filter.condition
            yield from (key.value for key in item.keys)
        yield from (key.value for key in self.keys)


@dataclass(frozen=True)
class File:
    """`skipped` says why a rule of a `.toml` file (`in_toml`) is not loaded; `fault` what is wrong with one that is left out."""

    queries: tuple[Query, ...]
    skipped: str | None = field(default=None, compare=False)
    in_toml: bool = field(default=False, compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    fault: Diagnostic | None = field(default=None, compare=False, repr=False)
