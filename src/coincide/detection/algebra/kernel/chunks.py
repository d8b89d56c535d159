"""Events that are kept, by number: what is left of the tables that they came in. Their places are not: nobody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.origins import is_single
from coincide.model.table import EventTable, Origins, concatenated_arrays

Numbers = npt.NDArray[np.int64]
NOTHING = EventTable(np.zeros(0, np.int64), np.zeros(0, np.int64), {"id": pa.nulls(0, pa.string())})
LARGE = 1 << 15
"""Chunks of so many rows are not merged with others."""


def fields_of(tables: Sequence[EventTable]) -> frozenset[str]:
    return frozenset(name for table in tables for name in table.fields)


@dataclass
class Chunks:
    """Small ones grow by merging, so that there are never many."""

    tables: list[EventTable] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    def add(self, tables: Sequence[EventTable], rows: Numbers, columns: frozenset[str]) -> None:
        """Some rows of tables that are numbered through, at the end."""
        start = 0
        for table in tables:
            own = rows[(rows >= start) & (rows < start + len(table))] - start
            start += len(table)
            if len(own):
                self.tables.append(picked(table, own, columns))
            while len(self.tables) > 1 and len(self.tables[-2]) < LARGE and 2 * len(self.tables[-1]) >= len(self.tables[-2]):
                self.tables[-2:] = [joined(self.tables[-2:])]

    def drop(self, count: int) -> None:
        """The first ones."""
        while self.tables and count >= len(self.tables[0]):
            count -= len(self.tables.pop(0))
        if count:
            first = self.tables[0]
            self.tables[0] = picked(first, np.arange(count, len(first)), frozenset(first.fields))


def gathered(tables: Sequence[EventTable], numbers: Numbers, columns: frozenset[str]) -> EventTable:
    """The events with these numbers, which ascend, in tables that are numbered through."""
    ends = np.cumsum([0, *map(len, tables)])
    bounds = np.searchsorted(numbers, ends)
    found = [
        picked(table, numbers[a:b] - start, columns)
        for table, start, a, b in zip(tables, ends, bounds[:-1], bounds[1:], strict=False)
        if b > a
    ]
    return joined(found) if found else NOTHING


def picked(table: EventTable, rows: Numbers, columns: frozenset[str]) -> EventTable:
    arrays = {name: table.fields[name] for name in table.fields if name in columns or name == "id"}
    if len(rows) == len(table):
        return EventTable(table.lo, table.hi, arrays, origins=table.origins)
    origins = None if table.origins is None else table.origins.take(rows)
    if 2 * len(rows) > len(table) and rows[-1] - rows[0] + 1 == len(rows):
        here = slice(int(rows[0]), int(rows[-1]) + 1)
        return EventTable(table.lo[here], table.hi[here], {n: a[here] for n, a in arrays.items()}, origins=origins)
    index = pa.array(rows)
    return EventTable(table.lo[rows], table.hi[rows], {n: a.take(index) for n, a in arrays.items()}, origins=origins)


def joined(tables: Sequence[EventTable]) -> EventTable:
    """Tables one after another."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.fields)
    fields = {name: _field(name, tables) for name in names}
    lo, hi = (np.concatenate([getattr(table, end) for table in tables]) for end in ("lo", "hi"))
    if all(table.origins is None for table in tables):
        return EventTable(lo, hi, fields)
    return EventTable(lo, hi, fields, origins=_origins([table.origin() for table in tables]))


def _origins(below: Sequence[Origins]) -> Origins:
    """Of external events each is its own."""
    lo, hi = (np.concatenate([getattr(o, end) for o in below]) for end in ("lo", "hi"))
    ids = _one_kind([o.ids for o in below])
    if all(map(is_single, below)):
        return Origins(lo, hi, ids)
    sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in below]
    return Origins(lo, hi, ids, np.concatenate(([0], np.cumsum(np.concatenate(sizes)))))


def _field(name: str, tables: Sequence[EventTable]) -> pa.Array:
    arrays = [table.fields.get(name, pa.nulls(len(table))) for table in tables]
    if name == "id":
        return _one_kind(arrays)
    first = arrays[0]
    if pa.types.is_dictionary(first.type) and all(a.type == first.type and a.dictionary is first.dictionary for a in arrays):
        return pa.concat_arrays(arrays)
    if all(pa.types.is_dictionary(a.type) for a in arrays):
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    return concatenated_arrays([a.cast(a.type.value_type) if pa.types.is_dictionary(a.type) else a for a in arrays])


def _one_kind(ids: Sequence[pa.Array]) -> pa.Array:
    """Generated ids are whole numbers, given ones texts."""
    return pa.concat_arrays(ids if len({a.type for a in ids}) == 1 else [a.cast(pa.string()) for a in ids])
