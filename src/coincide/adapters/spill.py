"""Sorted runs in temporary files, and their merge: for inputs larger than memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from coincide.adapters.order import USUAL, weight
from coincide.adapters.scratch import remove, scratch_folder
from coincide.adapters.segments import SegmentWriter, read_segments
from coincide.adapters.tableorder import joined, key_of, sliced, sorted_table
from coincide.model.batch import EventBatch
from coincide.model.stamp import OrderKey
from coincide.model.table import EventTable

FAN_IN = 64
"""Runs that are merged at once: this many chunks are in memory then."""


class Runs:
    """Sorted runs in the order of the input."""

    def __init__(self, memory_rows: int, target: int) -> None:
        self._chunk = max(1, min(target, memory_rows // FAN_IN))
        self._target = target
        self._folder = scratch_folder()
        self._paths: list[Path] = []
        self._made = 0

    def add(self, batches: Iterable[EventBatch]) -> None:
        """A run, given in order."""
        if (path := self._written(batch.table for batch in batches)) is not None:
            self._paths.append(path)

    def merged(self) -> Iterator[EventBatch]:
        while len(self._paths) > FAN_IN:
            groups = [self._paths[i : i + FAN_IN] for i in range(0, len(self._paths), FAN_IN)]
            self._paths = [path for group in groups if (path := self._joined(group)) is not None]
        yield from (EventBatch(table=table) for table in _grouped(_merge(self._paths), self._target))

    def _joined(self, group: list[Path]) -> Path | None:
        path = self._written(_merge(group))
        for part in group:
            part.unlink()
        return path

    def close(self) -> None:
        remove(self._folder)

    def _written(self, tables: Iterable[EventTable]) -> Path | None:
        path = self._folder / f"{self._made}.arrow"
        self._made += 1
        writer = SegmentWriter(path)
        try:
            for table in tables:
                batch = _to_arrow(table)
                size = max(1, self._chunk * len(batch) // max(len(batch), batch.nbytes // USUAL, 1))
                for start in range(0, len(batch), size):
                    writer.write(batch.slice(start, size))
        finally:
            writer.close()
        return path if writer.rows else None


def _to_arrow(table: EventTable) -> pa.RecordBatch:
    """lo and hi first; dictionaries as plain texts, which join without recoding."""
    plain = (a.cast(a.type.value_type) if pa.types.is_dictionary(a.type) else a for a in table.fields.values())
    return pa.RecordBatch.from_arrays([pa.array(table.lo), pa.array(table.hi), *plain], ["", "", *table.fields])


def _from_arrow(batch: pa.RecordBatch) -> EventTable:
    lo, hi, *fields = batch.columns
    lo, hi = (end.to_numpy(zero_copy_only=False) for end in (lo, hi))
    return EventTable(lo, hi, dict(zip(batch.schema.names[2:], fields, strict=True)))


class _Head:
    """The chunk of a run that is being merged."""

    def __init__(self, path: Path) -> None:
        self._chunks = map(_from_arrow, read_segments(path))
        self.table: EventTable | None = None
        self.advance()

    def advance(self) -> None:
        self.table = next(self._chunks, None)

    @property
    def last(self) -> OrderKey:
        assert self.table is not None
        return key_of(self.table, len(self.table) - 1)

    def cut(self, bound: OrderKey, inclusive: bool) -> EventTable | None:
        """Take away the rows before the bound, with it or without."""
        assert self.table is not None
        count = _rows_before(self.table, bound, inclusive)
        part = sliced(self.table, 0, count) if count else None
        if count == len(self.table):
            self.advance()
        elif count:
            self.table = sliced(self.table, count, len(self.table))
        return part


def _rows_before(table: EventTable, bound: OrderKey, inclusive: bool) -> int:
    first, last = (int(np.searchsorted(table.hi, bound[0], side)) for side in ("left", "right"))
    bisect = bisect_right if inclusive else bisect_left
    return first + bisect(range(first, last), bound, key=lambda row: key_of(table, row))


def _merge(paths: list[Path]) -> Iterator[EventTable]:
    """Runs as one. The chunk that ends first bounds what can be given out: everything before its end is in memory.

    Rows equal to the bound wait where they belong to a later run, since more of them may follow in the run of the bound."""
    heads = [head for head in map(_Head, paths) if head.table is not None]
    while heads:
        least = min(range(len(heads)), key=lambda i: heads[i].last)
        bound = heads[least].last
        parts = [head.cut(bound, inclusive=i <= least) for i, head in enumerate(heads)]
        filled = [part for part in parts if part is not None]
        yield filled[0] if len(filled) == 1 else sorted_table(joined(filled))
        heads = [head for head in heads if head.table is not None]


def _grouped(tables: Iterable[EventTable], target: int) -> Iterator[EventTable]:
    """Small tables joined to about `target` rows of usual size."""
    held: list[EventTable] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += weight(EventBatch(table=table))
        if rows >= target:
            yield held[0] if len(held) == 1 else joined(held)
            held, rows = [], 0
    if held:
        yield joined(held)
