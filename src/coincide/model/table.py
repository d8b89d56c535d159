"""Events as columns: the face of a batch that kernels, Arrow, Parquet and Spark see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.model.column import Column, Rows, column_from_arrow, column_of, concatenated
from coincide.model.event import Event, Place, Value, source_of
from coincide.model.fields import Columns, LazyColumns, changed
from coincide.model.fields import joined as joined_columns
from coincide.model.space import Space
from coincide.model.stamp import MILLISECOND, OrderKey, order_key

Instants = npt.NDArray[np.int64]

WIDE = 256
"""Beyond so many attributes, columns are made when they are asked for."""
SPACE = pa.struct([(name, pa.float64()) for name in ("x", "y", "lat", "lon", "z")] + [("zone", pa.string())])


@dataclass(frozen=True, eq=False)
class Origins:
    """The primitive events under each row: row i's are those from offsets[i] to offsets[i+1]; no offsets: one each."""

    lo: Instants
    hi: Instants
    ids: pa.Array
    offsets: Rows | None = None

    def take(self, rows: Rows) -> Origins:
        if self.offsets is None:
            return Origins(self.lo[rows], self.hi[rows], self.ids.take(pa.array(rows)))
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        sizes = ends - starts
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        flat = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        return Origins(self.lo[flat], self.hi[flat], self.ids.take(pa.array(flat)), offsets)

    def keys(self) -> list[tuple[OrderKey, ...]]:
        ids = self.ids.cast(pa.string()).to_pylist()
        flat = [order_key(int(lo), int(hi), i) for lo, hi, i in zip(self.lo, self.hi, ids, strict=True)]
        if self.offsets is None:
            return [(key,) for key in flat]
        return [tuple(flat[a:b]) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def lists(self) -> pa.Array:
        """The ids, a list a row, each once."""
        offsets = np.arange(len(self.lo) + 1) if self.offsets is None else self.offsets
        ids = self.ids.cast(pa.string())
        if len(ids) < len(offsets):  # at most one a row
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        codes = _distinct(self.ids, len(offsets))
        keys = rows * (int(codes.max(initial=0)) + 1) + codes
        ordered = np.sort(keys)
        if (ordered[1:] == ordered[:-1]).any():
            first = np.sort(np.unique(keys, return_index=True)[1])
            ids, offsets = ids.take(pa.array(first)), np.searchsorted(rows[first], np.arange(len(offsets)))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids)


def _distinct(ids: pa.Array, rows: int) -> Rows:
    """A small number for each of these ids: itself, if that leaves room for so many rows."""
    if ids.type == pa.int64() and not ids.null_count:
        numbers: Rows = ids.to_numpy()
        least, most = int(numbers.min(initial=0)), int(numbers.max(initial=0))
        if (most - least + 1) * rows < 1 << 62:
            return numbers - least
    codes: Rows = ids.cast(pa.string()).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LazyPlaces:
    """Places that are computed if somebody asks: often nobody does."""

    make: Callable[[], Places]

    @cached_property
    def matrix(self) -> Places:
        return self.make()


@dataclass(frozen=True, eq=False)
class ForeignPlaces(Sequence[Place]):
    """Places with timers in them, each made when it is asked for."""

    length: int
    make: Callable[[int], Place]

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, row: int) -> Place: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Place]: ...
    def __getitem__(self, row: int | slice) -> Place | Sequence[Place]:
        if isinstance(row, slice):
            return [self.make(n) for n in range(*row.indices(self.length))]
        return self.make(row)

    def __iter__(self) -> Iterator[Place]:
        return map(self.make, range(self.length))


