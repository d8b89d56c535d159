"""Which rows of a batch concern a group of situations at all, decided over whole columns (section 7, "Per event alone").

Everything that an event can do depends first on its type and on conditions about itself alone. So rows that satisfy none of
them never become objects, and a world in which little happens costs little more than reading its column of types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from coincide.detection.situation.program import Group, SituationProgram
from coincide.expr.functions import FUNCTIONS
from coincide.expr.tree import Call, Expr, Literal
from coincide.expr.vector import Microseconds, Spaces, holds, spaces_of
from coincide.model.batch import EventBatch, merged
from coincide.model.column import Column
from coincide.model.event import ENVELOPE
from coincide.model.table import EventTable
from coincide.syntax import walk

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class FittedRows:
    """Some rows of a table, all of one event type: a value that does not fit its declared type is null (AMIT-3)."""

    def __init__(self, table: EventTable, rows: Rows, kinds: dict[str, type]) -> None:
        self.table = table
        self.rows = rows
        self.kinds = kinds
        self._columns: dict[str, Column | None] = {}

    @property
    def length(self) -> int:
        return len(self.rows)

    @property
    def lo(self) -> Microseconds:
        return self.table.lo[self.rows]

    @property
    def hi(self) -> Microseconds:
        return self.table.hi[self.rows]

    @property
    def space(self) -> Spaces | None:
        if "space" not in self.table.fields:
            return None
        spaces = self.table.spaces()
        return spaces_of([spaces[row] for row in self.rows])

    def column(self, name: str) -> Column | None:
        """Taken once: several conditions read it."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def _column(self, name: str) -> Column | None:
        if name in ENVELOPE:
            return self.table.column(name).take(self.rows)
        kind = self.kinds.get(name)
        return None if kind is None else fitted(self.table.column(name), kind).take(self.rows)


def fitted(column: Column, kind: type) -> Column:
    """The part of a column that is of the declared type."""
    if kind is float:
        return Column(len(column), numbers=column.numbers, rests=column.rests)
    if kind is str:
        return Column(len(column), codes=column.codes, texts=column.texts)
    return Column(len(column), flags=column.flags)


class Prefilter:
    """The conditions by which a group takes an interest in an event, by its type."""

    def __init__(self, group: Group) -> None:
        self.kinds = declared(group)
        tests: dict[str, dict[Expr | None, None]] = {event: {} for event in group.readers}
        for event, test in _roles(group):
            tests[event][test if test is not None and vectorised(test) else None] = None
        self.tests = {event: () if None in found else tuple(found) for event, found in tests.items()}

    def rows(self, table: EventTable) -> Rows:
        """The rows that may open or close a lifespan, become a candidate or make a partition."""
        types = table.column("type")
        if types.codes is None:
            return np.empty(0, np.int64)
        wanted = np.array([text in self.tests for text in types.texts] + [False])
        rows = np.flatnonzero(wanted[types.codes] if wanted.any() else wanted[:0])
        codes = types.codes[rows]
        passes = np.ones(len(rows), np.bool_)
        for event, tests in self.tests.items():
            if tests and event in types.texts:
                here = np.flatnonzero(codes == types.texts.index(event))
                passes[here] = self._any(FittedRows(table, rows[here], self.kinds[event]), tests)
        return rows if passes.all() else rows[passes]

    def _any(self, rows: FittedRows, tests: tuple[Expr | None, ...]) -> Mask:
        found = np.zeros(rows.length, np.bool_)
        for test in tests:
            assert test is not None
            found |= holds(test, rows)
        return found

    def pick(self, batch: EventBatch, first: bool) -> EventBatch:
        """The batch without rows that concern nobody. `first`: its first row stays (rules that begin late begin there)."""
        return merged([self._picked(part, first) for part in batch.parts])

    def _picked(self, batch: EventBatch, first: bool) -> EventBatch:
        if not batch.has_table or not batch.table.sortable:
            return batch  # objects are there already: the interpreter passes over them soon enough
        table, rows = batch.table, self.rows(batch.table)
        if first and len(table) and not (len(rows) and rows[0] == 0):
            rows = np.concatenate(([0], rows))
        return batch if len(rows) == len(table) else EventBatch(table=table.take(rows))


def declared(group: Group) -> dict[str, dict[str, type]]:
    """By event type: its attributes that somebody reads, and their types."""
    return {event: dict(readers.attributes) for event, readers in group.readers.items()}


def vectorised(tree: Expr) -> bool:
    """Can it be evaluated over columns? Functions of a host program cannot."""
    return not any(isinstance(node, Call) and node.name not in FUNCTIONS for node in walk(tree))


def _roles(group: Group) -> Iterator[tuple[str, Expr | None]]:
    for lifespan in group.lifespans:
        for role in lifespan.definition.roles:
            yield role.event, role.where
    for situation in group.situations:
        for operand in situation.operands:
            yield operand.event, _threshold(situation, operand.definition.threshold)


def _threshold(situation: SituationProgram, threshold: Expr | None) -> Expr | None:
    """A counting operator with a local key has a partition for key values whose events fail, too (decision 27)."""
    if situation.behaviour.counts and situation.local_key.size:
        return None
    return None if isinstance(threshold, Literal) and threshold.value is True else threshold
