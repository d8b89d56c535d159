"""Sets of events (Opera, section 3.1), and limits on events and detections of all languages (OP-29): frozen data, with source
spans that do not count in comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from coincide.expr.functions import FUNCTIONS
from coincide.expr.tree import Expr
from coincide.lang.shared.times import TimeSpec
from coincide.syntax import Node

# A filter sees one event only: functions of events are written without an alias, and `distance` has no second event.
FILTER_FUNCTIONS = {
    name: replace(function, least=function.most - 1, most=function.most - 1)
    if function.aliases and function.most is not None
    else function
    for name, function in FUNCTIONS.items()
    if name != "distance"
}


@dataclass(frozen=True)
class Element(Node["Element"]):
    """Of a definition that speaks of sets of events."""


@dataclass(frozen=True)
class Bind(Element):
    """`attribute = ?parameter`."""

    attribute: str
    parameter: str


@dataclass(frozen=True)
class Condition(Element):
    """A term of a filter that is an expression of one event."""

    test: Expr


Terms = tuple[Bind | Condition, ...]


@dataclass(frozen=True)
class EventSet(Element):
    """A set of events."""


@dataclass(frozen=True)
class Named(EventSet):
    """A name as written: a timer in scope, a named set or an event type."""

    name: str
    terms: Terms = ()


@dataclass(frozen=True)
class OfType(EventSet):
    """A name that is an event type, primitive or composite."""

    name: str
    terms: Terms = ()


@dataclass(frozen=True)
class OwnTimer(EventSet):
    """A name that is the timer of the innermost timing of that name."""

    name: str


@dataclass(frozen=True)
class OfSet(EventSet):
    """A name that is a named set: the events of the set that satisfy the filter."""

    name: str
    terms: Terms
    contents: EventSet


@dataclass(frozen=True)
class All(EventSet):
    """Every external event that satisfies the filter."""

    terms: Terms = ()


@dataclass(frozen=True)
class Union(EventSet):
    members: tuple[EventSet, ...]


@dataclass(frozen=True)
class Difference(EventSet):
    left: EventSet
    right: EventSet


@dataclass(frozen=True)
class Intersection(EventSet):
    left: EventSet
    right: EventSet


def types(events: EventSet) -> list[str]:
    """Names of the types (and timers) whose events can be in the set, in order of the text; `all` names none."""
    if isinstance(events, OfType | OwnTimer):
        return [events.name]
    if isinstance(events, OfSet):
        return types(events.contents)
    if isinstance(events, Union):
        return [name for member in events.members for name in types(member)]
    if isinstance(events, Difference):
        return types(events.left)
    if isinstance(events, Intersection):
        return [name for name in types(events.left) if name in types(events.right) or not types(events.right)]
    return []


@dataclass(frozen=True)
class Limit(Element):
    """At most one event of the type, or detection of that name, per `every` for the same values of the keys; of detections also:
    until an event of a set has come that has these values."""

    type: str
    keys: tuple[str, ...]
    every: TimeSpec | None
    until: EventSet | None = field(default=None, repr=False)