@dataclass(frozen=True, eq=False)
class EventTable:
    """Columns of a batch. `fields` holds type, id, source, space and the attributes; one that is absent is null.

    External events: `first` is the consumption number of the first row, or those of all; there are no `places` and `origins`.
    Detections: `places` has a row each: hi of the root, its number, the generation, then the path, padded with -1."""

    lo: Instants
    hi: Instants
    fields: Columns
    first: int | Rows = 0
    given_places: Places | LazyPlaces | None = None
    origins: Origins | None = None
    foreign_places: Sequence[Place] | None = None  # places with timers in them, which are not plain numbers
    hidden: npt.NDArray[np.bool_] | None = None  # detections that only other detectors see; None: there are none
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.lo)

    @property
    def places(self) -> Places | None:
        return self.given_places.matrix if isinstance(self.given_places, LazyPlaces) else self.given_places

    def __post_init__(self) -> None:
        """What a rule gives as `source` becomes the name of a publisher."""
        given = self.fields.get("source")
        if given is not None and not _is_text(given.type):
            column = column_from_arrow(given)
            names = pa.array([source_of(column.value(row)) for row in range(len(column))], pa.string())
            object.__setattr__(self, "fields", {**self.fields, "source": names})  # of detections, which are never wide

    @property
    def attributes(self) -> list[str]:
        """By name: the order in which records and frames have them."""
        return sorted(name for name in self.fields if name not in ("type", "id", "source", "space", "arrival"))

    @property
    def sortable(self) -> bool:
        return self.foreign_places is None

    def column(self, name: str) -> Column:
        """A field as arrays; what no row has is null throughout."""
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def _column(self, name: str) -> Column:
        if name == "time":
            return Column(len(self), numbers=self.hi / MILLISECOND)
        if name == "id" and self.given_places is not None:
            return self._ids_of_external()
        if name not in self.fields or name in ("space", "arrival"):  # no values that an expression could read
            return Column(len(self))
        array = self.fields[name]
        return column_from_arrow(array.cast(pa.string()) if name == "id" else array)

    def _ids_of_external(self) -> Column:
        """Ids of detections are null to every rule."""
        assert self.places is not None
        if "id" not in self.fields:
            return Column(len(self))
        column = column_from_arrow(self.fields["id"].cast(pa.string()))
        assert column.codes is not None
        return replace(column, codes=np.where(self.places[:, 2] == 0, column.codes, np.int32(-1)))

    def take(self, rows: Rows) -> EventTable:
        index = pa.array(rows)
        lo = self.lo[rows]
        return EventTable(
            lo,
            lo if self.hi is self.lo else self.hi[rows],
            changed(self.fields, lambda array: array.take(index)),
            given_places=LazyPlaces(lambda: self.place_rows(rows)),
            origins=None if self.origins is None else self.origins.take(rows),
            foreign_places=None if (foreign := self.foreign_places) is None else _taken_places(foreign, rows),
            hidden=None if self.hidden is None else self.hidden[rows],
        )

    def rows(self, first: int, end: int) -> EventTable:
        """Those from one number up to another, as far as there are so many; of external events without a copy."""
        if self.given_places is not None or self.origins is not None or self.hidden is not None:
            return self.take(np.arange(first, min(end, len(self))))
        lo, fields = self.lo[first:end], changed(self.fields, lambda array: array.slice(first, max(0, end - first)))
        numbers = self.first[first:end] if isinstance(self.first, np.ndarray) else self.first + first
        return EventTable(lo, lo if self.hi is self.lo else self.hi[first:end], fields, numbers)

    def narrowed(self, rows: Rows, names: Iterable[str]) -> EventTable:
        """Few rows out of many, for a reader of these fields: the others are made if somebody asks."""
        fields = LazyColumns({}, {name: partial(self._taken, name, rows) for name in self.fields})
        columns = {name: self.column(name).take(rows).compact() for name in names if name != "id"}
        places, below = LazyPlaces(lambda: self.place_rows(rows)), self.origins and self.origins.take(rows)
        return EventTable(self.lo[rows], self.hi[rows], fields, 0, places, below, _columns=columns)

    def _taken(self, name: str, rows: Rows) -> pa.Array:
        return self.fields[name].take(pa.array(rows))

    def of_types(self, types: frozenset[str]) -> EventTable:
        rows = self.rows_of_types(types)
        return self if len(rows) == len(self) else self.take(rows)

    def rows_of_types(self, types: frozenset[str]) -> Rows:
        column = self.column("type")
        wanted = np.array([text in types for text in column.texts] + [False])
        return np.flatnonzero(wanted[column.codes]) if column.codes is not None else np.empty(0, np.int64)

    def numbered(self, first: int, clocks: Instants | None = None) -> EventTable:
        """As external events from the n-th on: each is its own origin, and its place follows from its number, and from the clock
        at which it is consumed where that is not its hi."""
        places = None if clocks is None else np.array((clocks, first + np.arange(len(self)), np.zeros(len(self), np.int64))).T
        return EventTable(self.lo, self.hi, self.fields, first, places, _columns=dict(self._columns))

    def origin(self) -> Origins:
        return self.origins or Origins(self.lo, self.hi, self.fields["id"])

    def place_matrix(self) -> npt.NDArray[np.int64]:
        places = self.places
        return self.place_rows(np.arange(len(self))) if places is None else places

    def place_rows(self, rows: Rows) -> npt.NDArray[np.int64]:
        """The places of some rows."""
        places = self.places
        if places is not None:
            return places[rows]
        return np.array((self.hi[rows], self.numbers_of(rows), np.zeros(len(rows), np.int64))).T

    def numbers_of(self, rows: Rows) -> Rows:
        """The consumption numbers of some rows, which are external events."""
        return self.first[rows] if isinstance(self.first, np.ndarray) else self.first + rows

    @property
    def generation(self) -> npt.NDArray[np.int64]:
        """0: external events; more: detections."""
        places = self.places
        return np.zeros(len(self), np.int64) if places is None else places[:, 2]

    def place_tuples(self) -> list[Place]:
        if self.foreign_places is not None:
            return list(self.foreign_places)
        return [*map(_place_of, self.place_matrix().tolist())]

    def place_tuple(self, row: int) -> Place:
        if self.foreign_places is not None:
            return self.foreign_places[row]
        return _place_of(self.place_rows(np.array([row]))[0].tolist())

    def spaces(self) -> list[Space | None]:
        if "space" not in self.fields:
            return [None] * len(self)
        return [None if s is None else Space(**s) for s in self.fields["space"].to_pylist()]

    def arrivals(self) -> list[int | None]:
        return self.fields["arrival"].to_pylist() if "arrival" in self.fields else [None] * len(self)

    def events(self) -> list[Event]:
        """The rows as objects."""
        names = self.attributes
        columns = [self.column(name) for name in names]
        types, ids, sources = (_texts(self.column(name)) for name in ("type", "id", "source"))
        rows = zip(
            types, self.lo.tolist(), self.hi.tolist(), ids, self.origin().keys(), sources, self.spaces(), self.place_tuples(),
            self.arrivals(), [False] * len(self) if self.hidden is None else self.hidden.tolist(), strict=True,
        )  # fmt: skip
        out = []
        for row, (kind, lo, hi, identifier, origin, source, space, place, arrival, hidden) in enumerate(rows):
            values = ((name, column.value(row)) for name, column in zip(names, columns, strict=True))
            attributes: dict[str, Value] = {name: value for name, value in values if value is not None}
            out.append(Event(kind or "", lo, hi, identifier, attributes, origin, source, space, place, arrival, hidden))
        return out


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return value in (pa.string(), pa.large_string(), pa.null())


