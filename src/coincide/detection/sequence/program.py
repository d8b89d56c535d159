"""What a query compiles to: tests and keys of its items, its stages, and what its detections show."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product

from coincide.detection.base import Detector
from coincide.detection.keys import Key, key_part
from coincide.detection.sequence.values import Holds, Plain, Plains, compiled, condition, field_values, several
from coincide.expr.tree import Expr, Reference
from coincide.lang.eql.definition import HIDDEN, JOIN, SAMPLE, TIMESTAMP, Filter, Item, Query
from coincide.lang.eql.definition import Key as KeyDefinition
from coincide.model.compound import ValueSet
from coincide.model.event import ENVELOPE, Event, Value
from coincide.model.numbers import number_of
from coincide.syntax import walk

CATEGORY = "event.category"
READ = ENVELOPE - {"from"} | {TIMESTAMP}
"""Names that are read from the envelope."""


class Program:
    """One query. Items are known by their numbers; the last is `until`, where there is one."""

    def __init__(self, detector: Detector) -> None:
        self.query: Query = detector.definition
        self.order = detector.order
        self.items = self.query.everything
        self.tests = [item_test(item.filter) for item in self.items]
        self.keys = [key_function(self.query.keys_of(item)) for item in self.items]
        self.until = len(self.items) - 1 if self.query.until is not None else None

    @property
    def is_sample(self) -> bool:
        """Does it take events in any order (section 7), as samples and joins do?"""
        return self.query.kind in (SAMPLE, JOIN)

    @cached_property
    def stages(self) -> list[int]:
        """The items that are not missing, each as often as it must come."""
        return [n for n, item in enumerate(self.query.items) if not item.missing for _ in range(item.runs)]

    @cached_property
    def leading(self) -> list[int]:
        first = next(n for n, item in enumerate(self.query.items) if not item.missing)
        return list(range(first))

    @cached_property
    def trailing(self) -> list[int]:
        last = max(n for n, item in enumerate(self.query.items) if not item.missing)
        return list(range(last + 1, len(self.query.items)))

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """Missing items between two others, each with the stage that they spoil (counted from 0)."""
        found, stage = [], -1
        for number, item in enumerate(self.query.items):
            if not item.missing:
                stage += item.runs
            elif 0 <= stage < len(self.stages) - 1:
                found.append((number, stage))
        return found

    @cached_property
    def key_names(self) -> list[str]:
        first: Item = next(item for item in self.query.items if not item.missing)
        return [
            key.value.name if isinstance(key.value, Reference) else f"key{n}"
            for n, key in enumerate(self.query.keys_of(first), 1)
        ]

    @cached_property
    def fields(self) -> list[str]:
        """What detections show beside their keys."""
        return [name for name in self.query.fields if name not in HIDDEN and name not in self.key_names]

    @cached_property
    def readers(self) -> list[Callable[[Event], Value]]:
        return [_field_reader(name) for name in self.fields]

    @cached_property
    def columns(self) -> frozenset[str]:
        names = {node.name for tree in self.query.trees() for node in walk(tree) if isinstance(node, Reference)}
        return frozenset(names | set(self.fields) | {CATEGORY}) - READ

    def matched(self, event: Event) -> int:
        """The items that the event is, as bits."""
        return sum(1 << number for number, test in enumerate(self.tests) if test(event))


def item_test(found: Filter) -> Holds:
    category, holds = found.category, condition(found.condition)
    if category is None:
        return lambda event: not event.is_detection and holds(event)
    return lambda event: is_of(event, category) and holds(event)


def is_of(event: Event, category: str) -> bool:
    """Section 3: by the values of `event.category`, or by the type of an event that has none."""
    values = None if event.is_detection else event.attributes.get(CATEGORY)
    known = (None,) if values is None else several(values)
    return event.type == category if known[0] is None else category in known


def key_function(keys: tuple[KeyDefinition, ...]) -> Callable[[Event], list[Key]]:
    """The keys that an event has as some item: one for each combination of values, equal ones once."""
    readers = [(compiled(key.value), key.optional) for key in keys]

    def read(event: Event) -> list[Key]:
        parts: list[list[object]] = []
        for values, optional in readers:
            found = [_part(value) for value in values(event) if optional or value is not None]
            if not found:
                return []
            parts.append(found)
        if all(len(part) == 1 for part in parts):
            return [tuple(part[0] for part in parts)]
        return list(dict.fromkeys(product(*parts)))

    return read


def _part(value: Plain) -> object:
    return key_part(number_of(value) if type(value) is int else value)


def _field_reader(name: str) -> Callable[[Event], Value]:
    values = field_values(name)
    return lambda event: _joined(values(event))


def shown_value(value: Value) -> Value:
    """A field's value as a detection shows it; several are an array."""
    return _joined(several(value))


def _joined(values: Plains) -> Value:
    found = tuple(number_of(v) if type(v) is int else v for v in values if v is not None)
    return None if not found else found[0] if len(found) == 1 else ValueSet(found)


def is_field(tree: Expr) -> bool:
    return isinstance(tree, Reference) and tree.name not in READ


def reasons(query: Query) -> tuple[str, ...]:
    """Why the compiled loop cannot do a query; empty: it can."""
    return (f"it is a {query.kind}",) if query.kind in (SAMPLE, JOIN) else ()
