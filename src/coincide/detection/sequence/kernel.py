"""Queries over columns: each test once for each distinct value of what it reads, then the interpreter on the rows that are some
item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Clock
from coincide.detection.columns.keys import combined_codes
from coincide.detection.eventwise import Cause, step_eventwise
from coincide.detection.sequence.interpreter import Interpreter
from coincide.detection.sequence.program import CATEGORY, Program, is_of
from coincide.detection.sequence.state import State
from coincide.detection.sequence.values import condition
from coincide.expr.tree import And, Expr, Literal, Not, Or, Reference, walk
from coincide.lang.eql.definition import TIMESTAMP, Filter
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column
from coincide.model.event import Event, Value
from coincide.model.table import EventTable

Mask = npt.NDArray[np.bool_]
ENVELOPE = frozenset({"type", "id", "source", "arrival"})


class Kernel:
    """Steps one query."""

    def __init__(self, program: Program, interpreter: Interpreter) -> None:
        self.program = program
        self.interpreter = interpreter
        self.tests = Tests()

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        events, matched = self._matching(batch.table) if len(batch) else (EMPTY, [])
        following = iter(matched)

        def on_event(event: Event, cause: Cause) -> None:
            self.interpreter.advance(state, event, next(following), cause)

        made = step_eventwise(events, clock, state.timers, on_event, self.interpreter.timer_of(state))
        return state, self.interpreter.ended(state, made, clock)

    def _matching(self, table: EventTable) -> tuple[EventBatch, list[int]]:
        """Rows that are some item, and which, as bits."""
        masks = Masks(table, self.tests)
        items = np.array([masks.item(item.filter) for item in self.program.items])
        rows = np.flatnonzero(items.any(axis=0))
        if not len(rows):
            return EMPTY, []
        bits = [sum(1 << item for item in np.flatnonzero(row).tolist()) for row in items[:, rows].T]
        fields = {name: table.fields[name] for name in table.fields if name in self.program.columns or name in ENVELOPE}
        return EventBatch(replace(table, fields=fields).take(rows).events()), bits


class Tests:
    """Conditions as functions of one event, each compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[Expr, Callable[[Event], bool]] = {}

    def __getitem__(self, tree: Expr) -> Callable[[Event], bool]:
        if tree not in self._compiled:
            self._compiled[tree] = condition(tree)
        return self._compiled[tree]


class Masks:
    """Which rows of a table pass a test; equal tests are made once."""

    def __init__(self, table: EventTable, tests: Tests) -> None:
        self.table = table
        self.tests = tests
        self._made: dict[Expr, Mask] = {}
        self._codes: dict[tuple[str, ...], tuple[npt.NDArray[np.int64], list[Event]]] = {}

    def item(self, found: Filter) -> Mask:
        """The condition is not looked at where no row is of the category."""
        of_category = self._primitive if found.category is None else self._category(found.category)
        return of_category & self.condition(found.condition) if of_category.any() else of_category

    @cached_property
    def _primitive(self) -> Mask:
        primitive: Mask = self.table.generation == 0
        return primitive

    def _category(self, category: str) -> Mask:
        by_values = self._by_values(("type", CATEGORY), lambda event: is_of(event, category))
        if self._primitive.all():
            return by_values
        by_type = self._by_values(("type",), lambda event: event.type == category)
        return np.where(self._primitive, by_values, by_type)

    def condition(self, tree: Expr) -> Mask:
        if tree not in self._made:
            self._made[tree] = self._condition(tree)
        return self._made[tree]

    def _condition(self, tree: Expr) -> Mask:
        match tree:
            case Or(operands=operands):
                return np.asarray(np.logical_or.reduce([self.condition(o) for o in operands]))
            case And(operands=operands):
                return np.asarray(np.logical_and.reduce([self.condition(o) for o in operands]))
            case Not(operand=operand):
                return ~self.condition(operand)
            case Literal(value=value):
                return np.full(len(self.table), value is True)
        names = tuple(sorted({node.name for node in walk(tree) if isinstance(node, Reference)}))
        return self._by_values(names, self.tests[tree])

    def _by_values(self, names: tuple[str, ...], test: Callable[[Event], bool]) -> Mask:
        """The test of each combination of values that there is."""
        numbers, events = self._distinct(names)
        truths = np.array([test(event) for event in events], np.bool_)
        return truths[numbers]

    def _distinct(self, names: tuple[str, ...]) -> tuple[npt.NDArray[np.int64], list[Event]]:
        """The number of each row's combination of these fields, and an event with nothing but them for each."""
        if names not in self._codes:
            columns = [self._column(name) for name in names] or [Column(len(self.table))]
            numbers, rows = combined_codes(columns)
            self._codes[names] = numbers, [self._event(names, columns, row) for row in rows.tolist()]
        return self._codes[names]

    def _column(self, name: str) -> Column:
        return self.table.column("time" if name == TIMESTAMP else name)

    def _event(self, names: Sequence[str], columns: Sequence[Column], row: int) -> Event:
        values: dict[str, Value] = {name: column.value(row) for name, column in zip(names, columns, strict=False)}
        envelope = {name: None if (value := values.pop(name, None)) is None else str(value) for name in ("type", "id", "source")}
        hi = int(self.table.hi[row])
        return Event(envelope["type"] or "", hi, hi, envelope["id"], values, (), envelope["source"])