def _texts(column: Column) -> list[str | None]:
    if column.codes is None:
        return [None] * len(column)
    return [column.texts[code] if code >= 0 else None for code in column.codes.tolist()]


def table_of(events: Sequence[Event]) -> EventTable:
    """Objects as columns."""
    names = dict.fromkeys(name for e in events for name in e.attributes)
    fields: dict[str, pa.Array] = {
        "type": pa.array([e.type for e in events], pa.string()),
        "id": pa.array([e.id for e in events], pa.string()),
    }
    if any(e.source is not None for e in events):
        fields["source"] = pa.array([e.source for e in events], pa.string())
    if any(e.space is not None for e in events):
        fields["space"] = pa.array([_space_record(e.space) for e in events], SPACE)
    if any(e.arrival is not None for e in events):
        fields["arrival"] = pa.array([e.arrival for e in events], pa.int64())
    columns: Columns = fields
    if len(names) > WIDE:
        columns = LazyColumns(fields, {name: _reading(name, events) for name in names})
    else:
        fields.update((name, _reading(name, events)()) for name in names)
    lo, hi = (np.array([getattr(e, end) for e in events], np.int64) for end in ("lo", "hi"))
    hidden = np.array([e.hidden for e in events], np.bool_) if any(e.hidden for e in events) else None
    places, foreign = _matrix(events), _foreign(events)
    return EventTable(lo, hi, columns, 0, places, origins_of([e.origin for e in events]), foreign, hidden)


def _reading(name: str, events: Sequence[Event]) -> Callable[[], pa.Array]:
    return lambda: column_of([e.attributes.get(name) for e in events]).to_arrow()


def _space_record(space: Space | None) -> dict[str, object] | None:
    return None if space is None else {name: getattr(space, name) for name in Space.__struct_fields__}


def _foreign(events: Sequence[Event]) -> tuple[Place, ...] | None:
    return tuple(e.place for e in events) if any(e.place and e.place[1] != 0 for e in events) else None


def _matrix(events: Sequence[Event]) -> npt.NDArray[np.int64]:
    width = max((len(e.place) for e in events), default=4)
    matrix = np.full((len(events), max(width, 4) - 1), -1, np.int64)
    for row, event in enumerate(events):
        if event.place and event.place[1] == 0:
            matrix[row, : len(event.place) - 1] = (event.place[0], *event.place[2:])
        elif event.place:  # a timer's: only its generation can be told in numbers
            matrix[row, :3] = (event.place[0], -1, event.place[3])
        else:
            matrix[row, :3] = (event.hi, row, 0)
    return matrix


