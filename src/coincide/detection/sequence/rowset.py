"""Which rows of a table are which items: each test once for each distinct value of what it reads, and those first that few rows
pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.keys import combined_codes
from coincide.detection.columns.rowsets import NO_ROWS, in_any, in_both
from coincide.detection.columns.tables import distinct
from coincide.detection.sequence.keyed import Keyed, KeyReader, event_of, keyed_of, keyed_rows
from coincide.detection.sequence.program import CATEGORY, is_of
from coincide.detection.sequence.tests import Kind, Test, Tests
from coincide.detection.sequence.values import patterns_of
from coincide.detection.sequence.ways import shown_table
from coincide.expr.patterns import lowered
from coincide.expr.tree import And, Compare, Literal, Or, Reference
from coincide.lang.eql.definition import TIMESTAMP, Among, Matching, Query
from coincide.lang.eql.definition import Key as KeyDefinition
from coincide.model.column import Column
from coincide.model.event import Event
from coincide.model.numbers import EXACT
from coincide.model.table import EventTable

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

ORDERS: dict[str, np.ufunc] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
SHARE = 8
"""Once queries have asked for the keys of this part of all rows, the keys of all rows are numbered, for all of them."""


class SharedRows:
    """The rows of the table at hand: all rules that read it share them, and with them each test that several have."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self.tests = Tests(queries)
        self._latest: RowSets | None = None

    def of(self, table: EventTable) -> RowSets:
        if self._latest is None or self._latest.table is not table:
            self._latest = RowSets(table, self.tests)
        return self._latest


