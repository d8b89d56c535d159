"""The events of a session, as columns: all of a file in total order, or those of a live run as they come."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from threading import RLock

import numpy as np
import numpy.typing as npt

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events
from coincide.adapters.seen import Seen
from coincide.model.batch import EventBatch
from coincide.model.column import Column
from coincide.model.event import Event
from coincide.studio.lanes import Codes, Instants, Lanes, lanes_of

KEPT = 8
"""Filters whose rows are remembered."""
SAMPLE = 1_000
"""Events from which names are learnt."""
SMALL = 4_096
"""Events of batches that are joined."""

Mask = npt.NDArray[np.bool_]


@dataclass
class Store:
    """Batches one after another; a row's number is its number among all. What is told of them is made anew when more come."""

    name: str = ""
    batches: list[EventBatch] = field(default_factory=list)
    rejected: int = 0
    seen: Seen = field(default_factory=Seen)
    live: bool = False  # do more come? Then they stand in the order of their arrival, and lanes in that of their first events
    lock: RLock = field(default_factory=RLock, repr=False)
    _starts: list[int] = field(default_factory=lambda: [0])
    _lanes: Lanes | None = None
    _columns: tuple[Instants, Instants] | None = None
    _sample: list[Event] | None = None
    _masks: OrderedDict[tuple[str, str], tuple[Mask, Lanes]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, batch: EventBatch) -> None:
        """Small batches become one."""
        with self.lock:
            self.seen.add(batch)
            self._forget_columns()
            if self.batches and len(self.batches[-1]) + len(batch) <= SMALL:
                self._starts.pop()
                batch = EventBatch([*self.batches.pop().events, *batch.events])
            self.batches.append(batch)
            self._starts.append(self._starts[-1] + len(batch))

    def forget(self, most: int) -> None:
        """Let go of the oldest batches until about so many events are left."""
        with self.lock:
            while len(self.batches) > 1 and self._starts[-1] - self._starts[1] >= most:
                self.batches.pop(0)
                self._starts = [start - self._starts[1] for start in self._starts[1:]]
                self._forget_columns()

    def _forget_columns(self) -> None:
        self._lanes, self._columns, self._sample = None, None, None
        self._masks.clear()

    def ordered(self) -> Store:
        """The same events in total order."""
        with self.lock:
            store = Store(self.name, rejected=self.rejected)
            for batch in in_total_order(list(self.batches)):
                store.add(batch)
            return store

    # What a timeline shows.

    @property
    def times(self) -> tuple[Instants, Instants]:
        """Where each event begins and ends."""
        with self.lock:
            if self._columns is None:
                tables = [batch.table for batch in self.batches]
                self._columns = _joined([table.lo for table in tables]), _joined([table.hi for table in tables])
            return self._columns

    @property
    def lanes(self) -> Lanes:
        """One a type."""
        with self.lock:
            if self._lanes is None:
                kinds: dict[str, int] = {}
                parts = [_numbers(batch.table.column("type"), kinds) for batch in self.batches]
                codes = np.concatenate(parts) if parts else np.empty(0, np.int32)
                self._lanes = lanes_of(list(kinds), codes, self.times[1], self.live)
            return self._lanes

    def lanes_where(self, name: str, value: str) -> tuple[Mask, Lanes]:
        """Of the events whose attribute has a value, as it is spelt."""
        with self.lock:
            if (name, value) not in self._masks:
                found = [equal_to(batch.table.column(name), value) for batch in self.batches]
                mask = np.concatenate(found) if found else np.empty(0, np.bool_)
                self._masks[name, value] = mask, self.lanes.only(mask)
                if len(self._masks) > KEPT:
                    self._masks.popitem(last=False)
            return self._masks[name, value]

    def values(self, name: str, most: int = 50) -> list[tuple[str, int]]:
        """The most frequent values of an attribute."""
        counts: Counter[str] = Counter()
        for batch in tuple(self.batches):
            counts.update(_counted(batch.table.column(name)))
        return counts.most_common(most)

    # Events themselves.

    def events(self, rows: Iterable[int]) -> list[Event]:
        """Those with these numbers, which must ascend, placed by them."""
        found: list[Event] = []
        wanted = np.fromiter(rows, np.int64)
        with self.lock:
            for batch, (start, end) in zip(self.batches, pairwise(self._starts), strict=True):
                a, b = np.searchsorted(wanted, (start, end))
                found += _events_at(batch, wanted[a:b] - start)
        return [event.placed(row) for event, row in zip(found, wanted.tolist(), strict=True)]

    @property
    def sample(self) -> list[Event]:
        """Some of them, evenly from all."""
        with self.lock:
            if self._sample is None:
                self._sample = self.events(np.unique(np.linspace(0, max(0, len(self) - 1), SAMPLE).astype(np.int64))[: len(self)])
            return self._sample

    def pieces(self, first: int, end: int) -> Iterable[EventBatch]:
        """Batches with the rows from one number up to another."""
        number = bisect_right(self._starts, first) - 1
        while first < min(end, len(self)):
            start, stop = self._starts[number], self._starts[number + 1]
            whole = (first, min(end, stop)) == (start, stop)
            yield self.batches[number] if whole else self.batches[number].rows(first - start, min(end, stop) - start)
            first, number = stop, number + 1

    def rows_of(self, keys: Sequence[tuple[int, int, str]]) -> list[int]:
        """The numbers of events by (lo, hi, id)."""
        with self.lock:
            lo, hi = self.times
            near = np.flatnonzero(np.isin(hi, [key[1] for key in keys]) & np.isin(lo, [key[0] for key in keys]))
            wanted = set(keys)
            return [e.place[2] for e in self.events(near) if (e.lo, e.hi, e.origin[0][4]) in wanted]


