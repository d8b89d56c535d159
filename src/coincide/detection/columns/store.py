"""The events that runs refer to, by number, in the order of consumption: what is left of the batches they came in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.origins import is_single
from coincide.detection.columns.tables import taken
from coincide.detection.snapshots import damaged, place_of
from coincide.model.bounds import FURTHEST
from coincide.model.column import Column, concatenated
from coincide.model.event import Place
from coincide.model.space import Space
from coincide.model.table import SPACE, EventTable, Origins, concatenated_arrays

Numbers = npt.NDArray[np.int64]
NOTHING = EventTable(np.zeros(0, np.int64), np.zeros(0, np.int64), {"id": pa.nulls(0, pa.string())})


FEW = 8
"""So many chunks are left as they are: merging them would cost more than looking into each."""


@dataclass
class Store:
    """Chunks one after another; they grow by merging, so that there are never many. Where nobody asks for places, they are not
    kept (`placed`)."""

    columns: frozenset[str] | None  # fields that are kept; None: all
    chunks: list[EventTable] = field(default_factory=list)
    placed: bool = True

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def add(self, table: EventTable, rows: Numbers) -> None:
        """Some rows of a table, at the end."""
        if not len(rows):
            return
        self.chunks.append(picked(table, rows, self.columns, self.placed))
        few = len(self.chunks) <= FEW
        while not few and len(self.chunks) > 1 and 2 * len(self.chunks[-1]) >= len(self.chunks[-2]):
            last = self.chunks.pop()
            self.chunks[-1] = joined([self.chunks[-1], last], self.placed)

    def add_from(self, tables: Sequence[EventTable], rows: Numbers) -> None:
        """Some rows of tables that are numbered through."""
        start = 0
        for table in tables:
            self.add(table, rows[(rows >= start) & (rows < start + len(table))] - start)
            start += len(table)

    def drop(self, count: int) -> None:
        """The first ones."""
        while self.chunks and count >= len(self.chunks[0]):
            count -= len(self.chunks.pop(0))
        if count:
            first = self.chunks[0]
            self.chunks[0] = picked(first, np.arange(count, len(first)), None, self.placed)

    def keep(self, numbers: Numbers) -> None:
        """Only these, in order."""
        found = self.taken(numbers)
        self.chunks = [found] if len(numbers) else []

    def followed_by(self, table: EventTable | None) -> Store:
        """With a batch behind it, which is not kept."""
        return Store(self.columns, [*self.chunks, *([table] if table is not None and len(table) else [])], self.placed)

    def taken(self, numbers: Numbers) -> EventTable:
        """The events with these numbers, which ascend."""
        return gathered(self.chunks, numbers, self.columns, self.placed)

    # Of events with numbers that ascend: one thing or another.

    def lo(self, numbers: Numbers) -> Numbers:
        return self._numbers(numbers, lambda chunk, rows: chunk.lo[rows])

    def hi(self, numbers: Numbers) -> Numbers:
        return self._numbers(numbers, lambda chunk, rows: chunk.hi[rows])

    def column(self, name: str, numbers: Numbers) -> Column:
        """Of texts, and of ids above all, only those are looked at."""
        parts = self._parts(numbers)
        if name == "id" and len(parts) > 1:
            return joined([_piece(chunk, name, rows) for chunk, rows in parts]).column(name)
        columns = [_column(chunk, name, rows) for chunk, rows in parts]
        return columns[0] if len(columns) == 1 else concatenated(columns) if columns else Column(0)

    def spaces(self, numbers: Numbers) -> list[Space | None]:
        return [space for chunk, rows in self._parts(numbers) for space in chunk.take(rows).spaces()]

    def places(self, numbers: Numbers) -> Numbers:
        matrices = [chunk.place_rows(rows) for chunk, rows in self._parts(numbers)]
        return aligned_places(matrices) if matrices else np.zeros((0, 3), np.int64)

    def origins(self, numbers: Numbers) -> Origins:
        """The primitive events under these events, with offsets."""
        found = _origins([chunk.origin().take(rows) for chunk, rows in self._parts(numbers)] or [NOTHING.origin()])
        return found if found.offsets is not None else replace(found, offsets=np.arange(len(found.lo) + 1))

    def _numbers(self, numbers: Numbers, read: Callable[[EventTable, Numbers], Numbers]) -> Numbers:
        return np.concatenate([np.zeros(0, np.int64), *(read(chunk, rows) for chunk, rows in self._parts(numbers))])

    def _parts(self, numbers: Numbers) -> list[tuple[EventTable, Numbers]]:
        ends = np.cumsum([0, *map(len, self.chunks)])
        bounds = np.searchsorted(numbers, ends)
        parts = zip(self.chunks, ends[:-1], bounds[:-1], bounds[1:], strict=True)
        return [(chunk, numbers[a:b] - start) for chunk, start, a, b in parts if b > a]


def _column(table: EventTable, name: str, rows: Numbers) -> Column:
    return table._columns[name].take(rows) if name in table._columns else _piece(table, name, rows).column(name)


def _piece(table: EventTable, name: str, rows: Numbers) -> EventTable:
    """Some rows with one field."""
    fields = {name: table.fields[name].take(pa.array(rows))} if name in table.fields else {}
    places = table.place_rows(rows) if table.given_places is not None else None
    return EventTable(table.lo[rows], table.hi[rows], fields, given_places=places)


def aligned_places(matrices: Sequence[Numbers]) -> Numbers:
    """Places of several tables, one after another."""
    width = max(m.shape[1] for m in matrices)
    return np.concatenate([np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=-1) for m in matrices])


def spread(table: EventTable, numbers: Numbers, size: int) -> EventTable:
    """So many events, of which those with these numbers are known; the others say nothing."""
    if len(numbers) == size:
        return table
    rows = np.full(size, -1, np.int64)
    rows[numbers] = np.arange(len(numbers))
    index, known = pa.array(rows, mask=rows < 0), rows >= 0
    places = np.full((size, table.place_matrix().shape[1]), -1, np.int64)
    places[:, :3] = 0
    places[numbers] = table.place_matrix()
    below = table.origin()
    sizes = np.zeros(size, np.int64)
    sizes[numbers] = 1 if below.offsets is None else np.diff(below.offsets)
    origins = Origins(below.lo, below.hi, below.ids, np.concatenate(([0], np.cumsum(sizes))))
    fields = {name: table.fields[name].take(index) for name in table.fields}
    lo, hi = (np.where(known, end[rows], 0) for end in (table.lo, table.hi))
    foreign = (
        None if table.foreign_places is None else tuple(table.foreign_places[row] if row >= 0 else () for row in rows.tolist())
    )
    return EventTable(lo, hi, fields, given_places=places, origins=origins, foreign_places=foreign)


def gathered(chunks: Sequence[EventTable], numbers: Numbers, columns: frozenset[str] | None, placed: bool = True) -> EventTable:
    """The events with these numbers, which ascend, in chunks that are numbered through."""
    ends = np.cumsum([0, *map(len, chunks)])
    bounds = np.searchsorted(numbers, ends)
    found = [
        picked(chunk, numbers[a:b] - start, columns, placed)
        for chunk, start, a, b in zip(chunks, ends, bounds[:-1], bounds[1:], strict=False)
        if b > a
    ]
    return joined(found, placed) if found else NOTHING


def picked(table: EventTable, rows: Numbers, columns: frozenset[str] | None, placed: bool = True) -> EventTable:
    """Rows, which ascend, as they are kept: without what nobody will read, places worked out so that the rest of the batch can
    go."""
    if not placed:
        return _without_places(table, rows, columns)
    fields = {name: table.fields[name] for name in table.fields if columns is None or name in columns}
    external = table.given_places is None and table.origins is None and "id" in fields
    if len(rows) == len(table) and external:
        return EventTable(table.lo, table.hi, fields, table.first)
    if len(rows) < len(table):
        index = pa.array(rows)
        fields = {name: array.take(index) for name, array in fields.items()}
    lo = table.lo[rows]
    hi = lo if table.hi is table.lo else table.hi[rows]
    if external:
        return EventTable(lo, hi, fields, table.numbers_of(rows))
    foreign = None if table.foreign_places is None else tuple(table.foreign_places[row] for row in rows.tolist())
    origins = None if table.origins is None and "id" in fields else table.origin().take(rows)
    return EventTable(lo, hi, fields, given_places=table.place_rows(rows), origins=origins, foreign_places=foreign)


def _without_places(table: EventTable, rows: Numbers, columns: frozenset[str] | None) -> EventTable:
    """Most of a table is kept as it is, and rows one after another share its memory if they are not few."""
    fields = {name: table.fields[name] for name in table.fields if columns is None or name in columns}
    if len(rows) == len(table):
        return EventTable(table.lo, table.hi, fields, origins=table.origins)
    origins = None if table.origins is None else table.origins.take(rows)
    if 8 * len(rows) > len(table) and rows[-1] - rows[0] + 1 == len(rows):
        here = slice(int(rows[0]), int(rows[-1]) + 1)
        lo = table.lo[here]
        hi = lo if table.hi is table.lo else table.hi[here]
        return EventTable(lo, hi, {n: a[here] for n, a in fields.items()}, origins=origins)
    index = pa.array(rows)
    lo = table.lo[rows]
    hi = lo if table.hi is table.lo else table.hi[rows]
    return EventTable(lo, hi, {n: a.take(index) for n, a in fields.items()}, origins=origins)


def joined(tables: Sequence[EventTable], placed: bool = True) -> EventTable:
    """Tables one after another."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for t in tables for name in t.fields)
    fields = {name: _field(name, tables) for name in names}
    lo = np.concatenate([t.lo for t in tables])
    hi = lo if all(t.hi is t.lo for t in tables) else np.concatenate([t.hi for t in tables])
    origins = None if all(t.origins is None for t in tables) else _origins([t.origin() for t in tables])
    if not placed:
        return EventTable(lo, hi, fields, origins=origins)
    if origins is None and all(t.given_places is None for t in tables):
        return EventTable(lo, hi, fields, _joined_numbers(tables))
    foreign = None
    if any(t.foreign_places is not None for t in tables):
        foreign = tuple(place for t in tables for place in t.place_tuples())
    places = aligned_places([t.place_matrix() for t in tables])
    return EventTable(lo, hi, fields, 0, places, origins, foreign)


