"""Opera in Python: composite event expressions from calls and operators (section 6 of the specification).

    from coincide.opera import detect, event

    detect("Visit", event("Enter", who="Brian").followed_by(event("Enter", who="Peter"), within="1h"))

Objects never change; `.core()` gives the text in the core language."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from coincide.detection.automaton.starts import start_can_fail
from coincide.expr.parse import parse_expression
from coincide.expr.quantities import count_of
from coincide.expr.tree import Compare, Literal, Reference
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Attribute,
    Bind,
    Concatenation,
    Condition,
    Detect,
    Empty,
    EventSet,
    Expression,
    Group,
    Item,
    Iteration,
    Named,
    Parallel,
    Policy,
    Sequence,
    Timing,
    Union,
    chained,
    most_times,
)
from coincide.lang.opera.functions import WITH_FUNCTIONS
from coincide.lang.opera.print import core_text, statement_text
from coincide.lang.opera.resolve import resolve
from coincide.lang.shared.eventsets import FILTER_FUNCTIONS
from coincide.lang.shared.times import TimeSpec, time_of
from coincide.model.compound import single
from coincide.model.event import as_value
from coincide.source import SourceText
from coincide.syntax import rebuilt

__all__ = ["EMPTY", "Events", "Param", "Pattern", "Statement", "any_of", "anything_but", "detect", "event"]

TIMER = Named("")  # stands for the timer of the timing around it until `.core()` numbers timers


@dataclass(frozen=True)
class Param:
    """A free parameter: `door=Param("x")` is `door = ?x`."""

    name: str


@dataclass(frozen=True)
class Pattern:
    """A composite event expression."""

    expression: Expression

    def core(self) -> str:
        return core_text(_numbered(self.expression))

    def __str__(self) -> str:
        return self.core()

    # Succession.

    def then(self, other: Pattern, within: str | None = None, by: str | None = None) -> Pattern:
        """Weak succession, `[A] [B]`; with a time, the other must come within it."""
        if within is None and by is None:
            return Pattern(chained(Concatenation, self.expression, other.expression))
        return self._timed(other.expression, within, by)

    def followed_by(self, other: Pattern, within: str | None = None, by: str | None = None) -> Pattern:
        """Strong succession, `[A] ; [B]`."""
        if within is None and by is None:
            return Pattern(chained(Sequence, self.expression, other.expression))
        return self._timed(chained(Sequence, Empty(), other.expression), within, by)

    def after(self, other: Pattern) -> Pattern:
        return other.followed_by(self)

    def not_followed_by(self, *events: Events, within: str | None = None, by: str | None = None) -> Pattern:
        """The time passes and none of the events has come."""
        return self._timed(Atom((Item(TIMER),), Union((TIMER, *_sets(events)))), within, by)

    def wait(self, within: str) -> Pattern:
        """The time passes, whatever comes."""
        return self._timed(Atom((Item(TIMER),)), within, None)

    def _timed(self, second: Expression, within: str | None, by: str | None) -> Pattern:
        return Pattern(Timing(self.expression, second, TIMER.name, _time(within, by)))

    # Alternatives, repetition, domains.

    def or_(self, other: Pattern) -> Pattern:
        return Pattern(chained(Alternation, self.expression, other.expression))

    def in_parallel(self, other: Pattern) -> Pattern:
        return Pattern(Parallel(self.expression, other.expression))

    def optional(self) -> Pattern:
        return self.or_(EMPTY)

    def repeated(self, times: int | None = None, at_least: int | None = None) -> Pattern:
        """So many times; at least so many times; without a number, any number of times."""
        if times is None and at_least is None:
            return Pattern(Iteration(self.expression))
        tree = self.expression
        for _ in range(_count(at_least if times is None else times, most_times(tree)) - 1):
            tree = chained(Concatenation, tree, self.expression)
        return Pattern(tree if at_least is None else chained(Concatenation, tree, Iteration(self.expression)))

    def without(self, *events: Events) -> Pattern:
        """Any of the events ends the match: they join the domain of every atom inside."""
        return Pattern(Group(self.expression, Union(_sets(events))))

    __add__ = then
    __rshift__ = followed_by
    __or__ = or_
    __and__ = in_parallel


@dataclass(frozen=True)
class Events(Pattern):
    """Single events: an atom."""

    expression: Atom

    def named(self, alias: str) -> Events:
        """The alias by which the attributes of a detection refer to the event."""
        items = tuple(replace(item, alias=alias) for item in self.expression.items)
        return Events(replace(self.expression, items=items))

    def before(self, *events: Events) -> Events:
        """One that comes before any of the others."""
        return Events(replace(self.expression, domain=Union((*_sets([self]), *_sets(events)))))


EMPTY = Pattern(Empty())
"""The empty event, always detected."""


def event(type: str, *conditions: str, **attributes: Any) -> Events:
    """Events of a type whose attributes have these values (or those of parameters) and which satisfy the conditions."""
    terms = [_term(name, value) for name, value in attributes.items()]
    tests = [Condition(parse_expression(text, "condition", FILTER_FUNCTIONS)) for text in conditions]
    return Events(Atom((Item(Named(type, (*terms, *tests))),)))


def _term(name: str, value: Any) -> Bind | Condition:
    if isinstance(value, Param):
        return Bind(name, value.name)
    return Condition(Compare("=", Reference(name), Literal(single(as_value(value)))))


def any_of(*events: Events) -> Events:
    """An event of any of these."""
    return Events(Atom(tuple(item for some in events for item in some.expression.items)))


def anything_but(excluded: Events, among: Events) -> Events:
    """An event among those named that is not one of the excluded ones."""
    (item,) = excluded.expression.items
    return Events(Atom((item,), _domain(among), True))


def _domain(events: Events) -> EventSet:
    sets = _sets([events])
    return sets[0] if len(sets) == 1 else Union(sets)


def _sets(events: Any) -> tuple[EventSet, ...]:
    return tuple(item.events for some in events for item in some.expression.items)


def _time(within: str | None, by: str | None) -> TimeSpec:
    given = [text for text in (within, by) if text is not None]
    if len(given) != 1:
        raise ValueError("give either 'within' or 'by'")
    try:
        return time_of(given[0])
    except KeyError as unknown:
        raise ValueError(f"unknown time zone '{unknown.args[0]}'") from None


def _count(times: object, most: int) -> int:
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise ValueError("a number of times is a whole number above 0")
    return count_of(str(times), 1, most)


@dataclass(frozen=True)
class Statement:
    """A `detect` statement. Its `source` can be loaded like a rule file."""

    detect: Detect

    def core(self) -> str:
        return statement_text(self.detect)

    def __str__(self) -> str:
        return self.core()

    @cached_property
    def source(self) -> SourceText:
        return SourceText(f"{self.detect.name}.ce", self.core() + "\n")


def detect(
    name: str, expression: Pattern, restart: bool | None = None, policy: str | None = None, **attributes: str
) -> Statement:
    """The statement that detects an expression. `restart` is on where the start can fail, unless it is given."""
    body = _numbered(expression.expression)
    given = tuple(Attribute(key, parse_expression(str(text), key, WITH_FUNCTIONS)) for key, text in attributes.items())
    statement = Detect(name, body, False, _policy(policy), given)
    (resolved,) = resolve([statement]).definitions
    return Statement(replace(statement, restart=start_can_fail(resolved.body) if restart is None else restart))


def _policy(text: str | None) -> Policy | None:
    if text is None:
        return None
    kind, *threshold = text.split()
    return Policy(kind, *map(float, threshold))


def _numbered(expression: Expression) -> Expression:
    """Timers named T-1, T-2, … in the order in which their timings end."""
    return _Numbering().numbered(expression)  # type: ignore[no-any-return]


class _Numbering:
    def __init__(self) -> None:
        self.timers = 0

    def numbered(self, node: Any) -> Any:
        inside = rebuilt(node, self.numbered)
        if not isinstance(node, Timing):
            return inside
        self.timers += 1
        timer = f"T-{self.timers}"
        return replace(inside, timer=timer, second=_renamed(inside.second, timer))


def _renamed(node: Any, timer: str) -> Any:
    """Timers that have no number yet are those of the timing that is numbered now."""
    return Named(timer) if node == TIMER else rebuilt(node, lambda inner: _renamed(inner, timer))
