"""Tables as bytes, and back: whole, or what has changed since they were written last.

What is written of a table are its rows by their numbers, column by column, each in the narrowest numbers that hold it, and which
rows have been freed. Reading puts a whole and the changes after it together, over whole columns, and checks that every reference
is to a row that is there, before anything relies on it. Links between rows (lists, queues) are not written: who reads makes them
again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np

from coincide.detection.columns.hashes import is_open, key_hashes
from coincide.detection.columns.store import event_bytes, events_from, joined
from coincide.detection.columns.tables import FREE, IN_USE, KEYED, KEYED_DENSELY, Field, Numbers, Shape, ShapeText, Table
from coincide.detection.keys import Key
from coincide.detection.parts import Unwritten
from coincide.detection.snapshots import damaged
from coincide.model.bounds import Count, Finite, Whole
from coincide.model.table import EventTable

VERSION = 1
EVENTS = "events"
"""The table that references to events are into; a row's number is the event's."""
MOST = 1 << 40
"""More rows no table has."""
WIDEST = 1 << 16
"""More parts no row has."""
SPARE = 1 << 16
"""So many rows of a table may be unused, whatever the others are."""
MANY = 1_000
"""From so many values on it is worth to find single ones."""
WIDTHS = ("i1", "i2", "i4", "i8")
RANGES = {kind: (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for kind in WIDTHS}


StoredKey = tuple[Whole | Finite | str | tuple[bool, ...] | None, ...]


class Packed(msgspec.Struct, array_like=True):
    """Whole numbers in the narrowest kind that holds them all."""

    kind: str
    data: bytes


class KeyIndex(msgspec.Struct, array_like=True):
    """Where keys are among the rows of their table: by their hashes (columns/hashes.py), in order; `always`: of what is no key
    of so many parts."""

    parts: Count
    hashes: Packed
    rows: Packed
    always: Packed


class WrittenTable(msgspec.Struct, array_like=True):
    name: str
    size: Count  # rows that have ever been used
    parts: Count
    numbers: Packed
    freed: Packed
    columns: dict[str, Packed]
    values: bytes | None  # null where there is no value
    starts: Packed | None = None  # where each begins, if there are many
    index: KeyIndex | None = None  # of keys


class Head(msgspec.Struct, array_like=True):
    """What tables begin with."""

    version: int
    kind: str


class Written(msgspec.Struct, array_like=True):
    """`since`: the epoch from which on changes are told; 0: all there is. `shapes`: those of the tables, where some of it may be
    read without the rest."""

    version: int
    kind: str
    since: Count
    epoch: Count
    tables: list[WrittenTable]
    refs: Packed
    events: bytes
    notes: dict[str, Packed]
    shapes: list[ShapeText] = []


@dataclass
class Rows:
    """Rows of a table, apart from where they are kept: numbers and columns, as long as one another."""

    shape: Shape
    numbers: Numbers
    columns: dict[str, Numbers]
    size: int = 0
    parts: int = 0
    freed: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    values: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def select(self, mask: Any) -> Rows:
        """Only some of the rows."""
        columns = {name: column[mask] for name, column in self.columns.items()}
        values = None if self.values is None else _picked(self.values, np.flatnonzero(mask))
        return Rows(self.shape, self.numbers[mask], columns, self.size, self.parts, self.freed, values)


@dataclass
class Relations:
    """A state, or the changes to one: rows of tables, the events that they refer to, and numbers about all of it."""

    kind: str
    rows: dict[str, Rows]
    refs: Numbers  # the events' numbers, which ascend
    events: EventTable
    notes: dict[str, Numbers] = field(default_factory=dict)
    since: int = 0
    epoch: int = 0


def _picked(values: Sequence[Any], rows: Numbers) -> list[Any]:
    picked: list[Any] = np.fromiter(values, object, len(values))[rows].tolist()
    return picked


def rows_of(table: Table, since_last: bool) -> Rows:
    """Rows of a table as they are written: all, or those that were changed in its present epoch."""
    if since_last:
        changed = table.changed()
        in_use = table.rows[changed, FREE] == IN_USE
        numbers, freed = changed[in_use], changed[~in_use]
    else:
        numbers, freed = table.live(), np.zeros(0, np.int64)
    return rows_at(table, numbers, freed)


def rows_at(table: Table, numbers: Numbers, freed: Numbers | None = None) -> Rows:
    """Rows with these numbers."""
    columns = {name: table.rows[numbers, column] for name, _, column in table.shape.written(table.parts)}
    values = table.values_at(numbers) if table.shape.valued else None
    return Rows(table.shape, numbers, columns, len(table), table.parts, numbers[:0] if freed is None else freed, values)


def put_rows(table: Table, rows: Rows) -> None:
    """Rows that were read, into a table; links and values are left to who knows what they are."""
    if rows.parts != table.parts:
        damaged(f"its table '{table.shape.name}' has other columns")
    table.place(rows.size, rows.numbers)
    for name, _, column in table.shape.written(table.parts):
        table.rows[rows.numbers, column] = rows.columns[name]


def owned_rows(shape: Shape, columns: dict[str, Numbers]) -> Rows:
    """Rows that belong to others, and have no numbers of their own."""
    size = len(next(iter(columns.values())))
    return Rows(shape, np.arange(size), columns, size)


def keys_of(rows: Rows, size: int) -> list[Key]:
    """Keys of so many parts that are the values of rows. Raises ValueError."""
    keys: list[Key] = msgspec.convert(rows.values or [], list[StoredKey])
    if not {*map(len, keys)} <= {size}:
        damaged(f"a key has other than {size} values")
    has_tuples = tuple in {*map(type, chain.from_iterable(keys))}
    if has_tuples and any(isinstance(value, tuple) and len(value) != 1 for key in keys for value in key):
        damaged("a part of a key is not a single value")
    if len(set(keys)) < len(keys):
        damaged("a key is there twice")
    return keys


# Writing.


def encode(relations: Relations) -> bytes:
    tables = [_written(rows) for rows in relations.rows.values()]
    notes = {name: pack(numbers) for name, numbers in relations.notes.items()}
    events = event_bytes(relations.events) if len(relations.refs) else b""
    refs = pack(relations.refs)
    shapes = [rows.shape.described for rows in relations.rows.values()] if any(table.index for table in tables) else []
    written = Written(VERSION, relations.kind, relations.since, relations.epoch, tables, refs, events, notes, shapes)
    return msgspec.msgpack.encode(written)


def encode_whole(relations: Relations) -> bytes:
    """All there is, at a time when nobody goes on from it: what is told next as changes can be added to it, too, and may tell
    again what is here."""
    relations.epoch -= 1
    return encode(relations)


def _written(rows: Rows) -> WrittenTable:
    columns = {name: pack(column) for name, column in rows.columns.items()}
    numbers = rows.numbers if rows.shape.owner is None else np.zeros(0, np.int64)
    table = WrittenTable(rows.shape.name, rows.size, rows.parts, pack(numbers), pack(rows.freed), columns, None)
    if rows.values is not None and len(rows.values) < MANY:
        table.values = msgspec.msgpack.encode(rows.values)
    elif rows.values is not None:
        table.values, table.starts = _found_again(rows.values)
        table.index = _indexed(rows.values) if rows.shape.use in (KEYED, KEYED_DENSELY) else None
    return table


def _found_again(values: Sequence[Any]) -> tuple[bytes, Packed]:
    """A list of values as bytes, and where each begins."""
    written = [*map(msgspec.msgpack.Encoder().encode, values)]
    head = b"\xdd" + len(values).to_bytes(4, "big")
    sizes = np.fromiter(map(len, written), np.int64, len(written))
    return b"".join((head, *written)), pack(len(head) + np.cumsum(sizes) - sizes)


def _indexed(keys: Sequence[Any]) -> KeyIndex:
    parts = len(keys[0])
    hashes = key_hashes(keys)
    always = np.array([row for row, key in enumerate(keys) if is_open(key, parts)], np.int64)
    order = np.argsort(hashes, kind="stable")
    return KeyIndex(parts, pack(hashes[order]), pack(order), pack(always))


def pack(numbers: Numbers) -> Packed:
    if not len(numbers):  # as most columns of a small state are
        return Packed(WIDTHS[0], b"")
    low, high = int(numbers.min()), int(numbers.max())
    kind = next(kind for kind, (least, most) in RANGES.items() if least <= low and high <= most)
    return Packed(kind, numbers.astype(f"<{kind}").tobytes())


def unpack(packed: Packed) -> Numbers:
    if packed.kind not in WIDTHS or len(packed.data) % int(packed.kind[1]):
        damaged("a column is not one of whole numbers")
    return np.frombuffer(packed.data, f"<{packed.kind}").astype(np.int64)


# Reading.


def decode(shapes: Sequence[Shape], kind: str, base: bytes, *changes: bytes) -> Relations:
    """The state that was written whole and changed since. Raises ValueError: `reading_state` makes it an InputError."""
    first = _unwritten(shapes, kind, base.tables) if isinstance(base, Unwritten) else read(shapes, kind, base)
    found = changed([first, *(read(shapes, kind, data) for data in changes)])
    check_references(found)
    return found


def kind_of(base: bytes) -> str:
    """The kind of tables, for whoever reads several."""
    kind: str = base.tables.kind if isinstance(base, Unwritten) else msgspec.msgpack.decode(base, type=Head).kind
    return kind


def _unwritten(shapes: Sequence[Shape], kind: str, relations: Relations) -> Relations:
    """As if they had been written and read."""
    if relations.kind != kind or [*relations.rows] != [shape.name for shape in shapes]:
        damaged("its tables are others")
    for shape in shapes:
        rows = relations.rows[shape.name] = replace(relations.rows[shape.name], shape=shape)
        if shape.valued:
            rows.values = _values(shape, msgspec.msgpack.encode(rows.values))
        _check_rows(rows)
    return relations


def read(shapes: Sequence[Shape], kind: str, data: bytes) -> Relations:
    written = msgspec.msgpack.decode(data, type=Written)
    if (written.version, written.kind) != (VERSION, kind):
        damaged(f"it is {written.kind!r} of version {written.version}; this release reads {kind!r} of version {VERSION}")
    by_name = {table.name: table for table in written.tables}
    if list(by_name) != [shape.name for shape in shapes]:
        damaged("its tables are others")
    rows = {shape.name: _rows(shape, by_name[shape.name]) for shape in shapes}
    refs = unpack(written.refs)
    if len(refs) and (refs[0] < 0 or (np.diff(refs) <= 0).any()):
        damaged("its events do not stand in order")
    events = events_from(written.events) if len(refs) else None
    if len(refs) != (0 if events is None else len(events)):
        damaged("its events are not as many as it says")
    notes = {name: unpack(numbers) for name, numbers in written.notes.items()}
    return Relations(kind, rows, refs, events or events_from(b""), notes, written.since, written.epoch)


def _rows(shape: Shape, table: WrittenTable) -> Rows:
    columns = {name: unpack(packed) for name, packed in table.columns.items()}
    size = len(next(iter(columns.values()), ()))
    numbers = unpack(table.numbers) if shape.owner is None else np.arange(size)
    values = _values(shape, table.values or b"") if shape.valued else None
    rows = Rows(shape, numbers, columns, table.size, table.parts, unpack(table.freed), values)
    _check_rows(rows)
    return rows


def _values(shape: Shape, data: bytes) -> list[Any]:
    values: list[Any] = msgspec.msgpack.decode(data, type=list[msgspec.Raw] if shape.raw else list[Any])
    return values


def _check_rows(rows: Rows) -> None:
    shape, numbers, freed = rows.shape, rows.numbers, rows.freed
    fields = [name for name, *_ in shape.written(min(rows.parts, WIDEST))]
    if list(rows.columns) != fields or rows.size > MOST or rows.parts > WIDEST:
        damaged(f"its table '{shape.name}' has other columns")
    if any(len(column) != len(numbers) for column in rows.columns.values()):
        damaged(f"columns of its table '{shape.name}' are not equally long")
    if shape.owner is None:
        for some in (numbers, freed):
            if len(some) and (some[0] < 0 or some[-1] >= rows.size or (some[1:] <= some[:-1]).any()):
                damaged(f"rows of its table '{shape.name}' are not numbered in order")
        if len(freed) and np.isin(freed, numbers).any():
            damaged(f"a row of its table '{shape.name}' is free and in use")
    if rows.values is not None and len(rows.values) != len(numbers):
        damaged(f"values of its table '{shape.name}' are not as many as its rows")


def changed(versions: Sequence[Relations]) -> Relations:
    """The state after all changes, taken together: what is large is gone through once, however many they are."""
    if versions[0].since:
        damaged("it tells changes to a state that is not there")
    versions = versions[max(number for number, some in enumerate(versions) if not some.since) :]
    if len(versions) == 1:
        return versions[0]
    for before, after in pairwise(versions):
        if after.since != max(before.epoch, 1):  # what knows of no epochs is gone on from with the first
            damaged("changes are missing")
    rows = {name: _rows_after([some.rows for some in versions], name) for name in versions[0].rows}
    refs = np.concatenate([some.refs for some in versions])
    events = joined([some.events for some in versions if len(some.events)] or [versions[0].events])
    if (np.diff(refs) <= 0).any():  # what had been left out is told later
        refs, first = np.unique(refs, return_index=True)
        events = events.take(first)
    return Relations(versions[0].kind, rows, refs, events, versions[-1].notes, 0, versions[-1].epoch)


def _rows_after(versions: Sequence[dict[str, Rows]], name: str) -> Rows:
    """Rows of a table: of each, what was told last."""
    mine = [rows[name] for rows in versions]
    shape, parts = mine[0].shape, mine[0].parts
    if any(some.parts != parts for some in mine):
        damaged(f"its table '{name}' has other columns")
    if all(not len(some) and not len(some.freed) for some in mine[1:]) and shape.owner is None:
        return replace(mine[0], size=max(some.size for some in mine))
    turn = np.repeat(np.arange(len(mine)), [len(some) for some in mine])
    if shape.owner is None:
        owner, gone = np.concatenate([some.numbers for some in mine]), [mentioned(some) for some in mine]
    else:
        field = next(field for field in shape.fields if field.name == shape.owner)
        assert field.into is not None
        owners = [rows[field.into] for rows in versions]
        owner = np.concatenate([some.columns[field.name] for some in mine])
        gone = [some.freed if shape.grows else mentioned(some) for some in owners]
    latest = np.flatnonzero(turn >= _last_turns(owner, gone))
    if shape.owner is None:
        latest = latest[np.argsort(owner[latest], kind="stable")]
    columns = {label: np.concatenate([some.columns[label] for some in mine])[latest] for label in mine[0].columns}
    values = _picked([value for some in mine for value in some.values or ()], latest) if shape.valued else None
    if shape.owner is None:
        return Rows(shape, owner[latest], columns, max(some.size for some in mine), parts, values=values)
    return Rows(shape, np.arange(len(latest)), columns, len(latest), parts, values=values)


def mentioned(rows: Rows) -> Numbers:
    """What is told of them replaces what was told before."""
    return np.concatenate((rows.numbers, rows.freed))


def _last_turns(numbers: Numbers, gone: Sequence[Numbers]) -> Numbers:
    """When each of these numbers was gone last, counting what was told after the first; 0: never."""
    some = np.concatenate(gone[1:])
    turns = np.repeat(np.arange(1, len(gone)), [len(each) for each in gone[1:]])
    order = np.argsort(some, kind="stable")
    some, turns = some[order], turns[order]
    last = np.flatnonzero(np.diff(some, append=-1))  # numbers are not below 0
    if not len(last):
        return np.zeros(len(numbers), np.int64)
    some, turns = some[last], turns[last]
    found = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.where(some[found] == numbers, turns[found], 0)


def check_references(relations: Relations) -> None:
    """Every reference is to a row that is there."""
    for name, rows in relations.rows.items():
        for label, own, _ in rows.shape.written(rows.parts):
            if own.into is not None:
                there = relations.refs if own.into == EVENTS else relations.rows[own.into].numbers
                _check_column(f"'{label}' of its table '{name}'", own, rows.columns[label], there)


def _check_column(what: str, field: Field, column: Numbers, there: Numbers) -> None:
    wanted = column[column != -1] if field.optional else column
    if not len(wanted):
        return
    if not len(there):
        damaged(f"{what} refers to rows, and there are none")
    found = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
    if (there[found] != wanted).any():
        damaged(f"{what} refers to a row that is not there")


def is_dense(relations: Relations, events: int) -> bool:
    """Are there not many more numbers, of rows and of events, than are in use?"""
    sizes = [(rows.size, len(rows)) for rows in relations.rows.values() if rows.shape.owner is None]
    return all(size <= 4 * used + SPARE for size, used in [*sizes, (events, len(relations.refs))])


def renumbered(relations: Relations) -> Relations:
    """The same with rows and events numbered anew, in their old order."""
    rows = {}
    for name, some in relations.rows.items():
        columns = dict(some.columns)
        for label, own, _ in some.shape.written(some.parts):
            if own.into is not None:
                there = relations.refs if own.into == EVENTS else relations.rows[own.into].numbers
                columns[label] = np.where(columns[label] < 0, -1, np.searchsorted(there, columns[label]))
            elif own.among == EVENTS:
                columns[label] = np.searchsorted(relations.refs, columns[label])
        rows[name] = Rows(some.shape, np.arange(len(some)), columns, len(some), some.parts, values=some.values)
    events = np.arange(len(relations.refs))
    return Relations(relations.kind, rows, events, relations.events, relations.notes, 0, relations.epoch)


def compact(relations: Relations) -> tuple[Relations, int, bool]:
    """As they can be put into tables: numbered anew if far more numbers are unused than used. Also how many events have numbers
    then, and whether these are the old ones, so that changes can be told in addition."""
    events = relations.notes.get("events", np.zeros(0, np.int64))
    if len(events) != 1 or not 0 <= events[0] <= MOST or (len(relations.refs) and events[0] <= relations.refs[-1]):
        damaged("it does not tell how many events there were")
    size = int(events[0])
    if is_dense(relations, size) and len(relations.refs) >= min(size, 1):
        return relations, size, True
    return renumbered(relations), len(relations.refs), False
