"""What is made of a match: its rows (section 6) through SELECT and WHERE, as detections (section 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coincide.detection.eventwise import Cause
from coincide.detection.rowpattern.expressions import ColumnCompiler
from coincide.detection.rowpattern.measures import Match, Measures
from coincide.expr.scalar import ENVELOPE_FIELDS
from coincide.lang.matchrecognize.definition import Clause, Query
from coincide.lang.matchrecognize.functions import lowered, spelling
from coincide.model.event import Event, Value, united_origin

Columns = dict[str, Value]
Given = Callable[[Columns], Columns | None]
"""From the columns of an output row to those given out; None: WHERE leaves it out."""


class Output:
    """Makes the detections of one query."""

    def __init__(self, query: Query, measures: Measures, order: int) -> None:
        self.query = query
        self.clause: Clause = query.clause
        self.measures = measures
        self.order = order
        self.given = selection(query)
        self.nothing: Columns = dict.fromkeys(measures.trees)

    def asks(self, match: Match) -> int:
        """The last row that the measures of any row shown ask for."""
        if not self.measures.look_ahead:
            return -1
        return max((self._asks_at(match, shown) for shown in self.shown(match)), default=-1)

    def _asks_at(self, match: Match, shown: int) -> int:
        match.current = shown
        return self.measures.asks(match)

    def shown(self, match: Match) -> Iterable[int]:
        """The rows that are current, one after the other; of an empty match -1."""
        if not self.clause.all_rows or not match.labels:
            return [len(match.labels) - 1]
        return [n for n, hidden in enumerate(match.hidden) if not hidden]

    def make(self, match: Match, key: Columns, cause: Cause) -> None:
        """The detections of a match, of an empty one, or of one that is timed out."""
        first = match.rows.row(match.start)
        if not match.labels:
            if not self.clause.all_rows or self.clause.empty_matches:
                self._make_row(first, self._columns(match, -1, key, first), cause)
            return
        if self.clause.all_rows:
            for shown in self.shown(match):
                row = match.rows.row(match.start + shown)
                self._make_row(row, self._columns(match, shown, key, row), cause)
            return
        rows = [match.rows.row(n) for n in range(match.start, match.end)]
        lo, hi = min(r.lo for r in rows), max(r.hi for r in rows)
        if match.timed_out:
            assert self.clause.within is not None
            hi = first.hi + self.clause.within
        self._emit(self._columns(match, match.current, key, first), (lo, hi), rows, cause)

    def make_unmatched(self, row: Event, key: Columns, cause: Cause) -> None:
        if self.clause.unmatched_rows:
            self._make_row(row, {**row_columns(row), **key, **self.nothing}, cause)

    def _columns(self, match: Match, shown: int, key: Columns, row: Event) -> Columns:
        match.current = shown
        measures = self.measures.values(match)
        return {**row_columns(row), **key, **measures} if self.clause.all_rows else {**key, **measures}

    def _make_row(self, row: Event, columns: Columns, cause: Cause) -> None:
        self._emit(columns, (row.lo, row.hi), [row], cause)

    def _emit(self, columns: Columns, stamp: tuple[int, int], rows: list[Event], cause: Cause) -> None:
        given = self.given(columns)
        if given is None:
            return
        source = given.pop("source", None)
        name = source if source is None or isinstance(source, str) else spelling(source)
        cause.emit(self.order, self.query.name, stamp, given, united_origin(rows), name)


def row_columns(row: Event) -> Columns:
    """All columns of a row."""
    return {**row.attributes, **{name: read(row) for name, read in ENVELOPE_FIELDS.items()}}


ENVELOPE_OF_ROW = ("type", "id", "time")
"""Columns of the row's own envelope that `*` leaves out."""


def selection(query: Query) -> Given:
    """SELECT and WHERE."""
    where = None if query.where is None else ColumnCompiler().compile(lowered(query.where))
    items: Mapping[str, Any] = {i.name: ColumnCompiler().compile(lowered(i.value)) for i in query.items or ()}
    own = {m.name for m in query.clause.measures}

    def given(columns: Columns) -> Columns | None:
        if where is not None and where(columns) is not True:
            return None
        if query.items is None:
            return {name: value for name, value in columns.items() if name not in ENVELOPE_OF_ROW or name in own}
        return {name: evaluate(columns) for name, evaluate in items.items()}

    return given