def _joined_numbers(tables: Sequence[EventTable]) -> int | Numbers:
    """The numbers of external events; of those that have them one after another, the first says all."""
    numbers = np.concatenate([t.numbers_of(np.arange(len(t))) for t in tables])
    return int(numbers[0]) if len(numbers) and (np.diff(numbers) == 1).all() else numbers


def _field(name: str, tables: Sequence[EventTable]) -> pa.Array:
    arrays = [t.fields.get(name, pa.nulls(len(t))) for t in tables]
    if name == "id":
        return _ids(arrays)
    first = arrays[0]
    if pa.types.is_dictionary(first.type) and all(a.type == first.type for a in arrays):
        if all(a.dictionary is first.dictionary for a in arrays):
            return pa.concat_arrays(arrays)
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    return concatenated_arrays([_plain(a) for a in arrays])


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _ids(arrays: Sequence[pa.Array]) -> pa.Array:
    """Generated ids are whole numbers, given ones texts."""
    plain = [_plain(a) for a in arrays]
    one_kind = len({a.type for a in plain}) == 1
    return pa.concat_arrays(plain if one_kind else [a.cast(pa.string()) for a in plain])


def _origins(origins: Sequence[Origins]) -> Origins:
    lo, hi = np.concatenate([o.lo for o in origins]), np.concatenate([o.hi for o in origins])
    ids = _ids([o.ids for o in origins])
    if all(map(is_single, origins)):
        return Origins(lo, hi, ids)
    sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in origins]
    return Origins(lo, hi, ids, np.concatenate(([0], np.cumsum(np.concatenate(sizes)))))


