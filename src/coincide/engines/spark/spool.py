"""Events as Parquet files that Spark can read: how what our own readers have read gets into Spark.

A column that holds one type in all batches is plain, one that mixes them is MIXED; which it is shows when the last batch was
read, so batches wait in a temporary file. Attributes go by numbers, since Spark takes names that differ in case for one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as data
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coincide.adapters.segments import SegmentWriter, read_segments
from coincide.model.batch import EventBatch
from coincide.model.column import COMPOUND, MIXED
from coincide.model.event import HEARTBEAT
from coincide.model.table import SPACE, EventTable

CLOSING = "input ends"  # no attribute's name: it has a space
NUMBER = "order of arrival"
TIME = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
GIVEN = {"type": pa.string(), "time": TIME, "id": pa.string(), "source": pa.string(), "space": SPACE, "arrival": pa.int64()}
ENVELOPE = {**GIVEN, NUMBER: pa.int64()}


@dataclass
class Spool:
    """Files in a folder, and the names of their columns."""

    folder: Path
    rows: int = 0
    last: int = 0
    kinds: dict[str, set[pa.DataType]] = data(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*ENVELOPE, CLOSING, *self.kinds]

    @property
    def _schema(self) -> pa.Schema:
        attributes = [(f"a{number}", _common(kinds)) for number, kinds in enumerate(self.kinds.values())]
        return pa.schema([*ENVELOPE.items(), (CLOSING, pa.int64()), *attributes])

    def fill(self, batches: Iterable[EventBatch], files: int, rows_per_file: int, closing: int) -> None:
        """At least so many files, each of at most so many rows; the last ends with the word that the input has ended."""
        waiting = self.folder / "events.arrow"
        writer = SegmentWriter(waiting)
        for batch in batches:
            if len(batch):
                self._take(batch.table, writer)
        writer.close()
        size = max(1, min(rows_per_file, -(-self.rows // files)))
        (self.folder / "events").mkdir()
        end = self._end(closing)
        waits: list[pa.RecordBatch] | None = None
        number = 0
        for part in _pieces(read_segments(waiting), size):
            if waits is not None:
                self._write(number, waits)
                number += 1
            waits = part
        self._write(number, [*(waits or []), end])
        waiting.unlink()

    def _take(self, table: EventTable, writer: SegmentWriter) -> None:
        columns: dict[str, pa.Array] = {
            "type": table.fields["type"].cast(pa.string()),
            "time": pa.StructArray.from_arrays([pa.array(table.lo), pa.array(table.hi)], fields=list(TIME)),
            "id": table.fields["id"].cast(pa.string()),
            **{name: table.fields[name] for name in ("source", "space", "arrival") if name in table.fields},
            NUMBER: pa.array(range(self.rows, self.rows + len(table)), pa.int64()),
        }
        for name in table.attributes:
            array = table.column(name).to_arrow()
            if array.null_count < len(array):
                self.kinds.setdefault(name, set()).add(array.type)
                columns[name] = array
        writer.write(pa.record_batch(columns))
        self.rows += len(table)
        self.last = max(self.last, int(table.hi.max())) if self.rows > len(table) else int(table.hi.max())

    def _end(self, closing: int) -> pa.RecordBatch:
        time = pa.array([{"lo": self.last, "hi": self.last}], TIME)
        return pa.record_batch({"type": [HEARTBEAT], "time": time, CLOSING: pa.array([closing], pa.int64())})

    def _write(self, number: int, part: list[pa.RecordBatch]) -> None:
        path = self.folder / "events" / f"{number:06d}.parquet"
        with pq.ParquetWriter(path, self._schema) as writer:
            for batch in part:
                writer.write_batch(self._fitted(batch))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))  # streams read files in the order of their times

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        there = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns = [fitted_array(there.get(n), f.type, len(batch)) for n, f in zip(self.names, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _pieces(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    piece: list[pa.RecordBatch] = []
    room = size
    for batch in batches:
        start = 0
        while start < len(batch):
            taken = batch.slice(start, room)
            piece.append(taken)
            start, room = start + len(taken), room - len(taken)
            if not room:
                yield piece
                piece, room = [], size
    if piece:
        yield piece


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    return next(iter(kinds)) if len(kinds) == 1 else COMPOUND if COMPOUND in kinds else MIXED


def fitted_array(array: pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    if array is None:
        return pa.nulls(rows, kind)
    if array.type == kind or not pa.types.is_struct(kind):
        return array.cast(kind)
    parts = [_part(array, f, rows) for f in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())


def _part(array: pa.Array, field: pa.Field, rows: int) -> pa.Array:
    if pa.types.is_struct(array.type) and array.type.get_field_index(field.name) >= 0:
        return array.field(field.name)
    return array if array.type == field.type else pa.nulls(rows, field.type)