def origins_of(origins: Sequence[Sequence[OrderKey]]) -> Origins:
    """As columns: for each row, the keys of the events that it was made of."""
    flat = [key for origin in origins for key in origin]
    hi, lo = (np.array([key[end] for key in flat], np.int64) for end in (0, 1))
    offsets = np.concatenate(([0], np.cumsum([len(origin) for origin in origins]))).astype(np.int64)
    return Origins(lo, hi, pa.array([key[4] for key in flat], pa.string()), offsets)


def merged_tables(tables: Sequence[EventTable]) -> EventTable:
    """Tables as one, ordered by place."""
    matrices = [t.place_matrix() for t in tables]
    width = max(m.shape[1] for m in matrices)
    places = np.concatenate([np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=-1) for m in matrices])
    foreign = None if all(t.sortable for t in tables) else _places_of_all(tables)
    order = np.lexsort(places.T[::-1]) if foreign is None else _by_place(places[:, 0], foreign, [*map(len, tables)])
    names = dict.fromkeys(name for t in tables for name in t.fields)
    fields = joined_columns([*names], [t.fields for t in tables], lambda name: _concatenated_field(name, tables))
    joined = EventTable(
        np.concatenate([t.lo for t in tables]),
        np.concatenate([t.hi for t in tables]),
        fields,
        given_places=places,
        origins=_concatenated_origins([t.origin() for t in tables]),
        foreign_places=foreign,
        hidden=_concatenated_hidden(tables),
    )
    return joined.take(order)


def _place_of(numbers: list[int]) -> Place:
    return (numbers[0], 0, numbers[1], *numbers[2 : 3 + 2 * numbers[2]])


def _taken_places(places: Sequence[Place], rows: Rows) -> ForeignPlaces:
    return ForeignPlaces(len(rows), lambda row: places[int(rows[row])])


def _places_of_all(tables: Sequence[EventTable]) -> ForeignPlaces:
    ends = np.cumsum([*map(len, tables)])

    def place(row: int) -> Place:
        number = int(np.searchsorted(ends, row, "right"))
        return tables[number].place_tuple(row - int(ends[number]) + len(tables[number]))

    return ForeignPlaces(int(ends[-1]), place)


def _by_place(first: npt.NDArray[np.int64], places: Sequence[Place], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Rows of tables that are each in order, by place. Most differ in the `first` number; only the others are looked at."""
    order = np.argsort(first, kind="stable")
    table = np.repeat(np.arange(len(sizes)), sizes)[order]
    starts = np.flatnonzero(np.diff(first[order], prepend=first[order[:1]] - 1))
    ends = np.append(starts[1:], len(order))
    mixed = np.maximum.reduceat(table, starts) != np.minimum.reduceat(table, starts)
    for start, end in zip(starts[mixed].tolist(), ends[mixed].tolist(), strict=True):
        order[start:end] = sorted(order[start:end].tolist(), key=places.__getitem__)
    return order


def _concatenated_hidden(tables: Sequence[EventTable]) -> npt.NDArray[np.bool_] | None:
    if all(t.hidden is None for t in tables):
        return None
    return np.concatenate([np.zeros(len(t), np.bool_) if t.hidden is None else t.hidden for t in tables])


def _concatenated_field(name: str, tables: Sequence[EventTable]) -> pa.Array:
    arrays = [t.fields.get(name, pa.nulls(len(t))) for t in tables]
    # generated ids are whole numbers, given ones texts
    return concatenated_arrays([a.cast(pa.string()) for a in arrays] if name == "id" else arrays)


def concatenated_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays of one field one after another; where their types differ, through columns."""
    kinds = {a.type for a in arrays}
    if len(kinds) == 1:
        return pa.concat_arrays(arrays)
    kinds.discard(pa.null())
    if len(kinds) == 1:
        kind = kinds.pop()
        return pa.concat_arrays([a.cast(kind) for a in arrays])
    return concatenated([column_from_arrow(a) for a in arrays]).to_arrow()


def _concatenated_origins(origins: Sequence[Origins]) -> Origins:
    sizes = [np.ones(len(o.lo), np.int64) if o.offsets is None else np.diff(o.offsets) for o in origins]
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    numbers = all(o.ids.type == pa.int64() for o in origins)
    ids = pa.concat_arrays([o.ids if numbers else o.ids.cast(pa.string()) for o in origins])
    return Origins(np.concatenate([o.lo for o in origins]), np.concatenate([o.hi for o in origins]), ids, offsets)
