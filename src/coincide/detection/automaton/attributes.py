"""Attributes of a detection: the parameters used, then the `with` clause (section 3.5); and the condition of its `where`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coincide.detection.automaton.state import Match
from coincide.detection.keys import key_part, key_value
from coincide.expr.functions import FUNCTIONS, finite, number_text
from coincide.expr.scalar import Evaluate, compile_scalar, event_field
from coincide.expr.tree import Reference
from coincide.lang.opera.attributes import aggregate_parts
from coincide.lang.opera.definition import Definition
from coincide.model.event import Event, Value, detection, plain
from coincide.model.numbers import is_number


@dataclass(frozen=True)
class Environment:
    """What `with` expressions see. Events of an alias stand in order of consumption."""

    whole: Event  # the detection, as far as its time goes
    parameters: dict[str, Value]
    events: dict[str, list[Event]]


class Attributes:
    """Computes the attributes of a detector's matches."""

    def __init__(self, definition: Definition) -> None:
        self.parameters = definition.parameters
        scope = MatchScope()
        self._computed = [(a.name, compile_scalar(a.value, scope, FUNCTIONS)) for a in definition.attributes]
        condition = definition.condition
        self._condition = None if condition is None else compile_scalar(condition.value, scope, FUNCTIONS)

    def of(self, match: Match) -> dict[str, Value] | None:
        """None: the match does not satisfy the condition."""
        bound = {parameter: key_value(part) for parameter, part in match.bindings}
        attributes: dict[str, Value] = {name: bound[name] for name in self.parameters if name in bound}
        if self._computed or self._condition is not None:
            environment = _environment(match, attributes)
            if self._condition is not None and self._condition(environment) is not True:
                return None
            attributes.update((name, evaluate(environment)) for name, evaluate in self._computed)
        return {name: value for name, value in attributes.items() if value is not None}


def _environment(match: Match, parameters: dict[str, Value]) -> Environment:
    by_place = {event.place: event for event in match.events}
    events: dict[str, list[Event]] = {}
    for alias, place in sorted(match.aliases):
        events.setdefault(alias, []).append(by_place[place])
    whole = detection("", (match.lo, match.hi), {}, (), ())
    return Environment(whole, dict(parameters), events)


def json_text(attributes: dict[str, Value]) -> str:
    """Detections of one event stand in the order of this text, where their events are the same."""
    return json.dumps({name: plain(value) for name, value in attributes.items()}, sort_keys=True)


class MatchScope:
    """Parameters by name; `alias.attr` of the last event matched under the alias; aggregates of all of them."""

    def reference(self, node: Reference) -> Evaluate:
        if node.alias is None:
            return lambda environment: environment.parameters.get(node.name)
        parts = aggregate_parts(node.name)
        return self._last(node.alias, node.name) if parts is None else self._aggregate(node.alias, *parts)

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        if alias is None:
            return lambda environment: environment.whole
        return lambda environment: environment.events[alias][-1] if alias in environment.events else None

    def _last(self, alias: str, name: str) -> Evaluate:
        read, last = event_field(name), self.event(alias)

        def evaluate(environment: Environment) -> Value:
            event = last(environment)
            return None if event is None else read(event)

        return evaluate

    def _aggregate(self, alias: str, function: str, attribute: str) -> Evaluate:
        if function == "count":
            return lambda environment: float(len(environment.events.get(alias, ())))
        read, combine = event_field(attribute), AGGREGATES[function]
        of_none = 0.0 if function == "distinct" else None

        def evaluate(environment: Environment) -> Value:
            values = [read(event) for event in environment.events.get(alias, ())]
            present = [value for value in values if value is not None]
            return combine(present) if present else of_none

        return evaluate


def _sum(values: Sequence[Value]) -> Value:
    numbers = [float(value) for value in values if is_number(value)]
    return finite(sum(numbers)) if numbers else None


def _join(values: Sequence[Value]) -> Value:
    distinct = dict.fromkeys(map(key_part, values))
    return ",".join(_text(key_value(part)) for part in distinct)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return number_text(value) if is_number(value) else str(value)


AGGREGATES: dict[str, Callable[[Sequence[Value]], Value]] = {
    "sum": _sum,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "join": _join,
    "distinct": lambda values: float(len(set(map(key_part, values)))),
}
