"""Event sets as tests of one event (section 3.1).

Each place where a type or `all` stands is a *leaf*; the filter of a named set is a filter of each type in it. An event is read
once for a detector: its reading says which leaves hold it, and which values the parameters must have for that (section 3.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from coincide.detection.keys import key_part
from coincide.expr.scalar import EventScope, condition, event_field
from coincide.expr.tree import And, Compare, Expr, IsNull, Literal, Reference
from coincide.lang.shared.eventsets import (
    FILTER_FUNCTIONS,
    All,
    Bind,
    Condition,
    Difference,
    EventSet,
    Intersection,
    OfSet,
    OfType,
    OwnTimer,
    Terms,
    Union,
)
from coincide.model.event import Event, Value

Assignment = frozenset[tuple[str, object]]
"""Values of parameters; those that it does not name have any value that no event has shown so far."""

FREE: Assignment = frozenset()


@dataclass(frozen=True)
class Reading:
    """An event as one detector sees it. `timing` is the number of the timing whose timer it is, None if it is not a timer."""

    event: Event
    held: Mapping[int, Assignment]
    timing: int | None = None


class Leaf:
    """`name` is the type; None: every external event (`all`)."""

    def __init__(self, name: str | None, terms: Terms, external_only: bool = False) -> None:
        self.name = name
        self.external_only = external_only
        self.tests = [term.test for term in terms if isinstance(term, Condition)]
        self.bindings = [(term.attribute, term.parameter) for term in terms if isinstance(term, Bind)]

    @cached_property
    def _conditions(self) -> list[Callable[[Event], bool]]:
        return [condition(test, EventScope(), FILTER_FUNCTIONS) for test in self.tests]

    @cached_property
    def _fields(self) -> list[tuple[str, Callable[[Event], Value]]]:
        return [(parameter, event_field(attribute)) for attribute, parameter in self.bindings]

    def needs(self, event: Event) -> Assignment | None:
        """The values that parameters must have for the event to be held; None if it is not whatever they are."""
        if self.name is not None and event.type != self.name:
            return None
        if self.external_only and (event.is_detection or event.type == "heartbeat"):
            return None
        for holds in self._conditions:
            if not holds(event):
                return None
        if not self._fields:
            return FREE
        values = {(parameter, key_part(read(event))) for parameter, read in self._fields}
        if any(value is None for _, value in values) or len(values) > len({parameter for parameter, _ in values}):
            return None
        return frozenset(values)

    @property
    def test(self) -> Expr:
        """As a test of one external event."""
        parts: list[Expr] = [] if self.name is None else [Compare("=", Reference("type"), Literal(self.name))]
        parts += self.tests
        parts += [IsNull(Reference(attribute), True) for attribute, _ in self.bindings]
        return And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else Literal(True)


Holds = Callable[[Mapping[int, Assignment], Assignment], Assignment | None]
"""From a reading's leaves and an assignment to the parameters used, with their values; None: not in the set."""


class Leaves:
    """All leaves of a detector, numbered, and the sets that are made of them."""

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._by_type: dict[str | None, list[int]] = {}

    def read(self, event: Event) -> Reading:
        held: dict[int, Assignment] = {}
        for number in self._by_type.get(event.type, []) + self._by_type.get(None, []):
            needs = self.leaves[number].needs(event)
            if needs is not None:
                held[number] = needs
        return Reading(event, held)

    def leaf(self, name: str | None, terms: Terms, external_only: bool = False) -> Holds:
        number = len(self.leaves)
        self.leaves.append(Leaf(name, terms, external_only))
        self._by_type.setdefault(name, []).append(number)
        return _holds_leaf(number)

    def holds(self, events: EventSet, timers: Mapping[str, int]) -> Holds:
        """The set as a test; `timers` are the timings in scope by the names of their timers."""
        if isinstance(events, OfType):
            return self.leaf(events.name, events.terms)
        if isinstance(events, All):
            return self.leaf(None, events.terms, True)
        if isinstance(events, OwnTimer):
            return _holds_leaf(-1 - timers[events.name])
        if isinstance(events, OfSet):
            return self.holds(narrowed(events.contents, events.terms), timers)
        if isinstance(events, Union):
            return _any([self.holds(member, timers) for member in events.members])
        assert isinstance(events, Difference | Intersection)
        left, right = self.holds(events.left, timers), self.holds(events.right, timers)
        return _both(left, right) if isinstance(events, Intersection) else _except(left, right)


def narrowed(events: EventSet, terms: Terms) -> EventSet:
    """The events of a named set that satisfy a filter. Each type gets the filter, so that a set says as much as its types
    written out would: what may be left out at the source, and by which key an event is found."""
    if not terms or isinstance(events, OwnTimer):
        return events
    if isinstance(events, Union):
        return replace(events, members=tuple(narrowed(member, terms) for member in events.members))
    if isinstance(events, Difference | Intersection):
        return replace(events, left=narrowed(events.left, terms), right=narrowed(events.right, terms))
    assert isinstance(events, OfType | OfSet | All)
    return replace(events, terms=(*events.terms, *terms))


def timer_reading(event: Event, timing: int) -> Reading:
    """The reading of a timer's own time event."""
    return Reading(event, {-1 - timing: FREE}, timing)


@cache
def _holds_leaf(number: int) -> Holds:
    def holds(held: Mapping[int, Assignment], assignment: Assignment) -> Assignment | None:
        needs = held.get(number)
        return needs if needs is not None and needs <= assignment else None

    return holds


def _both(left: Holds, right: Holds) -> Holds:
    def holds(held: Mapping[int, Assignment], assignment: Assignment) -> Assignment | None:
        first, second = left(held, assignment), right(held, assignment)
        return None if first is None or second is None else first | second

    return holds


def _any(members: list[Holds]) -> Holds:
    def holds(held: Mapping[int, Assignment], assignment: Assignment) -> Assignment | None:
        found = [used for member in members if (used := member(held, assignment)) is not None]
        return FREE.union(*found) if found else None

    return holds


def _except(left: Holds, right: Holds) -> Holds:
    def holds(held: Mapping[int, Assignment], assignment: Assignment) -> Assignment | None:
        return left(held, assignment) if right(held, assignment) is None else None

    return holds
