"""Which rows of a table are which items, under which keys: each test once for each distinct value of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import combined_codes
from coincide.detection.keys import Key, key_part
from coincide.detection.sequence.program import CATEGORY, is_of
from coincide.detection.sequence.values import condition
from coincide.expr.tree import And, Compare, Expr, Literal, Not, Or, Reference, walk
from coincide.lang.eql.definition import TIMESTAMP, Filter
from coincide.lang.eql.definition import Key as KeyDefinition
from coincide.model.column import Column
from coincide.model.event import Event, Value
from coincide.model.numbers import EXACT
from coincide.model.table import EventTable

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
KeyReader = Callable[[Event], list[Key]]
Keyed = tuple[Numbers, Numbers, list[Key]]

ORDERS: dict[str, np.ufunc] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


class SharedMasks:
    """The masks of the table at hand: all rules that read it share them, and with them each test that several have."""

    def __init__(self) -> None:
        self._tests = Tests()
        self._latest: Masks | None = None

    def of(self, table: EventTable) -> Masks:
        if self._latest is None or self._latest.table is not table:
            self._latest = Masks(table, self._tests)
        return self._latest


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
        self._categories: dict[str, Mask] = {}
        self._codes: dict[tuple[str, ...], tuple[Numbers, list[Event]]] = {}
        self._keyed: dict[tuple[Filter, tuple[KeyDefinition, ...]], Keyed] = {}

    def keyed(self, found: Filter, keys: tuple[KeyDefinition, ...], read: KeyReader) -> Keyed:
        """Rows that pass, with their keys; `read` tells those of one event."""
        if (found, keys) not in self._keyed:
            self._keyed[found, keys] = keyed_rows(self, np.flatnonzero(self.item(found)), keys, read)
        return self._keyed[found, keys]

    def item(self, found: Filter) -> Mask:
        """The condition is not looked at where no row is of the category."""
        of_category = self._primitive if found.category is None else self._category(found.category)
        return of_category & self.condition(found.condition) if of_category.any() else of_category

    @cached_property
    def _primitive(self) -> Mask:
        primitive: Mask = self.table.generation == 0
        return primitive

    def _category(self, category: str) -> Mask:
        if category not in self._categories:
            mask = self._by_values(("type", CATEGORY), lambda event: is_of(event, category))
            if not self._primitive.all():
                by_type = self._by_values(("type",), lambda event: event.type == category)
                mask = np.where(self._primitive, mask, by_type)
            self._categories[category] = mask
        return self._categories[category]

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
            case Compare(op=op, left=Reference(name=name), right=Literal(value=value)) if op in ORDERS and _is_double(value):
                column = self.column(name)
                if column.compounds is None:
                    numbers = np.full(len(self.table), np.nan) if column.numbers is None else column.numbers
                    return np.asarray(ORDERS[op](numbers, value))
        names = tuple(sorted({node.name for node in walk(tree) if isinstance(node, Reference)}))
        return self._by_values(names, self.tests[tree])

    def _by_values(self, names: tuple[str, ...], test: Callable[[Event], bool]) -> Mask:
        """The test of each combination of values that there is."""
        numbers, events = self._distinct(names)
        truths = np.array([test(event) for event in events], np.bool_)
        return truths[numbers]

    def _distinct(self, names: tuple[str, ...]) -> tuple[Numbers, list[Event]]:
        """The number of each row's combination of these fields, and an event with nothing but them for each."""
        if names not in self._codes:
            columns = [self.column(name) for name in names] or [Column(len(self.table))]
            numbers, rows = combined_codes(columns)
            self._codes[names] = numbers, [self.event(names, columns, row, int(self.table.hi[row])) for row in rows.tolist()]
        return self._codes[names]

    def column(self, name: str) -> Column:
        return self.table.column("time" if name == TIMESTAMP else name)

    @staticmethod
    def event(names: Sequence[str], columns: Sequence[Column], row: int, hi: int) -> Event:
        """One with nothing but these fields, of some row."""
        values: dict[str, Value] = {name: column.value(row) for name, column in zip(names, columns, strict=False)}
        envelope = {name: None if (value := values.pop(name, None)) is None else str(value) for name in ("type", "id", "source")}
        return Event(envelope["type"] or "", hi, hi, envelope["id"], values, (), envelope["source"])


def _is_double(value: Value) -> bool:
    """A number that stands between the same doubles as among all numbers; what is no number has no order with it."""
    return type(value) in (int, float) and abs(value) < EXACT  # type: ignore[arg-type]


# Keys.


def keyed_rows(masks: Masks, rows: Numbers, keys: tuple[KeyDefinition, ...], read: KeyReader) -> Keyed:
    """Rows that have a key (as often as they have one), the number of the key, and the keys by number."""
    if not keys or not len(rows):
        return rows, np.zeros(len(rows), np.int64), [()]
    names = sorted({node.name for key in keys for node in walk(key.value) if isinstance(node, Reference)})
    columns = {name: masks.column(name).take(rows) for name in names}
    numbers, samples = combined_codes([*columns.values()] or [Column(len(rows))])
    fields = [(key.value.name, key.optional) for key in keys if isinstance(key.value, Reference)]
    if len(fields) == len(keys) and all(column.compounds is None for column in columns.values()):
        taken = {name: column.take(samples) for name, column in columns.items()}
        return _of_fields(rows, numbers, [(taken[name], optional) for name, optional in fields])
    return _of_events(rows, numbers, columns, samples, masks.table.hi, read)


def _of_fields(rows: Numbers, numbers: Numbers, parts: list[tuple[Column, bool]]) -> Keyed:
    """Fields that have one value each."""
    keys = list(zip(*(_parts(column) for column, _ in parts), strict=True))
    lacking = np.zeros(len(keys), np.bool_)
    for column, optional in parts:
        if not optional:
            lacking |= column.is_null
    there = ~lacking[numbers]
    number = np.cumsum(~lacking) - 1
    return rows[there], number[numbers[there]], [key for key, lacks in zip(keys, lacking.tolist(), strict=True) if not lacks]


def _parts(column: Column) -> list[object]:
    return [key_part(value + 0.0 if type(value) is float else value) for value in map(column.value, range(len(column)))]


def _of_events(
    rows: Numbers, numbers: Numbers, columns: dict[str, Column], samples: Numbers, hi: Numbers, read: KeyReader
) -> Keyed:
    """Expressions, and fields with several values: once for each combination that there is."""
    names, values = [*columns], [*columns.values()]
    keys = [read(Masks.event(names, values, row, int(hi[rows[row]]))) for row in samples.tolist()]
    sizes = np.array([len(some) for some in keys], np.int64)
    starts = np.cumsum(sizes) - sizes
    own = sizes[numbers]
    ends = np.cumsum(own)
    within = np.arange(int(ends[-1])) - np.repeat(ends - own, own)
    return np.repeat(rows, own), np.repeat(starts[numbers], own) + within, [key for some in keys for key in some]
