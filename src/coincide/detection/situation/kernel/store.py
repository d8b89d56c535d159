"""The events that the compiled loop knows: those kept from before, then the rows of the step, numbered in order of arrival."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.situation.prefilter import FittedRows, fitted
from coincide.expr.vector import Microseconds, Spaces, spaces_of
from coincide.model.column import Column, concatenated
from coincide.model.event import ENVELOPE, Place
from coincide.model.space import Space
from coincide.model.table import EventTable, Origins, concatenated_arrays, merged_tables

Refs = npt.NDArray[np.int64]


class Store:
    """Two tables as one. Columns are put together when they are asked for."""

    def __init__(self, kept: EventTable, new: EventTable) -> None:
        self.kept = kept
        self.new = new
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.kept) + len(self.new)

    @cached_property
    def lo(self) -> Microseconds:
        return np.concatenate((self.kept.lo, self.new.lo))

    @cached_property
    def hi(self) -> Microseconds:
        return np.concatenate((self.kept.hi, self.new.hi))

    @property
    def fields(self) -> dict[str, pa.Array]:
        return {**self.kept.fields, **self.new.fields}

    def spaces(self) -> list[Space | None]:
        return [*self.kept.spaces(), *self.new.spaces()]

    def column(self, name: str) -> Column:
        if name not in self._columns:
            columns = [table.column(name) for table in (self.kept, self.new) if len(table)]
            self._columns[name] = columns[0] if len(columns) == 1 else concatenated(columns)
        return self._columns[name]

    def some(self, name: str, refs: Refs) -> Column:
        """A column of some events. Of texts, and of ids above all, only those are looked at."""
        if name in self._columns or len(refs) >= len(self):
            return self.column(name).take(refs)
        used, index = np.unique(refs, return_inverse=True)
        columns = [_only(table, name).take(rows).column(name) for table, rows in self._parts(used) if len(rows)]
        return concatenated(columns).take(index) if columns else Column(0)

    def _parts(self, refs: Refs) -> list[tuple[EventTable, Refs]]:
        size = len(self.kept)
        return [(self.kept, refs[refs < size]), (self.new, refs[refs >= size] - size)]

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        matrices = [table.place_matrix() for table in (self.kept, self.new)]
        width = max(m.shape[1] for m in matrices)
        return np.concatenate([np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=-1) for m in matrices])

    def place(self, ref: int) -> Place:
        row = self.places[ref].tolist()
        return row[0], 0, row[1], *row[2 : 3 + 2 * row[2]]

    def origins(self, refs: Refs) -> Origins:
        """The primitive events under these events, which must be in order."""
        parts = [table.origin().take(some) for table, some in self._parts(refs) if len(some)]
        if not parts:
            nothing = np.zeros(0, np.int64)
            return Origins(nothing, nothing, pa.array([], pa.string()), np.zeros(1, np.int64))
        sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in parts]
        offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
        ids = concatenated_arrays([o.ids if len({p.ids.type for p in parts}) == 1 else o.ids.cast(pa.string()) for o in parts])
        return Origins(np.concatenate([o.lo for o in parts]), np.concatenate([o.hi for o in parts]), ids, offsets)

    def keep(self, refs: Refs) -> EventTable:
        """These events as a table of their own, which holds on to nothing else."""
        taken = [table.take(some) for table, some in self._parts(refs) if len(some)]
        if not taken:
            return nothing_kept()
        table = taken[0] if len(taken) == 1 else merged_tables(taken)
        return replace(table, given_places=table.place_matrix(), _columns={})


def _only(table: EventTable, name: str) -> EventTable:
    fields = {field: table.fields[field] for field in (name, "id") if field in table.fields}
    return replace(table, fields=fields, hidden=None, _columns={})


def nothing_kept() -> EventTable:
    nothing = np.zeros(0, np.int64)
    texts = pa.array([], pa.string())
    origins = Origins(nothing, nothing, texts, np.zeros(1, np.int64))
    return EventTable(nothing, nothing, {"type": texts, "id": texts}, given_places=np.zeros((0, 3), np.int64), origins=origins)


class Gathered:
    """Events by their refs, as rows of an expression; -1: there is none, and all its attributes are null."""

    def __init__(self, store: Store, refs: Refs, kinds: dict[str, type]) -> None:
        self.store = store
        self.refs = refs
        self.kinds = kinds

    @property
    def length(self) -> int:
        return len(self.refs)

    @property
    def lo(self) -> Microseconds:
        return self.store.lo[self.refs]

    @property
    def hi(self) -> Microseconds:
        return self.store.hi[self.refs]

    @property
    def space(self) -> Spaces | None:
        if "space" not in self.store.fields:
            return None
        spaces = self.store.spaces()
        return spaces_of([spaces[ref] for ref in self.refs])

    def column(self, name: str) -> Column | None:
        if name not in ENVELOPE and name not in self.kinds:
            return None
        column = self.store.some(name, np.maximum(self.refs, 0))
        return absent(column if name in ENVELOPE else fitted(column, self.kinds[name]), self.refs < 0)


def absent(column: Column, where: Any) -> Column:
    """The column with nulls in some rows."""
    if not where.any():
        return column
    numbers = None if column.numbers is None else np.where(where, np.nan, column.numbers)
    codes = None if column.codes is None else np.where(where, np.int32(-1), column.codes)
    flags = None if column.flags is None else np.where(where, np.int8(-1), column.flags)
    return Column(len(column), numbers, codes, column.texts, flags)


def of_type(store: Store, rows: Refs, kinds: dict[str, type]) -> FittedRows:
    return FittedRows(store, rows, kinds)  # type: ignore[arg-type]