class RowSets:
    """Of one table. Rows stand in order."""

    def __init__(self, table: EventTable, tests: Tests) -> None:
        self.table = table
        self.tests = tests
        self._rows: dict[int, Numbers] = {}
        self._categories: dict[str | None, Numbers] = {}
        self._fields: dict[str, TextField | None] = {}
        self._found: dict[int, Numbers | None] = {}
        self._counts: dict[int, int] = {}
        self._postings: dict[int, Numbers] = {}
        self._known: dict[int, npt.NDArray[np.int8]] = {}
        self._codes: dict[tuple[str, ...], tuple[Numbers, list[Event]]] = {}
        self._keyed: dict[tuple[int, tuple[KeyDefinition, ...], bool], Keyed] = {}
        self._all_keyed: dict[tuple[KeyDefinition, ...], tuple[Keyed, Numbers | None]] = {}
        self._shown: dict[tuple[str, ...], EventTable] = {}
        self._asked: dict[frozenset[tuple[KeyDefinition, ...]], int] = {}

    @cached_property
    def scratch(self) -> Numbers:
        """A number for each row, of whatever sort: one room for all queries."""
        return np.empty(len(self.table), np.int64)

    def shown(self, fields: Sequence[str]) -> EventTable:
        """What sequences keep of the rows."""
        if (names := tuple(fields)) not in self._shown:
            self._shown[names] = shown_table(self.table, names)
        return self._shown[names]

    def are_many(self, keys: frozenset[tuple[KeyDefinition, ...]], rows: int) -> bool:
        """Have those been many that were asked for these keys, with so many more?"""
        self._asked[keys] = self._asked.get(keys, 0) + rows
        return self._asked[keys] * SHARE > len(self.table)

    def keyed(self, kind: Kind, keys: tuple[KeyDefinition, ...], read: KeyReader, whole: bool) -> Keyed:
        """Rows that are of this kind, with their keys; `read` tells those of one event. `whole`: all rows' keys have numbers."""
        label = kind.number, keys, whole
        if label not in self._keyed:
            rows = self.of(kind)
            self._keyed[label] = self._among_all(rows, keys, read) if whole else keyed_rows(self.table, rows, keys, read)
        return self._keyed[label]

    def _among_all(self, rows: Numbers, keys: tuple[KeyDefinition, ...], read: KeyReader) -> Keyed:
        size = len(self.table)
        if keys not in self._all_keyed:
            every = keyed_rows(self.table, np.arange(size), keys, read)
            self._all_keyed[keys] = every, every.numbers_of_rows(size)
        every, numbers = self._all_keyed[keys]
        if numbers is None or len(rows) * SHARE > size:
            return every.of_rows(rows, size)
        there = rows[numbers[rows] >= 0]
        return keyed_of(there, numbers[there], every.keys, self.table.hi)

    def of(self, kind: Kind) -> Numbers:
        """Rows of this kind. The condition is not looked at where no row is of the category."""
        rows = self._rows.get(kind.number)
        if rows is None:
            rows = self._rows[kind.number] = self._narrowed(kind.test, self._category(kind.category))
        return rows

    def _category(self, category: str | None) -> Numbers:
        if category not in self._categories:
            mask = self._primitive if category is None else self._of_category(category)
            self._categories[category] = np.flatnonzero(mask)
        return self._categories[category]

    @cached_property
    def _primitive(self) -> Mask:
        primitive: Mask = self.table.generation == 0
        return primitive

    def _of_category(self, category: str) -> Mask:
        numbers, events = self._distinct(("type", CATEGORY))
        mask = np.array([is_of(event, category) for event in events], np.bool_)[numbers]
        if self._primitive.all():
            return mask
        numbers, events = self._distinct(("type",))
        by_type = np.array([event.type == category for event in events], np.bool_)[numbers]
        return np.where(self._primitive, mask, by_type)

    # Conditions.

    def _narrowed(self, test: Test, rows: Numbers) -> Numbers:
        """Those of the rows that pass."""
        match test.tree:
            case And():
                for member in sorted(test.members, key=self._count):
                    if len(rows):
                        rows = self._narrowed(member, rows)
                return rows
            case Or():
                return in_any([found for member in test.members if len(found := self._narrowed(member, rows))])
            case Literal(value=value):
                return rows if value is True else NO_ROWS
        if test.members:  # the opposite of one
            passed = self._narrowed(test.members[0], rows)
            return np.setdiff1d(rows, passed, assume_unique=True) if len(passed) else rows
        if self._count(test) * 4 < len(rows):
            return in_both(self._passing(test), rows)
        passes: Mask = self._passes(test, rows)
        return rows[passes]

    def _count(self, test: Test) -> int:
        """How many rows pass, at most, as far as that is easily told."""
        count = self._counts.get(test.number)
        if count is None:
            count = self._counts[test.number] = self._counted(test)
        return count

    def _counted(self, test: Test) -> int:
        many = len(self.table)
        match test.tree:
            case And():
                return min(map(self._count, test.members))
            case Or():
                return min(many, sum(map(self._count, test.members)))
            case Literal(value=value):
                return many if value is True else 0
        if test.members:
            return many
        found = self._texts_found(test)
        if found is not None:
            return int(self._text_field(test.names[0]).counts[found].sum())
        return many if _is_order(test) else many + 1  # what takes a call for each value comes last

    def _passing(self, test: Test) -> Numbers:
        """All rows that pass, where the texts of a field decide."""
        rows = self._postings.get(test.number)
        if rows is None:
            found = self._texts_found(test)
            assert found is not None
            rows = self._postings[test.number] = self._text_field(test.names[0]).rows_of(found)
        return rows

    def _passes(self, test: Test, rows: Numbers) -> Mask:
        if (found := self._texts_found(test)) is not None:
            return self._text_field(test.names[0]).has(found, rows)
        match test.tree:
            case Compare(op=op, left=Reference(name=name), right=Literal(value=value)) if _is_order(test):
                column = self.column(name)
                if column.compounds is None:
                    return np.zeros(len(rows), np.bool_) if column.numbers is None else ORDERS[op](column.numbers[rows], value)
        if len(test.names) == 1 and self._holds_texts(test.names[0]):
            return self._by_text(test, rows)
        return self._by_values(test, rows)

    # Tests of a field that holds single texts.

    def _texts_found(self, test: Test) -> Numbers | None:
        """The numbers of the texts that pass; None: that is not told by a search."""
        if test.number not in self._found:
            self._found[test.number] = self._search(test)
        return self._found[test.number]

    def _search(self, test: Test) -> Numbers | None:
        match test.tree:
            case Matching(operand=Reference(name=name), any_case=any_case) as tree:
                if not tree.is_regular and self._holds_texts(name):
                    found = self._text_field(name).patterns(self.tests, any_case)
                    return in_any([found[pattern] for pattern in patterns_of(tree)])
            case Compare(op="=", left=Reference(name=name), right=Literal(value=str(text))) if self._holds_texts(name):
                return self._text_field(name).equal([text], False)
            case Among(operand=Reference(name=name), options=options, any_case=any_case) if self._holds_texts(name):
                texts = [option.value for option in options if isinstance(option, Literal) and isinstance(option.value, str)]
                if len(texts) == len(options):
                    return self._text_field(name).equal(texts, any_case)
        return None

    def _holds_texts(self, name: str) -> bool:
        if name not in self._fields:
            column = self.column(name)
            single = column.numbers is None and column.flags is None and column.compounds is None
            plain = single and column.codes is not None and name != TIMESTAMP
            self._fields[name] = TextField(name, column) if plain else None
        return self._fields[name] is not None

    def _text_field(self, name: str) -> TextField:
        assert self._holds_texts(name)
        found = self._fields[name]
        assert found is not None
        return found

    def _by_text(self, test: Test, rows: Numbers) -> Mask:
        """Once for each text that these rows have and that was not asked for before."""
        (name,) = test.names
        column = self.column(name)
        known = self._known.get(test.number)
        if known is None:
            known = self._known[test.number] = np.full(len(column.texts) + 1, -1, np.int8)
        assert column.codes is not None
        codes = column.codes[rows]
        for code in distinct(codes[known[codes] < 0].astype(np.int64)).tolist():
            known[code] = test.holds(event_of([name], [column.texts[code] if code >= 0 else None], 0))
        passes: Mask = known[codes] == 1
        return passes

    # Tests of other fields, and of several.

    def _by_values(self, test: Test, rows: Numbers) -> Mask:
        """The test of each combination of values that there is."""
        if test.names in self._codes or len(rows) * 2 > len(self.table):
            numbers, events = self._distinct(test.names)
            numbers = numbers[rows]
        else:
            numbers, events = self._combinations(test.names, rows)
        wanted = distinct(numbers)
        truths = np.zeros(len(events), np.bool_)
        truths[wanted] = [test.holds(events[number]) for number in wanted.tolist()]
        return truths[numbers]

    def _distinct(self, names: tuple[str, ...]) -> tuple[Numbers, list[Event]]:
        if names not in self._codes:
            self._codes[names] = self._combinations(names, np.arange(len(self.table)))
        return self._codes[names]

    def _combinations(self, names: tuple[str, ...], rows: Numbers) -> tuple[Numbers, list[Event]]:
        """The number of each row's combination of these fields, and an event with nothing but them for each."""
        columns = [self.column(name).take(rows) for name in names] or [Column(len(rows))]
        numbers, samples = combined_codes(columns)
        values = [[column.value(row) for column in columns] for row in samples.tolist()]
        moments = self.table.hi[rows[samples]].tolist()
        return numbers, [event_of(names, own, hi) for own, hi in zip(values, moments, strict=True)]

    def column(self, name: str) -> Column:
        return self.table.column("time" if name == TIMESTAMP else name)


