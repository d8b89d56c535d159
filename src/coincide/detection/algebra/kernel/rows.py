"""Events of a step as columns: those that waited, then those of the batch; which reference holds each, and its key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.algebra.shape.shapes import Leaf, Operators, Window, tests_of
from coincide.detection.algebra.space.columns import located
from coincide.detection.columns.keys import Codes, key_codes
from coincide.detection.columns.known import KnownKeys
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.store import gathered
from coincide.detection.columns.tables import distinct, longer, numbered
from coincide.detection.keys import Key, key_value
from coincide.expr.tree import Expr
from coincide.expr.vector import Microseconds, Spaces, holds
from coincide.lang.ecco.definition import Place as Where
from coincide.model.column import Column, column_of, concatenated
from coincide.model.event import Place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NONE = np.zeros(0, np.int64)


def fields_of(tables: Sequence[EventTable]) -> frozenset[str]:
    return frozenset(name for table in tables for name in table.fields)


class Rows:
    """Tables one after another, as far as anybody reads them. What is at or after `limit` is not evaluated yet."""

    def __init__(self, tables: Sequence[EventTable], limit: int) -> None:
        self.tables = [table for table in tables if len(table)]
        self._ends = [_joined([getattr(table, end) for table in self.tables]) for end in ("lo", "hi")]
        self.limit = limit
        self.length = int(np.searchsorted(self._ends[1], limit))
        self.lo: Microseconds
        self.hi: Microseconds
        self.lo, self.hi = (ends[: self.length] for ends in self._ends)
        self._columns: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        if name not in self._columns:
            columns = [table.column(name) for table in self.tables]
            whole = columns[0] if len(columns) == 1 else concatenated(columns)
            self._columns[name] = whole.first(self.length)
        return self._columns[name]

    def taken(self, name: str, rows: Numbers) -> Column:
        """Of some rows, which ascend."""
        return self.column(name) if len(rows) == self.length else self.column(name).take(rows)

    @cached_property
    def _by_type(self) -> dict[str, Numbers]:
        return self.column("type").by_text()

    def of_type(self, kind: str) -> Numbers:
        return self._by_type.get(kind, NONE)

    def held_by(self, leaf: Leaf) -> Numbers:
        """Rows that a reference holds."""
        found = self.of_type(leaf.type)
        return found[self.passing(tests_of(leaf), leaf.reference.places, found)] if len(found) else found

    def passing(self, tests: Iterable[Expr], places: Iterable[Where], some: Numbers) -> Mask:
        """Of which of some rows tests hold, and in which places they are."""
        passing, left = np.ones(len(some), np.bool_), some
        for tree in tests:
            passing[passing] = holds(tree, Some(self, left))
            left = some[passing]
        for place in places if len(left) else ():
            passing[passing] = located(place, Some(self, left), self.pick(left).events)
            left = some[passing]
        return passing

    def spaces(self, rows: Numbers) -> Spaces | None:
        return TableRows(gathered(self.tables, rows, frozenset({"space"}), placed=False)).space

    def of_types(self, types: frozenset[str]) -> Numbers:
        """Those that are not evaluated yet among them."""
        starts = np.cumsum([0, *map(len, self.tables)]).tolist()
        found = [table.rows_of_types(types) + start for table, start in zip(self.tables, starts, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def pick(self, rows: Numbers) -> EventTable:
        return gathered(self.tables, rows, None)

    def ends(self, rows: Numbers) -> Numbers:
        return self._ends[1][rows]

    def has_ranges(self, rows: Numbers) -> bool:
        return bool((self._taken(0, rows) != self._taken(1, rows)).any())

    def has_copies(self, rows: Numbers) -> bool:
        """Are two of these rows one event, by time and id? They then stand next to each other."""
        lo, hi = self._taken(0, rows), self._taken(1, rows)
        ties = np.flatnonzero((hi[1:] == hi[:-1]) & (lo[1:] == lo[:-1]))
        if not len(ties):
            return False
        near = np.unique(np.concatenate((rows[ties], rows[ties + 1])))
        ids = self.pick(near).origin().ids
        a, b = (ids.take(pa.array(np.searchsorted(near, some))) for some in (rows[ties], rows[ties + 1]))
        return bool(pc.any(pc.equal(a, b)).as_py())

    def _taken(self, end: int, rows: Numbers) -> Numbers:
        """Of rows that ascend the one end or the other."""
        ends = self._ends[end]
        return ends if len(rows) == len(ends) else ends[rows]

    def roots(self, rows: Numbers) -> Numbers:
        """How the places of rows, which ascend, begin: hi of the root, its number in the order of consumption, the generation."""
        starts = np.cumsum([0, *map(len, self.tables)])
        bounds = np.searchsorted(rows, starts)
        parts = zip(self.tables, starts, bounds[:-1], bounds[1:], strict=False)
        found = [table.place_rows(rows[a:b] - start)[:, :3] for table, start, a, b in parts]
        return np.concatenate([np.zeros((0, 3), np.int64), *found])

    def place(self, row: int) -> Place:
        return self.pick(np.array([row])).place_tuples()[0]


@dataclass(frozen=True, eq=False)
class Some:
    """Some of these rows, as expressions see them."""

    rows: Rows
    index: Numbers

    @cached_property
    def space(self) -> Spaces | None:
        return self.rows.spaces(self.index)

    @property
    def length(self) -> int:
        return len(self.index)

    @property
    def lo(self) -> Microseconds:
        return self.rows.lo[self.index]

    @property
    def hi(self) -> Microseconds:
        return self.rows.hi[self.index]

    def column(self, name: str) -> Column:
        return self.rows.column(name).take(self.index)


def united(parts: Sequence[Numbers], length: int) -> Numbers:
    """Of so many rows those that are in one part or another, in order; few are sorted, many are marked."""
    if len(parts) == 1:
        return parts[0]
    if sum(map(len, parts)) < length // 16:
        return np.unique(np.concatenate([NONE, *parts]))
    marked = np.zeros(length, np.bool_)
    for part in parts:
        marked[part] = True
    return np.flatnonzero(marked)


def held_by_parts(parts: Sequence[Numbers], others: Sequence[Numbers], length: int) -> tuple[Numbers, Numbers]:
    """Of so many rows those that are in one part or another, or in `others`, in order; a bit for each part that they are in."""
    some = united([*parts, *others], length)
    if len(some) < length // 16:
        held = np.zeros(len(some), np.int64)
        for number, part in enumerate(parts):
            held[np.searchsorted(some, part)] |= 1 << number
        return some, held
    bits = np.zeros(length, np.int64)
    for number, part in enumerate(parts):
        bits[part] |= 1 << number
    return some, bits[some]


def _joined(arrays: Sequence[Numbers]) -> Numbers:
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros(0, np.int64), *arrays])


@dataclass
class Slots:
    """Keys by number. A definition without a key has one."""

    parts: int
    known: KnownKeys = field(default_factory=KnownKeys)
    _by_whole: Numbers = field(default_factory=NONE.copy)  # of each the slot and 1; 0: not known

    def __len__(self) -> int:
        return len(self.known)

    def of(self, keys: Sequence[Key]) -> Numbers:
        """No two are equal."""
        return self.known.with_keys(keys, lambda count: np.arange(len(self), len(self) + count))[0]

    def of_wholes(self, numbers: npt.NDArray[np.float64]) -> Numbers | None:
        """Of keys of one part, by a table; None: not all of them are whole numbers of a modest range."""
        with np.errstate(invalid="ignore"):
            wholes = numbers.astype(np.int64)
        least, most = wholes.min(initial=0), int(wholes.max(initial=0))
        if least < 0 or most > 4 * (len(wholes) + len(self)) + 1024 or not np.array_equal(wholes, numbers):
            return None
        self._by_whole = longer(self._by_whole, most + 1)
        found = self._by_whole[wholes]
        if not found.all():
            new = distinct(wholes[found == 0])
            self._by_whole[new] = self.of(list(zip(new.astype(np.float64).tolist(), strict=True))) + 1
            found = self._by_whole[wholes]
        return found - 1

    def keep(self, slots: Numbers) -> None:
        """Only these keys, numbered anew in this order."""
        self.known.keep(slots)
        self._by_whole = NONE.copy()

    def columns(self, slots: Numbers) -> list[Column]:
        """The values of the key, part by part."""
        some, index = numbered(slots, len(self))
        keys = self.known.taken(some)
        return [_values(list(map(itemgetter(part), keys))).take(index) for part in range(self.parts)]


def _values(parts: Sequence[object]) -> Column:
    """Of keys, whose flags are wrapped."""
    return column_of([*map(key_value, parts)] if tuple in {*map(type, parts)} else parts)  # type: ignore[arg-type]


def slots_of(shape: Operators | Window, keys: tuple[str, ...], rows: Rows, some: Numbers, slots: Slots) -> Numbers:
    """The slot of each of some rows; -1: part of its key is null."""
    columns = [rows.taken(key, some) for key in keys]
    if isinstance(shape, Operators):
        columns += [_tied_column(attributes, rows, some) for attributes in shape.tied]
    if not columns:
        return np.full(len(some), slots.of([()])[0])
    if len(columns) == 1 and (numbers := _plain_numbers(columns[0])) is not None:
        if (known := slots.of_wholes(numbers)) is not None:
            return known
        codes, found = _numbered(numbers)
    elif len(columns) == 1 and len(columns[0].texts) > len(some) and _is_plain_text(columns[0]):
        return _text_slots(columns[0], slots)
    else:
        codes, found = key_codes([column.singles.compact() for column in columns])
    return np.concatenate((slots.of(found), [-1]))[codes]


def _plain_numbers(column: Column) -> npt.NDArray[np.float64] | None:
    """Those of a column that has nothing else."""
    return column.numbers if column.codes is None and column.flags is None and column.rests is None else None


def _is_plain_text(column: Column) -> bool:
    return column.codes is not None and column.numbers is None and column.flags is None


def _text_slots(column: Column, slots: Slots) -> Numbers:
    """Of few rows with texts out of many."""
    assert column.codes is not None
    used = distinct(column.codes.astype(np.int64))
    found = [-1] * int(len(used) > 0 and used[0] < 0)
    found += slots.of([(column.texts[code],) for code in used[len(found) :].tolist()]).tolist()
    return np.array(found, np.int64)[np.searchsorted(used, column.codes)]


def _numbered(numbers: npt.NDArray[np.float64]) -> tuple[Codes, Sequence[Key]]:
    """As `key_codes`, quickly."""
    encoded = pa.array(numbers + 0.0, from_pandas=True).dictionary_encode()  # + 0.0: -0.0 is 0.0
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, list(zip(encoded.dictionary.to_pylist(), strict=True))


def _tied_column(attributes: dict[str, str], rows: Rows, some: Numbers) -> Column:
    """Of each row the attribute that its type is compared by."""
    names = sorted(set(attributes.values()))
    if len(names) == 1:
        return rows.taken(names[0], some)
    pieces, order = [], []
    for name in names:
        kinds = [kind for kind, attribute in attributes.items() if attribute == name]
        where = np.flatnonzero(np.isin(some, united([rows.of_type(kind) for kind in kinds], rows.length)))
        pieces.append(rows.column(name).take(some[where]))
        order.append(where)
    back = np.empty(len(some), np.int64)
    back[np.concatenate(order)] = np.arange(len(some))
    return concatenated(pieces).take(back)