def opened(names: Sequence[str], mapping: FieldMapping = DEFAULT, format: str | None = None) -> Store:
    """All events of files. Raises InputError."""
    reader = open_events(names, mapping, format=format)
    store = Store(", ".join(names))
    for batch in in_total_order(reader):
        store.add(batch)
    store.rejected = reader.report.rejected
    return store


def equal_to(column: Column, value: str) -> Mask:
    """Where a column has a value, as it is spelt: a text, a number, true or false."""
    found = np.zeros(len(column), np.bool_)
    if column.codes is not None and value in column.texts:
        found |= column.codes == column.texts.index(value)
    if column.numbers is not None and (number := _number(value)) is not None:
        found |= column.numbers == number
    if column.flags is not None and value in ("true", "false"):
        found |= column.flags == (value == "true")
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _joined(parts: Sequence[Instants]) -> Instants:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _numbers(column: Column, kinds: dict[str, int]) -> Codes:
    """A column of texts as numbers of kinds, which may become more."""
    if column.codes is None:
        return np.full(len(column), kinds.setdefault("", len(kinds)), np.int32)
    place = np.array([kinds.setdefault(text, len(kinds)) for text in column.texts] or [0], np.int32)
    return place[column.codes]


def _counted(column: Column) -> dict[str, int]:
    counts: dict[str, int] = {}
    if column.codes is not None:
        numbers = np.bincount(column.codes[column.codes >= 0], minlength=len(column.texts))
        counts |= {text: int(n) for text, n in zip(column.texts, numbers, strict=True) if n}
    if column.numbers is not None:
        found, numbers = np.unique(column.numbers[~np.isnan(column.numbers)], return_counts=True)
        counts |= {f"{value:.15g}": int(n) for value, n in zip(found.tolist(), numbers, strict=True)}
    if column.flags is not None:
        counts |= {word: n for flag, word in enumerate(("false", "true")) if (n := int((column.flags == flag).sum()))}
    return counts


def _events_at(batch: EventBatch, rows: npt.NDArray[np.int64]) -> Sequence[Event]:
    if not len(rows):
        return ()
    if batch.has_events:
        return [batch.events[row] for row in rows.tolist()]
    return batch.table.take(rows).events()