# Events as bytes.

PLACE, ORIGIN_LO, ORIGIN_HI, ORIGIN_ID = "\0place", "\0origin lo", "\0origin hi", "\0origin id"
LO, HI, FOREIGN = "\0lo", "\0hi", "\0foreign"
"""Columns beside the fields, which have no such names. FOREIGN: places with timers in them, which are no plain numbers."""


def event_bytes(table: EventTable) -> bytes:
    places, origin = table.place_matrix(), table.origin()
    offsets = np.arange(len(table) + 1) if origin.offsets is None else origin.offsets
    width = places.shape[1]
    columns = {
        LO: pa.array(table.lo),
        HI: pa.array(table.hi),
        PLACE: pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(places).reshape(-1)), width),
        ORIGIN_LO: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(origin.lo)),
        ORIGIN_HI: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(origin.hi)),
        ORIGIN_ID: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _plain(origin.ids)),
        **{name: table.fields[name] for name in table.fields},
    }
    if table.foreign_places is not None:
        foreign = [msgspec.msgpack.encode(place) if place and place[1] else None for place in table.foreign_places]
        columns[FOREIGN] = pa.array(foreign, pa.binary())
    batch = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_table(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def events_from(data: bytes) -> EventTable:
    """The events that were written. Whatever the bytes are, they are events with stamps and places, or a ValueError."""
    if not data:
        return NOTHING
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return _events_of(reader.read_all())


def some_events(written: pa.Table, rows: Numbers) -> EventTable:
    """Some of the events that were written, which need not be sound otherwise; in the same way."""
    written.validate()
    for column in written.columns:
        _check_reach(_one_chunk(column), rows)
    return _events_of(written.take(pa.array(rows)))


def _check_reach(array: pa.Array, rows: Numbers) -> None:
    """What these rows refer to is there."""
    if not len(rows):
        return
    kind = array.type
    is_list, wide = pa.types.is_list(kind), pa.types.is_large_string(kind)
    if is_list or wide or pa.types.is_string(kind):
        _, offsets, data, *_ = array.buffers()
        bounds = np.frombuffer(offsets, np.int64 if wide else np.int32)
        first, end = bounds[rows].astype(np.int64), bounds[rows + 1].astype(np.int64)
        size = len(array.values) if is_list else 0 if data is None else data.size
        if ((first < 0) | (first > end) | (end > size)).any():
            damaged("its events are not complete")
        if is_list:
            _check_reach(array.values, taken(first, end - first))
    elif not pa.types.is_primitive(kind):
        array.validate(full=True)


def _events_of(read: pa.Table) -> EventTable:
    read.validate(full=True)
    if len(set(read.column_names)) < len(read.column_names) or len(read) == 0:
        damaged("its events have a field twice")
    columns = {name: _one_chunk(read.column(name)) for name in read.column_names}
    lo, hi = (_whole(columns.pop(name, None)) for name in (LO, HI))
    foreign = _foreign_places(columns.pop(FOREIGN, None))
    places = _places(columns.pop(PLACE, None), len(read), foreign)
    origins = _read_origins(*(columns.pop(name, None) for name in (ORIGIN_LO, ORIGIN_HI, ORIGIN_ID)))
    for name in ("type", "id"):
        if name in columns:  # detections have no ids, and not everybody needs types
            _check_texts(name, columns[name])
    if "space" in columns and columns["space"].type != SPACE:
        damaged("its events have no 'space'")
    if (lo > hi).any() or (np.abs(np.concatenate((lo, hi))) > FURTHEST).any():
        damaged("a stamp ends before it begins, or is out of range")
    table = EventTable(lo, hi, columns, given_places=places, origins=origins)
    for name, array in columns.items():
        if array.type not in (pa.string(), pa.large_string()):  # texts have been validated
            table.column(name)  # values of any rule, or an error
    if not foreign:
        return table
    return replace(table, foreign_places=tuple(foreign.get(row, place) for row, place in enumerate(table.place_tuples())))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    found = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


def _whole(array: pa.Array | None) -> Numbers:
    if array is None or array.type != pa.int64() or array.null_count:
        damaged("its events have no stamps or places")
    found: Numbers = array.to_numpy()
    return found


def _foreign_places(array: pa.Array | None) -> dict[int, Place]:
    """By row."""
    if array is None:
        return {}
    if array.type != pa.binary():
        damaged("a place is not one")
    written = enumerate(array.to_pylist())
    return {row: place_of(msgspec.msgpack.decode(data)) for row, data in written if data is not None}


def _places(array: pa.Array | None, rows: int, foreign: Mapping[int, Place]) -> Numbers:
    """Each has a generation, and as long a path as that says; of one with a timer in it only that is told."""
    if array is None or not pa.types.is_fixed_size_list(array.type) or array.null_count:
        damaged("its events have no places")
    width = array.type.list_size
    places = np.ascontiguousarray(_whole(array.flatten()).reshape(rows, width)) if width >= 3 else damaged("a place is not one")
    heads = np.array([(place[0], -1, place[3]) for place in foreign.values()], np.int64).reshape(-1, 3)
    if not np.array_equal(places[list(foreign), :3], heads):
        damaged("a place is not one")
    generation = places[:, 2].copy()
    generation[list(foreign)] = 0
    if (generation < 0).any() or (3 + 2 * generation > width).any() or (np.abs(places[:, 0]) > FURTHEST).any():
        damaged("a place is not one")
    path = np.arange(width)[None, :] < (3 + 2 * generation)[:, None]
    if (path[:, 3:] & (places[:, 3:] < 0)).any() or (~path & (places != -1)).any():
        damaged("a place is not one")
    return places


def _read_origins(lo: pa.Array | None, hi: pa.Array | None, ids: pa.Array | None) -> Origins:
    arrays = (lo, hi, ids)
    if any(a is None or not pa.types.is_list(a.type) or a.null_count for a in arrays):
        damaged("its events do not tell what they come from")
    assert lo is not None
    assert hi is not None
    assert ids is not None
    offsets = lo.offsets.to_numpy().astype(np.int64)
    if any(not np.array_equal(a.offsets.to_numpy(), offsets) for a in (hi, ids)):
        damaged("its events do not tell what they come from")
    first, last = int(offsets[0]), int(offsets[-1])
    below = [a.values.slice(first, last - first) for a in (lo, hi, ids)]
    starts, ends = _whole(below[0]), _whole(below[1])
    _check_texts("id", below[2])
    if (starts > ends).any() or (np.abs(np.concatenate((starts, ends))) > FURTHEST).any() or below[2].null_count:
        damaged("its events do not tell what they come from")
    return Origins(starts, ends, below[2], offsets - first)


def _check_texts(name: str, array: pa.Array | None) -> None:
    """Types are texts; so are ids, or whole numbers if they were given by us."""
    kind = None if array is None else array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if kind is None or not (kind in (pa.string(), pa.large_string(), pa.null()) or (name == "id" and pa.types.is_integer(kind))):
        damaged(f"its events have no '{name}'")
