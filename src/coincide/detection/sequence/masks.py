"""Which rows of a table are which items, under which keys: each test once for each distinct value of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import combined_codes
from coincide.detection.keys import Key, key_part
from coincide.detection.sequence.patterns import Patterns
from coincide.detection.sequence.program import CATEGORY, is_of
from coincide.detection.sequence.values import condition, patterns_of
from coincide.expr.patterns import lowered
from coincide.expr.tree import And, Compare, Expr, Literal, Not, Or, Reference
from coincide.lang.eql.definition import TIMESTAMP, Among, Filter, Matching, Query
from coincide.lang.eql.definition import Key as KeyDefinition
from coincide.model.column import Column
from coincide.model.event import Event, Value
from coincide.model.numbers import EXACT
from coincide.model.table import EventTable
from coincide.syntax import walk

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
KeyReader = Callable[[Event], list[Key]]
Keyed = tuple[Numbers, Numbers, list[Key]]

ORDERS: dict[str, np.ufunc] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


class SharedMasks:
    """The masks of the table at hand: all rules that read it share them, and with them each test that several have."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._tests = Tests(queries)
        self._latest: Masks | None = None

    def of(self, table: EventTable) -> Masks:
        if self._latest is None or self._latest.table is not table:
            self._latest = Masks(table, self._tests)
        return self._latest


class Tests:
    """Conditions as functions of one event, each compiled once; and all patterns, by field and whether case does not matter."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._compiled: dict[Expr, Callable[[Event], bool]] = {}
        self._queries = queries

    @cached_property
    def patterns(self) -> dict[tuple[str, bool], Patterns]:
        found: dict[tuple[str, bool], dict[str, None]] = {}
        for tree in (tree for query in self._queries for tree in query.trees()):
            for node in walk(tree):
                if isinstance(node, Matching) and isinstance(node.operand, Reference) and not node.is_regular:
                    found.setdefault((node.operand.name, node.any_case), {}).update(dict.fromkeys(patterns_of(node)))
        return {key: Patterns(patterns) for key, patterns in found.items()}

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
        self._texts: dict[tuple[str, bool], Sequence[str]] = {}
        self._found: dict[tuple[str, bool], dict[str, Numbers]] = {}
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
            case Compare(op="!="):
                return ~self.condition(replace(tree, op="="))
            case Among(negated=True):
                return ~self.condition(replace(tree, negated=False))
        by_text = self._by_text(tree)
        if by_text is not None:
            return by_text
        names = tuple(sorted({node.name for node in walk(tree) if isinstance(node, Reference)}))
        return self._by_values(names, self.tests[tree])

    # Tests of fields that hold single texts.

    def _by_text(self, tree: Expr) -> Mask | None:
        """Where the distinct texts of a field decide."""
        match tree:
            case Matching(operand=Reference(name=name)) if not tree.is_regular and self._holds_texts(name):
                found = self._patterns(name, tree.any_case)
                return self._of_texts(name, [found[pattern] for pattern in patterns_of(tree)])
            case Compare(op="=", left=Reference(name=name), right=Literal(value=str(text))) if self._holds_texts(name):
                return self._of_texts(name, [self._equal(name, {text}, False)])
            case Among(operand=Reference(name=name), options=options) if self._holds_texts(name):
                texts = {option.value for option in options if isinstance(option, Literal) and isinstance(option.value, str)}
                if len(texts) == len(options):
                    return self._of_texts(name, [self._equal(name, texts, tree.any_case)])
        return None

    def _holds_texts(self, name: str) -> bool:
        column = self.column(name)
        single = column.numbers is None and column.flags is None and column.compounds is None
        return single and column.codes is not None and name != TIMESTAMP

    def _of_texts(self, name: str, some: Sequence[Numbers]) -> Mask:
        """Rows that have one of these texts."""
        column = self.column(name)
        truths = np.zeros(len(column.texts) + 1, np.bool_)  # the last one is for null
        for numbers in some:
            truths[numbers] = True
        return truths[column.codes]

    def _distinct_texts(self, name: str, any_case: bool) -> Sequence[str]:
        if (name, any_case) not in self._texts:
            texts = self.column(name).texts
            self._texts[name, any_case] = [lowered(text) for text in texts] if any_case else texts
        return self._texts[name, any_case]

    def _patterns(self, name: str, any_case: bool) -> dict[str, Numbers]:
        if (name, any_case) not in self._found:
            texts = self._distinct_texts(name, any_case)
            self._found[name, any_case] = self.tests.patterns[name, any_case].found(texts)
        return self._found[name, any_case]

    def _equal(self, name: str, wanted: set[str], any_case: bool) -> Numbers:
        wanted = {lowered(text) for text in wanted} if any_case else wanted
        return np.array([n for n, text in enumerate(self._distinct_texts(name, any_case)) if text in wanted], np.int64)

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
