"""Sigma's rules as data: what a document says, with fields renamed and modifiers applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from coincide.errors import Diagnostic
from coincide.lang.shared.about import About
from coincide.source import Span

HIDDEN_NAMES = frozenset({"type", "id", "time", "source", "space", "from", "rule_id", "level", "count", "value"})
"""Section 7: no attribute of a detection is called so but its own."""

TEMPORAL = frozenset({"temporal", "temporal_ordered"})
COUNTING = frozenset({"event_count", "value_count"})
NUMERIC = frozenset({"value_sum", "value_avg", "value_median"})
TYPES = (*sorted(COUNTING), *sorted(TEMPORAL), *sorted(NUMERIC), "value_percentile")


class Wild(Enum):
    ANY = "*"
    ONE = "?"


Part = str | Wild


@dataclass(frozen=True)
class Text:
    """The whole attribute matches: texts and wildcards, one after another, no two texts side by side."""

    parts: tuple[Part, ...]
    cased: bool = False


@dataclass(frozen=True)
class Number:
    """An equal number, or its spelling as a text."""

    value: float


@dataclass(frozen=True)
class Truth:
    value: bool


@dataclass(frozen=True)
class Absent:
    """`null`."""


@dataclass(frozen=True)
class Exists:
    value: bool


@dataclass(frozen=True)
class Regex:
    """Found anywhere; flags are a part of the pattern."""

    pattern: str


@dataclass(frozen=True)
class Network:
    text: str


@dataclass(frozen=True)
class Compared:
    op: str  # gt, gte, lt, lte
    value: float


@dataclass(frozen=True)
class TimePart:
    part: str
    value: float


@dataclass(frozen=True)
class SameAs:
    """Compared with another attribute: `how` is equal, contains, startswith or endswith."""

    attribute: str
    how: str = "equal"
    cased: bool = False


Test = Text | Number | Truth | Absent | Exists | Regex | Network | Compared | TimePart | SameAs


@dataclass(frozen=True)
class Item:
    """`field|modifiers: values`. No attribute: any of the event's (a keyword). A value is one of its alternatives."""

    attribute: str | None
    values: tuple[tuple[Test, ...], ...]
    every: bool = False
    negated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)  # of its key


@dataclass(frozen=True)
class All:
    members: tuple[Formula, ...]


@dataclass(frozen=True)
class Any_:
    members: tuple[Formula, ...]


@dataclass(frozen=True)
class Not:
    member: Formula


Formula = Item | All | Any_ | Not


def items_of(formula: Formula) -> Iterator[Item]:
    if isinstance(formula, Item):
        yield formula
    elif isinstance(formula, Not):
        yield from items_of(formula.member)
    else:
        for member in formula.members:
            yield from items_of(member)


@dataclass(frozen=True)
class LogSource:
    category: str | None = None
    product: str | None = None
    service: str | None = None

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        pairs = (("category", self.category), ("product", self.product), ("service", self.service))
        return tuple((name, value) for name, value in pairs if value is not None)


@dataclass(frozen=True)
class Looked:
    """Which events a rule looks at: those of `types` (None: of every type) that pass `where`; if it is not `mapped`, it goes by
    the event's own log source, or its type. `attributes` are those that such events have (with wildcards; None: that is not
    known)."""

    source: LogSource
    mapped: bool = False
    types: tuple[str, ...] | None = None
    where: Formula | None = None
    attributes: tuple[str, ...] | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Shown:
    """A field that a detection shows: its name in the rule, and the attribute of events."""

    name: str
    attribute: str


@dataclass(frozen=True)
class Head:
    """What both kinds of rules have. `data` is the document, as far as it means something."""

    title: str | None
    name: str | None
    id: str | None
    level: str | None
    data: Any
    about: About = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    name_span: Span | None = field(default=None, compare=False, repr=False)
    id_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DetectionRule:
    head: Head
    looked: Looked
    condition: Formula
    fields: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Reference:
    """A rule, by name or id."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Alias:
    name: str
    fields: tuple[tuple[Reference, str], ...]  # attributes, by rule
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class CorrelationRule:
    head: Head
    kind: str
    rules: tuple[Reference, ...]
    timespan: int  # microseconds
    group_by: tuple[Shown, ...] = ()
    aliases: tuple[Alias, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    fields: tuple[Shown, ...] = ()
    percentile: float | None = None
    generate: bool = False


Rule = DetectionRule | CorrelationRule


@dataclass(frozen=True)
class File:
    rules: tuple[Rule, ...]
    faults: tuple[Diagnostic, ...] = field(default=(), compare=False)


COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "neq": lambda a, b: a != b,
}


def within(bounds: tuple[tuple[str, float], ...], number: float) -> bool:
    """Do all comparisons hold?"""
    return all(COMPARISONS[op](number, bound) for op, bound in bounds)
