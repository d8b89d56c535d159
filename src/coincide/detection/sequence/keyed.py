"""Rows with their keys, which are numbered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import combined_codes
from coincide.detection.keys import Key, key_part
from coincide.detection.sequence.loop import LOW, ROW, group
from coincide.expr.tree import Reference
from coincide.lang.eql.definition import TIMESTAMP
from coincide.lang.eql.definition import Key as KeyDefinition
from coincide.model.column import Column
from coincide.model.event import Event, Value
from coincide.model.table import EventTable
from coincide.syntax import walk

Numbers = npt.NDArray[np.int64]
KeyReader = Callable[[Event], list[Key]]
Numbered = tuple[Numbers, Numbers, list[Key]]
"""Rows, the number of the key of each, the keys by number."""


@dataclass(frozen=True, eq=False)
class Keyed:
    """Rows that have a key, as often as they have one, in the order of the keys: an entry is the number of a key and a row. Of
    each the row's hi and, where a row has several keys, its rank in the row. `keys` stand by number, and some share them."""

    entries: Numbers
    hi: Numbers
    turns: Numbers
    keys: list[Key]

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def present(self) -> Numbers:
        """The numbers that there are."""
        numbers = self.entries >> LOW
        return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]

    @property
    def all_turns(self) -> Numbers:
        return self.turns if len(self.turns) else np.zeros(len(self), np.int64)

    def by(self, slots: Numbers) -> Keyed:
        """With other numbers for keys; those below 0 are left out."""
        own = slots[self.entries >> LOW]
        there = np.flatnonzero(own >= 0)
        entries = (own[there] << LOW) | (self.entries[there] & ROW)
        order = np.argsort(entries)
        return self._part(there[order], entries[order])

    def of_rows(self, rows: Numbers, size: int) -> Keyed:
        """Only these, of so many rows."""
        wanted = np.zeros(size, np.bool_)
        wanted[rows] = True
        there = np.flatnonzero(wanted[self.entries & ROW])
        return self._part(there, self.entries[there])

    def _part(self, some: Numbers, entries: Numbers) -> Keyed:
        return Keyed(entries, self.hi[some], self.turns[some] if len(self.turns) else self.turns, self.keys)

    def numbers_of_rows(self, size: int) -> Numbers | None:
        """The number of each row's key, -1: it has none; None: some have several."""
        if len(self.turns):
            return None
        numbers = np.full(size, -1, np.int64)
        numbers[self.entries & ROW] = self.entries >> LOW
        return numbers


NOTHING: Numbers = np.zeros(0, np.int64)
NO_KEYS = Keyed(NOTHING, NOTHING, NOTHING, [])


def keyed_of(rows: Numbers, numbers: Numbers, keys: list[Key], hi: Numbers) -> Keyed:
    """`hi` is that of all rows of the table."""
    several = len(rows) > 1 and bool((rows[1:] == rows[:-1]).any())
    starts = np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=len(keys)))[:-1]))
    order, entries, own_hi = (np.empty(len(rows), np.int64) for _ in range(3))
    group(plain_numbers(numbers), plain_numbers(rows), plain_numbers(hi), starts, order, entries, own_hi)
    return Keyed(entries, own_hi, order if several else NOTHING, keys)


def plain_numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Some can be written to and some cannot; compiled code is of one sort."""
    view = np.ascontiguousarray(array, np.int64).view()
    view.flags.writeable = False
    return view


def event_of(names: Sequence[str], values: Sequence[Value], hi: int) -> Event:
    """One with nothing but these fields."""
    own = dict(zip(names, values, strict=False))
    envelope = {name: None if (value := own.pop(name, None)) is None else str(value) for name in ("type", "id", "source")}
    return Event(envelope["type"] or "", hi, hi, envelope["id"], own, (), envelope["source"])


def keyed_rows(table: EventTable, rows: Numbers, keys: tuple[KeyDefinition, ...], read: KeyReader) -> Keyed:
    """`read` tells the keys of one event."""
    if not keys or not len(rows):
        return keyed_of(rows, np.zeros(len(rows), np.int64), [()], table.hi)
    names = sorted({node.name for key in keys for node in walk(key.value) if isinstance(node, Reference)})
    whole = len(rows) == len(table)
    columns = {name: (column if whole else column.take(rows)) for name, column in zip(names, _columns(table, names), strict=True)}
    numbers, samples = combined_codes([*columns.values()] or [Column(len(rows))])
    fields = [(key.value.name, key.optional) for key in keys if isinstance(key.value, Reference)]
    if len(fields) == len(keys) and all(column.compounds is None for column in columns.values()):
        taken = {name: column.take(samples) for name, column in columns.items()}
        found = _of_fields(rows, numbers, [(taken[name], optional) for name, optional in fields])
    else:
        found = _of_events(rows, numbers, columns, samples, table.hi, read)
    return keyed_of(*_each_once(*found), table.hi)


def _columns(table: EventTable, names: list[str]) -> list[Column]:
    return [table.column("time" if name == TIMESTAMP else name) for name in names]


def _each_once(rows: Numbers, numbers: Numbers, keys: list[Key]) -> Numbered:
    """Values that differ may make equal keys."""
    known = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    if len(known) == len(keys):
        return rows, numbers, keys
    return rows, np.array([known[key] for key in keys], np.int64)[numbers], list(known)


def _of_fields(rows: Numbers, numbers: Numbers, parts: list[tuple[Column, bool]]) -> Numbered:
    """Fields that have one value each."""
    keys = list(zip(*(_parts(column) for column, _ in parts), strict=True))
    lacking = np.zeros(len(keys), np.bool_)
    for column, optional in parts:
        if not optional:
            lacking |= column.is_null
    if not lacking.any():
        return rows, numbers, keys
    there = ~lacking[numbers]
    number = np.cumsum(~lacking) - 1
    known = [key for key, lacks in zip(keys, lacking.tolist(), strict=True) if not lacks]
    return rows[there], number[numbers[there]], known


def _parts(column: Column) -> list[object]:
    return [key_part(value + 0.0 if type(value) is float else value) for value in map(column.value, range(len(column)))]


def _of_events(
    rows: Numbers, numbers: Numbers, columns: dict[str, Column], samples: Numbers, hi: Numbers, read: KeyReader
) -> Numbered:
    """Expressions, and fields with several values: once for each combination that there is."""
    names, values = [*columns], [*columns.values()]
    keys = [read(event_of(names, [column.value(row) for column in values], int(hi[rows[row]]))) for row in samples.tolist()]
    sizes = np.array([len(some) for some in keys], np.int64)
    starts = np.cumsum(sizes) - sizes
    own = sizes[numbers]
    ends = np.cumsum(own)
    within = np.arange(int(ends[-1])) - np.repeat(ends - own, own)
    known = [key for some in keys for key in some]
    return np.repeat(rows, own), np.repeat(starts[numbers], own) + within, known
