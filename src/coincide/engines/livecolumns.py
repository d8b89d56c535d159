"""Columns while they come: which rows are late, and those that wait, in total order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.tableorder import joined, key_of, sliced, sorted_table, without_late
from coincide.model.batch import EventBatch
from coincide.model.event import HEARTBEAT, Event
from coincide.model.stamp import OrderKey
from coincide.model.table import EventTable, table_of
from coincide.stages import NEVER

_DIGITS = r"^[1-9][0-9]{0,17}$"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountedColumns:
    """Events as they came, whose ids count up from `first` to `last`; none is a heartbeat. `latest` is the time of the latest."""

    table: EventTable
    first: int
    last: int

    @classmethod
    def of(cls, table: EventTable) -> CountedColumns | None:
        """None: they are not such events."""
        if not len(table) or (ids := _numbers(table.fields["id"])) is None or HEARTBEAT in table.column("type").texts:
            return None
        return cls(table, int(ids[0]), int(ids[-1])) if bool((ids[1:] > ids[:-1]).all()) else None

    @property
    def latest(self) -> int:
        return int(self.table.hi.max())

    def __len__(self) -> int:
        return len(self.table)

    def parted(self, mark: int | None, delay: int, clock: int) -> tuple[EventTable, list[Event], int]:
        """Those in time, in total order; the late ones; and by how much the latest of these is later than the clock of its
        arrival."""
        timely, late, before = without_late(self.table, mark, delay)
        behind = int((np.maximum(before, clock) - late.hi).max(initial=NEVER))
        return sorted_table(timely), late.events(), behind


class WaitingColumns:
    """Events that wait, in total order: tables one after another, so that what comes in order is not copied. Of those that were
    told to whoever keeps them, `_written_rows` wait on, at the front, and `_dropped` are gone."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        self._tables = deque([sorted_table(table_of(events))] if events else [])
        self._rows = len(events)
        self._written_rows = self._dropped = 0

    def __len__(self) -> int:
        return self._rows

    @property
    def first(self) -> int:
        """The time of the first."""
        return int(self._tables[0].hi[0])

    def add(self, table: EventTable) -> None:
        """Events in total order, none of which has come before."""
        if not len(table):
            return
        begin, mixed, before = key_of(table, 0), [table], self._rows
        while self._tables and key_of(self._tables[-1], -1) > begin:
            mixed.insert(0, self._tables.pop())
            before -= len(mixed[0])
        self._written_rows = min(self._written_rows, before)
        self._rows += len(table)
        self._tables.append(table if len(mixed) == 1 else sorted_table(joined(mixed)))

    def take(self, bound: int) -> EventTable | None:
        """Those before an instant, which wait no more."""
        found = []
        while self._tables and int(self._tables[0].hi[0]) < bound:
            table = self._tables.popleft()
            cut = int(np.searchsorted(table.hi, bound))
            found.append(table if cut == len(table) else sliced(table, 0, cut))
            if cut < len(table):
                self._tables.appendleft(sliced(table, cut, len(table)))
        self._drop(sum(map(len, found)))
        return found[0] if len(found) == 1 else joined(found) if found else None

    def _drop(self, rows: int) -> None:
        known = min(rows, self._written_rows)
        self._rows, self._written_rows, self._dropped = self._rows - rows, self._written_rows - known, self._dropped + known

    def events(self) -> list[Event]:
        return [event for table in self._tables for event in table.events()]

    def changes(self, everything: bool) -> tuple[int, int, EventTable | None]:
        """Of those that waited when this was asked last: how many are gone at the front, and how many after them wait on; and
        what waits behind those."""
        dropped, old = (0, 0) if everything else (self._dropped, self._written_rows)
        new = self._from(old)
        self._written_rows, self._dropped = self._rows, 0
        return dropped, old, new

    def _from(self, row: int) -> EventTable | None:
        found: list[EventTable] = []
        end = self._rows
        for table in reversed(self._tables):
            begin = end - len(table)
            if end <= row:
                break
            found.insert(0, table if begin >= row else sliced(table, row - begin, len(table)))
            end = begin
        return joined(found) if found else None


def batch_and_last(table: EventTable) -> tuple[EventBatch, OrderKey]:
    """Events in total order, and the key of the last."""
    return EventBatch(table=table), key_of(table, -1)


def _numbers(ids: pa.Array) -> Numbers | None:
    """Ids that are whole numbers from 1 on, spelled as such."""
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.string())
        if ids.null_count or not pc.all(pc.match_substring_regex(ids, _DIGITS)).as_py():
            return None
        ids = ids.cast(pa.int64())
    numbers: Numbers = ids.to_numpy(zero_copy_only=False)
    return numbers if not ids.null_count and numbers[0] > 0 else None
