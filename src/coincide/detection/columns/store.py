"""The events that runs refer to, by number, in the order of consumption: what is left of the batches they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.model.table import EventTable, Origins, concatenated_arrays

Numbers = npt.NDArray[np.int64]
NOTHING = EventTable(np.zeros(0, np.int64), np.zeros(0, np.int64), {"id": pa.nulls(0, pa.string())})


@dataclass
class Store:
    """Chunks one after another; they grow by merging, so that there are never many."""

    columns: frozenset[str]  # fields that are kept
    chunks: list[EventTable] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def add(self, table: EventTable, rows: Numbers) -> None:
        """Some rows of a table, at the end."""
        if not len(rows):
            return
        self.chunks.append(picked(table, rows, self.columns))
        while len(self.chunks) > 1 and 2 * len(self.chunks[-1]) >= len(self.chunks[-2]):
            last = self.chunks.pop()
            self.chunks[-1] = joined([self.chunks[-1], last])

    def keep(self, numbers: Numbers) -> None:
        """Only these, in order."""
        found = gathered(self.chunks, numbers, self.columns)
        self.chunks = [found] if len(numbers) else []


def gathered(chunks: Sequence[EventTable], numbers: Numbers, columns: frozenset[str]) -> EventTable:
    """The events with these numbers, which ascend, in chunks that are numbered through."""
    ends = np.cumsum([0, *map(len, chunks)])
    bounds = np.searchsorted(numbers, ends)
    found = [
        picked(chunk, numbers[a:b] - start, columns)
        for chunk, start, a, b in zip(chunks, ends, bounds[:-1], bounds[1:], strict=False)
        if b > a
    ]
    return joined(found) if found else NOTHING


def picked(table: EventTable, rows: Numbers, columns: frozenset[str]) -> EventTable:
    """Rows as they are kept: without what nobody will read, places worked out so that the rest of the batch can go."""
    index = pa.array(rows)
    fields = {name: table.fields[name].take(index) for name in table.fields if name in columns}
    foreign = None if table.foreign_places is None else tuple(table.foreign_places[row] for row in rows.tolist())
    return EventTable(
        table.lo[rows],
        table.hi[rows],
        fields,
        given_places=table.place_rows(rows),
        origins=table.origin().take(rows),
        foreign_places=foreign,
    )


def joined(tables: Sequence[EventTable]) -> EventTable:
    """Tables one after another."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for t in tables for name in t.fields)
    fields = {name: _field(name, tables) for name in names}
    foreign = None
    if any(t.foreign_places is not None for t in tables):
        foreign = tuple(place for t in tables for place in t.place_tuples())
    matrices = [t.place_matrix() for t in tables]
    width = max(m.shape[1] for m in matrices)
    places = np.concatenate([np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=-1) for m in matrices])
    lo, hi = np.concatenate([t.lo for t in tables]), np.concatenate([t.hi for t in tables])
    return EventTable(lo, hi, fields, 0, places, _origins([t.origin() for t in tables]), foreign)


def _field(name: str, tables: Sequence[EventTable]) -> pa.Array:
    arrays = [t.fields.get(name, pa.nulls(len(t))) for t in tables]
    return _ids(arrays) if name == "id" else concatenated_arrays([_plain(a) for a in arrays])


def _plain(array: pa.Array) -> pa.Array:
    """Dictionaries of different batches differ."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _ids(arrays: Sequence[pa.Array]) -> pa.Array:
    """Generated ids are whole numbers, given ones texts."""
    plain = [_plain(a) for a in arrays]
    one_kind = len({a.type for a in plain}) == 1
    return pa.concat_arrays(plain if one_kind else [a.cast(pa.string()) for a in plain])


def _origins(origins: Sequence[Origins]) -> Origins:
    lo, hi = np.concatenate([o.lo for o in origins]), np.concatenate([o.hi for o in origins])
    ids = _ids([o.ids for o in origins])
    if all(o.offsets is None for o in origins):
        return Origins(lo, hi, ids)
    sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in origins]
    return Origins(lo, hi, ids, np.concatenate(([0], np.cumsum(np.concatenate(sizes)))))
