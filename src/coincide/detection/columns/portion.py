"""Of written tables (columns/codec.py), only what belongs to some keys, without a look at the rest.

Keys are found by their hashes. Then come the rows that belong to these (they refer to a key, or to a row that belongs to one),
those that they refer to, and what goes with them; and the events of all of them. What is shared by all keys comes whole. Changes
that were told since are few, and read as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from coincide.detection.columns import codec
from coincide.detection.columns.codec import EVENTS, Relations, Rows
from coincide.detection.columns.dues import NEVER
from coincide.detection.columns.hashes import Hashes, is_open, key_hashes
from coincide.detection.columns.store import events_from, joined, some_events
from coincide.detection.columns.tables import KEYED_DENSELY, SHARED, Numbers, Shape, ShapeText, are_among, distinct, taken
from coincide.detection.snapshots import damaged
from coincide.model.bounds import Count
from coincide.model.table import EventTable

NOTHING = np.zeros(0, np.int64)
DUE = "due"
"""The column that tells when a row is due."""


# What is written, but of large things only where they are.


class _Packed(msgspec.Struct, array_like=True):
    kind: str
    data: memoryview

    @property
    def numbers(self) -> Any:
        if self.kind not in codec.WIDTHS or self.data.nbytes % int(self.kind[1]):
            damaged("a column is not one of whole numbers")
        return np.frombuffer(self.data, f"<{self.kind}")


class _Index(msgspec.Struct, array_like=True):
    parts: Count
    hashes: _Packed
    rows: _Packed
    always: _Packed


class _Table(msgspec.Struct, array_like=True):
    name: str
    size: Count
    parts: Count
    numbers: _Packed
    freed: _Packed
    columns: dict[str, _Packed]
    values: memoryview | None
    starts: _Packed | None = None
    index: _Index | None = None


class _Written(msgspec.Struct, array_like=True):
    version: int
    kind: str
    since: Count
    epoch: Count
    tables: list[_Table]
    refs: _Packed
    events: memoryview
    notes: dict[str, codec.Packed]
    shapes: list[ShapeText] = []


def divided(base: bytes | memoryview, changes: Sequence[bytes], parts: int) -> Divided | None:
    """Tables that portions can be read of, by keys of so many parts. None: keys cannot be told from one another."""
    written = msgspec.msgpack.decode(base, type=_Written)
    shapes = {shape.name: shape.shape for shape in written.shapes}
    keys = [table for table in written.tables if table.index is not None]
    if len(keys) != 1 or written.version != codec.VERSION or written.since or [*shapes] != [t.name for t in written.tables]:
        return None
    (index,) = (table.index for table in keys)
    if index is None or index.parts != parts:
        return None
    later = _later(written, shapes, changes)
    return None if later is None else Divided(written, shapes, later, keys[0].name)


@dataclass
class Divided:
    """Tables as they were written first, and what was told later: read once, for many portions."""

    written: _Written
    shapes: dict[str, Shape]
    later: _Later
    keys: str  # the table of these
    _ascending: dict[tuple[str, str], bool] = field(default_factory=dict)

    def portion(self, hashes: Hashes) -> Relations | None:
        """Tables of the keys with these hashes, as a whole. None: they cannot be told from the others."""
        return None if self.loses_some else _Portion(self).of(self.keys, hashes)

    @cached_property
    def loses_some(self) -> bool:
        """Are there rows that neither belong to keys, nor are shared, nor referred to: as what waits, whichever key it is of?"""
        shapes = self.shapes.values()
        referred = {own.into for shape in shapes for own in (*shape.fields, *shape.part_fields)}
        reached = {*referred, *self.belonging, *(shape.name for shape in shapes if shape.use or shape.owner is not None)}
        others = self.shapes.keys() - reached
        return any(self.tables[name].numbers.data.nbytes or len(self.later.net.rows[name]) for name in others)

    @cached_property
    def later_hashes(self) -> Hashes:
        return key_hashes(self.later.net.rows[self.keys].values or [])

    @cached_property
    def later_open(self) -> Any:
        """Which of the keys that were told later are none of so many parts."""
        index = next(table.index for table in self.written.tables if table.name == self.keys)
        assert index is not None
        return np.array([is_open(key, index.parts) for key in self.later.net.rows[self.keys].values or []], np.bool_)

    @cached_property
    def belonging(self) -> dict[str, str]:
        """Tables whose rows belong to keys, each behind those that it refers to, and the column that tells to what."""
        found: dict[str, str] = {}
        while True:
            more = {
                name: column
                for name, shape in self.shapes.items()
                if name not in found and name != self.keys and (column := _belongs_by(shape, {self.keys, *found}))
            }
            if not more:
                return found
            found.update(more)

    # What is due

    def due(self, instant: int) -> tuple[Hashes, int]:
        """The hashes of keys that have rows which are due before, by a column of that name; and when another one is due next."""
        keys, following = [NOTHING], [NEVER]
        for name, shape in self.shapes.items():
            if any(own.name == DUE for own in shape.fields):
                numbers, due = self._column(name, DUE)
                keys.append(self._keys_of(name, numbers[due < instant]))
                following.append(int(due[due >= instant].min(initial=NEVER)))
        return self._hashes_of(np.unique(np.concatenate(keys))), min(following)

    def _column(self, name: str, label: str) -> tuple[Numbers, Numbers]:
        """Of all rows of a table: their numbers and what they have there."""
        table, net, gone = self.tables[name], self.later.net.rows[name], self.later.gone[name]
        numbers, column = table.numbers.numbers, table.columns[label].numbers
        if len(gone):
            there = ~np.isin(numbers, gone)
            numbers, column = numbers[there], column[there]
        return np.concatenate((numbers, net.numbers)), np.concatenate((column, net.columns[label]))

    def _keys_of(self, name: str, wanted: Numbers) -> Numbers:
        """The keys that rows with these numbers belong to, or those that refer to them."""
        if name == self.keys or not len(wanted):
            return wanted
        if name in self.belonging:
            label = self.belonging[name]
            into = next(own.into for own in self.shapes[name].fields if own.name == label)
            numbers, column = self._column(name, label)
            assert into is not None
            return self._keys_of(into, column[np.isin(numbers, wanted)])
        found = [NOTHING]
        for other in self.belonging:
            for label, own, _ in self.shapes[other].written(self.tables[other].parts):
                if own.into == name and self.shapes[other].owner is None:
                    numbers, column = self._column(other, label)
                    found.append(self._keys_of(other, numbers[np.isin(column, wanted)]))
        return np.concatenate(found)

    def _hashes_of(self, keys: Numbers) -> Hashes:
        table, net = self.tables[self.keys], self.later.net.rows[self.keys]
        assert table.index is not None
        by_place = np.empty(len(table.numbers.numbers), np.int64)
        by_place[table.index.rows.numbers] = table.index.hashes.numbers
        here, there = _places(table.numbers.numbers, keys), _places(net.numbers, keys)
        return np.unique(np.concatenate((by_place[here], self.later_hashes[there])))

    @cached_property
    def tables(self) -> dict[str, _Table]:
        return {table.name: table for table in self.written.tables}

    def ascends(self, name: str, label: str) -> bool:
        """Does a column as it was written first?"""
        if (name, label) not in self._ascending:
            column = self.tables[name].columns[label].numbers
            self._ascending[name, label] = bool((column[1:] >= column[:-1]).all())
        return self._ascending[name, label]

    @cached_property
    def events(self) -> pa.Table:
        with pa.ipc.open_stream(pa.py_buffer(self.written.events)) as reader:
            return reader.read_all()


@dataclass
class _Later:
    """What was told later: rows, and the numbers of those before that are no more, in order."""

    net: Relations
    none: dict[str, Rows]
    gone: dict[str, Numbers] = field(default_factory=dict)


def _later(written: _Written, shapes: dict[str, Shape], changes: Sequence[bytes]) -> _Later | None:
    empty = {table.name: _no_rows(shapes[table.name], table) for table in written.tables}
    notes = {name: codec.unpack(packed) for name, packed in written.notes.items()}
    before = Relations(written.kind, empty, NOTHING, events_from(b""), notes, 0, written.epoch)
    versions = [codec.read(tuple(shapes.values()), written.kind, data) for data in changes]
    if not all(some.since for some in versions):
        return None
    later = _Later(codec.changed([before, *versions]), empty)
    for name, shape in shapes.items():
        owners = [some.rows[name if shape.owner is None else _owners(shape)] for some in versions]
        gone = [rows.freed if shape.owner is not None and shape.grows else codec.mentioned(rows) for rows in owners]
        later.gone[name] = distinct(np.concatenate([NOTHING, *gone]))
    return later


def _no_rows(shape: Shape, table: _Table) -> Rows:
    if table.parts > codec.WIDEST or table.size > codec.MOST:
        damaged(f"its table '{table.name}' has other columns")
    columns = {name: NOTHING for name, *_ in shape.written(table.parts)}
    if [*columns] != [*table.columns]:
        damaged(f"its table '{table.name}' has other columns")
    return Rows(shape, NOTHING, columns, table.size, table.parts, values=[] if shape.valued else None)


def _owners(shape: Shape) -> str:
    """The table of what owns its rows."""
    into = next(own.into for own in shape.fields if own.name == shape.owner)
    assert into is not None
    return into


class _Portion:
    def __init__(self, whole: Divided) -> None:
        self.whole = whole
        self.written, self.shapes, self.later = whole.written, whole.shapes, whole.later
        self.tables = whole.tables
        self.rows: dict[str, Rows] = {}

    def of(self, keys: str, hashes: Hashes) -> Relations:
        later = np.flatnonzero(are_among(self.whole.later_hashes, hashes) | self.whole.later_open)
        self._take(keys, self._rows_of_keys(keys, hashes), later)
        for name, column in self.whole.belonging.items():
            self._take_belonging(name, column)
        others = [name for name in self.shapes if name not in self.rows and self.shapes[name].owner is None]
        for name in others:
            if self.shapes[name].use == SHARED:
                self._take_all(name)
        self._take_referred([name for name in others if name not in self.rows])
        for name in (name for name in self.shapes if name not in self.rows):  # what goes with rows that are referred to
            self._take_belonging(name, str(self.shapes[name].owner))
        return self._relations(keys)

    def _relations(self, keys: str) -> Relations:
        net = self.later.net
        rows = {name: self.rows[name] for name in self.shapes}
        refs, events = self._events(rows.values())
        notes = {name: numbers.copy() for name, numbers in net.notes.items()}
        found = Relations(net.kind, rows, refs, events, notes, 0, net.epoch)
        if self.shapes[keys].use == KEYED_DENSELY:
            codec.check_references(found)
            found = codec.renumbered(found)
            found.notes = {**found.notes, "events": np.array([len(refs)])}
        return found

    # Which rows

    def _rows_of_keys(self, name: str, hashes: Hashes) -> Numbers:
        index = self.tables[name].index
        assert index is not None
        places = _all_places(index.hashes.numbers, hashes)
        return distinct(np.concatenate((index.rows.numbers[places], index.always.numbers)).astype(np.int64))

    def _take_belonging(self, name: str, column: str) -> None:
        shape = self.shapes[name]
        into = next(own.into for own in shape.fields if own.name == column)
        assert into is not None
        wanted = self.rows[into].numbers
        mine, net = self.tables[name].columns[column].numbers, self.later.net.rows[name].columns[column]
        if not len(mine) and not len(net):
            places = NOTHING
        elif self.whole.ascends(name, column):
            places = _all_places(mine, wanted)
        else:
            chosen = np.zeros(self.rows[into].size, np.bool_)
            chosen[wanted] = True
            places = np.flatnonzero(chosen[mine])
        self._take(name, places, np.flatnonzero(are_among(net, wanted)))

    def _take_all(self, name: str) -> None:
        self._take(name, np.arange(len(self._numbers(name))), np.arange(len(self.later.net.rows[name])))

    def _take_referred(self, names: Sequence[str]) -> None:
        """Rows that others refer to, and those that these refer to."""
        found: dict[str, Numbers] = dict.fromkeys(names, NOTHING)
        sources = [*self.rows.values()]
        while True:
            wanted = {name: self._references(sources, name) for name in names}
            more = {name: np.setdiff1d(numbers, found[name]) for name, numbers in wanted.items()}
            if not any(map(len, more.values())):
                break
            found = {name: np.union1d(found[name], more[name]) for name in names}
            sources = [self._read(name, *self._by_number(name, numbers)) for name, numbers in more.items() if len(numbers)]
        for name in names:
            self._take(name, *self._by_number(name, found[name]))

    def _references(self, sources: Iterable[Rows], into: str) -> Numbers:
        columns = [
            rows.columns[label] for rows in sources for label, own, _ in rows.shape.written(rows.parts) if own.into == into
        ]
        numbers = np.unique(np.concatenate([NOTHING, *columns]))
        return numbers[numbers >= 0]

    def _by_number(self, name: str, wanted: Numbers) -> tuple[Numbers, Numbers]:
        return _places(self._numbers(name), wanted), _places(self.later.net.rows[name].numbers, wanted)

    # Rows

    def _numbers(self, name: str) -> Any:
        """Of the rows of a table; those with an owner are counted."""
        table = self.tables[name]
        if self.shapes[name].owner is None:
            return table.numbers.numbers
        return np.arange(len(next(iter(table.columns.values())).numbers))

    def _take(self, name: str, places: Numbers, later: Numbers) -> None:
        self.rows[name] = self._read(name, places, later)

    def _read(self, name: str, places: Numbers, later: Numbers) -> Rows:
        """Rows at some places of what was written first, and of what was told later, as one."""
        if not len(places) and not len(later):
            none = self.later.none[name]
            return replace(
                none, columns=dict(none.columns), size=none.size if none.shape.owner else self.later.net.rows[name].size
            )
        shape, table, net, gone = self.shapes[name], self.tables[name], self.later.net.rows[name], self.later.gone[name]
        owner = self._numbers(name)[places] if shape.owner is None else table.columns[shape.owner].numbers[places]
        places = places[~are_among(owner, gone)]
        numbers = np.concatenate((self._numbers(name)[places].astype(np.int64), net.numbers[later]))
        order = np.argsort(numbers, kind="stable") if shape.owner is None else np.arange(len(numbers))
        columns = {
            label: np.concatenate((packed.numbers[places].astype(np.int64), net.columns[label][later]))[order]
            for label, packed in table.columns.items()
        }
        numbers = numbers[order] if shape.owner is None else order
        values = self._values(table, net, places, later, order) if shape.valued else None
        size = net.size if shape.owner is None else len(numbers)
        return Rows(shape, numbers, columns, size, table.parts, values=values)

    def _values(self, table: _Table, net: Rows, places: Numbers, later: Numbers, order: Numbers) -> list[Any]:
        changed = net.values or []
        values = [*_raw(table, places), *(changed[row] for row in later.tolist())]
        return [values[row] for row in order.tolist()]

    def _events(self, rows: Iterable[Rows]) -> tuple[Numbers, EventTable]:
        wanted, net = self._references(rows, EVENTS), self.later.net
        here = _places(self.written.refs.numbers, wanted)
        there = _places(net.refs, wanted)
        refs = np.concatenate((self.written.refs.numbers[here].astype(np.int64), net.refs[there]))
        events = [some_events(self.whole.events, here)] if len(here) else []
        events += [net.events.take(there)] if len(there) else []
        if not events:
            return NOTHING, events_from(b"")
        refs, first = np.unique(refs, return_index=True)
        found = joined(events)
        return refs, found if np.array_equal(first, np.arange(len(found))) else found.take(first)


def _belongs_by(shape: Shape, tables: set[str]) -> str | None:
    """The column by which its rows belong to rows of these tables."""
    if shape.owner is not None:
        return shape.owner if _owners(shape) in tables else None
    return next((own.name for own in shape.fields if own.into in tables and not own.optional), None)


def _places(numbers: Any, wanted: Numbers) -> Numbers:
    """Where those of some numbers are that are there; both ascend."""
    wanted = _possible(numbers, wanted)
    found = np.searchsorted(numbers, wanted)
    there: Numbers = found[numbers[found] == wanted]
    return there


def _all_places(numbers: Any, wanted: Numbers) -> Numbers:
    """The same, where some may be there several times."""
    wanted = _possible(numbers, wanted)
    first, end = np.searchsorted(numbers, wanted), np.searchsorted(numbers, wanted, side="right")
    return taken(first, end - first)


def _possible(numbers: Any, wanted: Numbers) -> Any:
    """Of what is wanted, what is not outside of numbers that ascend, in the same width: these are not to be made wider."""
    if not len(numbers):
        return numbers
    return wanted[(wanted >= numbers[0]) & (wanted <= numbers[-1])].astype(numbers.dtype)


def _raw(table: _Table, places: Numbers) -> list[msgspec.Raw]:
    """Values at these places, as they were written."""
    if not len(places):
        return []
    data = table.values if table.values is not None else damaged(f"its table '{table.name}' has no values")
    if table.starts is None:
        values = msgspec.msgpack.decode(data, type=list[msgspec.Raw])
        return [values[place] for place in places.tolist()]
    starts = table.starts.numbers
    following = starts[(places + 1) % len(starts)].astype(np.int64)  # narrow numbers need not hold where the last one ends
    begin, end = starts[places], np.where(places + 1 < len(starts), following, data.nbytes)
    return [msgspec.Raw(bytes(data[a:b])) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