class TextField:
    """A field that holds single texts: which rows have which."""

    def __init__(self, name: str, column: Column) -> None:
        self.name = name
        assert column.codes is not None
        self.codes, self.texts = column.codes, column.texts
        self._indexes: dict[bool, dict[str, list[int]]] = {}
        self._found: dict[bool, dict[str, Numbers]] = {}

    @cached_property
    def counts(self) -> Numbers:
        """Of rows, by text."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    def patterns(self, tests: Tests, any_case: bool) -> dict[str, Numbers]:
        if any_case not in self._found:
            self._found[any_case] = tests.patterns[self.name, any_case].found(self._spelled(any_case))
        return self._found[any_case]

    def equal(self, wanted: Sequence[str], any_case: bool) -> Numbers:
        if any_case not in self._indexes:
            index: dict[str, list[int]] = {}
            for number, text in enumerate(self._spelled(any_case)):
                index.setdefault(text, []).append(number)
            self._indexes[any_case] = index
        texts = {lowered(text) for text in wanted} if any_case else set(wanted)
        return np.array(sorted(n for text in texts for n in self._indexes[any_case].get(text, ())), np.int64)

    def _spelled(self, any_case: bool) -> Sequence[str]:
        return [lowered(text) for text in self.texts] if any_case else self.texts

    @cached_property
    def _by_code(self) -> tuple[Numbers, Numbers]:
        order = pc.array_sort_indices(pa.array(self.codes)).to_numpy().astype(np.int64)  # by counting, where codes are many
        return order, np.searchsorted(self.codes[order], np.arange(len(self.texts) + 1))

    def rows_of(self, some: Numbers) -> Numbers:
        """The rows that have one of these texts, in order."""
        rows, starts = self._by_code
        pieces = [rows[start:end] for start, end in zip(starts[some].tolist(), starts[some + 1].tolist(), strict=True)]
        return np.sort(np.concatenate(pieces)) if len(pieces) > 1 else pieces[0] if pieces else NO_ROWS

    def has(self, some: Numbers, rows: Numbers) -> Mask:
        """Which of the rows have one of these texts?"""
        codes = self.codes[rows]
        if len(self.texts) > 4 * len(rows):
            return np.isin(codes, some)
        truths = np.zeros(len(self.texts) + 1, np.bool_)  # the last one is for null
        truths[some] = True
        return truths[codes]


def _is_order(test: Test) -> bool:
    """With a number that stands between the same doubles as among all numbers; what is not a number has no order with it."""
    match test.tree:
        case Compare(op=op, left=Reference(), right=Literal(value=value)):
            return op in ORDERS and type(value) in (int, float) and abs(value) < EXACT  # type: ignore[arg-type]
    return False
