"""Situation expressions on objects: how slots (lang/amit/names.py) are read from what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coincide.detection.situation.state import Key, Lifespan, key_part, key_value
from coincide.expr.functions import Function, finite
from coincide.expr.scalar import Evaluate, compile_scalar, event_field
from coincide.expr.tree import Alias, Call, Expr, Reference, transform
from coincide.lang.amit.functions import AGGREGATES
from coincide.lang.amit.names import GLOBAL_KEY, INITIATOR, LOCAL_KEY, NOW, OPERAND, TERMINATOR
from coincide.lang.amit.resolve import Resolved
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND

Selection = tuple[tuple[int, Event], ...]
"""Candidates (operand, event), operands in order, oldest first."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a lifespan ends: the terminator that ends it, and its event; neither at its expiration."""

    terminator: int | None = None
    event: Event | None = None


NOT_ENDED = Ending()


@dataclass(slots=True)
class View:
    """What a situation expression sees."""

    lifespan: Lifespan
    key: Key  # local
    latest: Sequence[Event | None]  # by operand: its latest selected candidate
    now: int
    ending: Ending = NOT_ENDED
    selection: Selection = ()
    total: int = 0


class SituationScope:
    """References to slots. Aggregates are rewritten to references in the slot `aggregate`."""

    def __init__(self, resolved: Resolved) -> None:
        self.initiators = [i.alias or i.event for i in resolved.lifespan.initiators]
        self.terminators = [t.alias or t.event for t in resolved.lifespan.terminators]
        self.aggregates: dict[str, Evaluate] = {}

    def compile(self, tree: Expr, functions: Mapping[str, Function]) -> Evaluate:
        return compile_scalar(transform(tree, self._without_aggregates), self, functions)

    def reference(self, node: Reference) -> Evaluate:
        if node.alias == AGGREGATE:
            return self.aggregates[node.name]
        if node.alias == NOW:
            return lambda view: view.now / MILLISECOND
        if node.alias in (LOCAL_KEY, GLOBAL_KEY):
            return _key_reader(node.alias == LOCAL_KEY, int(node.name))
        find, read = self.event(node.alias), event_field(node.name)

        def evaluate(view: View) -> Value:
            event = find(view)
            return None if event is None else read(event)

        return evaluate

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        assert alias is not None
        if alias.startswith(OPERAND):
            number = int(alias.removeprefix(OPERAND))
            return lambda view: view.latest[number]
        if alias.startswith(INITIATOR):
            return _initiator({n for n, label in enumerate(self.initiators) if INITIATOR + label == alias})
        return _terminator({n for n, label in enumerate(self.terminators) if TERMINATOR + label == alias})

    def _without_aggregates(self, node: Expr) -> Expr:
        if not isinstance(node, Call) or node.name not in AGGREGATES:
            return node
        name = str(len(self.aggregates))
        self.aggregates[name] = _aggregate(node)
        return Reference(name, AGGREGATE)


AGGREGATE = "aggregate"


def _key_reader(local: bool, number: int) -> Evaluate:
    def evaluate(view: View) -> Value:
        return key_value((view.key if local else view.lifespan.key)[number])

    return evaluate


def _initiator(numbers: set[int]) -> Callable[[Any], Event | None]:
    return lambda view: view.lifespan.event if view.lifespan.initiator in numbers else None


def _terminator(numbers: set[int]) -> Callable[[Any], Event | None]:
    return lambda view: view.ending.event if view.ending.terminator in numbers else None


def _aggregate(call: Call) -> Evaluate:
    if call.name == "total":
        return lambda view: float(view.total)
    argument = call.arguments[0]
    slot = argument.name if isinstance(argument, Alias) else argument.alias if isinstance(argument, Reference) else None
    assert slot is not None
    number, meaning = int(slot.removeprefix(OPERAND)), AGGREGATE_FUNCTIONS[call.name]
    read = event_field(argument.name) if isinstance(argument, Reference) else _present

    def evaluate(view: View) -> Value:
        values = [read(event) for operand, event in view.selection if operand == number]
        return meaning([value for value in values if value is not None])

    return evaluate


def _present(event: Event) -> Value:
    return True


def _added(values: list[Any]) -> float:
    """One by one: `sum` itself rounds differently from one Python to the next."""
    total = 0.0
    for value in values:
        total += float(value)
    return total


def _sum(values: list[Any]) -> float | None:
    return finite(_added(values)) if values else None


def _average(values: list[Any]) -> float | None:
    return finite(_added(values) / len(values)) if values else None


AGGREGATE_FUNCTIONS: dict[str, Callable[[list[Any]], Value]] = {
    "count": lambda values: float(len(values)),
    "distinct": lambda values: float(len(set(map(key_part, values)))),
    "sum": _sum,
    "avg": _average,
    "lowest": lambda values: min(values, default=None),
    "highest": lambda values: max(values, default=None),
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
}
