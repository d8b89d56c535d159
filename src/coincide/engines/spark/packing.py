"""Events on their way to the state: packed to one Arrow blob a bucket, so that Spark moves few rows.

A row of the packed frame is for one bucket, from one task of one micro-batch. Every task sends one to every bucket, if only to
tell what time it has seen; where sources are waited for, how far each of them has come (marks.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.snapshots import damaged, opened, sealed
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.marks import REACHED, marks_of

PACKED = "bucket int, first bigint, last bigint, closing bigint, marks binary, blob binary"
TIMES = [("first", pa.int64()), ("last", pa.int64()), ("closing", pa.int64())]
PACKED_ARROW = pa.schema([("bucket", pa.int32()), *TIMES, ("marks", pa.binary()), ("blob", pa.binary())])
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
BARE = -1
"""Number of the bucket of rows that only tell the time."""


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=COMPRESSED) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        return reader.read_all()


def stored(table: pa.Table) -> bytes:
    """As it is kept in a checkpoint."""
    return sealed(to_bytes(table))


def recovered(data: bytes) -> pa.Table:
    """What was stored."""
    table = from_bytes(opened(data))
    table.validate(full=True)
    return table


def alike(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Whole numbers of events that were kept before they travelled as such are doubles."""
    whole = {field.name for table in tables for field in table.schema if pa.types.is_int64(field.type)}
    return [table.cast(pa.schema([_as_whole(field, whole) for field in table.schema]), safe=False) for table in tables]


def _as_whole(field: pa.Field, whole: set[str]) -> pa.Field:
    return field.with_type(pa.int64()) if field.name in whole and pa.types.is_floating(field.type) else field


def fitting(table: pa.Table, *numbers: str) -> pa.Table:
    """Events. The columns of these names are there, whole numbers and nowhere null; so is `lo`, if it is."""
    if len(set(table.column_names)) < len(table.column_names):
        damaged("its events have a field twice")
    for name in (*numbers, *({"lo"} & set(table.column_names))):
        if not pa.types.is_integer(table.column(name).type) or table.column(name).null_count:
            damaged(f"its events have no '{name}'")
    if "lo" in table.column_names and (table.column("lo").to_numpy() > table.column("hi").to_numpy()).any():
        damaged("an event ends before it begins")
    return table


@dataclass(frozen=True)
class Packing:
    """Sent to workers. The rows that come in have the layout's columns, then page, bucket and closing."""

    layout: Layout
    buckets: tuple[int, ...]
    marked: bool = False  # by source: rows are in the order of arrival then, and events carry what their source had reached

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        received = [batch for batch in batches if batch.num_rows]
        if received:
            yield self._packed(pa.Table.from_batches(received))

    def _packed(self, table: pa.Table) -> pa.RecordBatch:
        hi = table.column(self.layout.fields.index("hi")).to_numpy()
        numbers = table.column("bucket").to_numpy()
        closing = table.column("closing").drop_null()
        events = table.drop_columns(["bucket", "closing"]).rename_columns([*self.layout.fields, "page"])
        marks = None
        if self.marked:
            reached, marks = marks_of(events)
            events = events.append_column(REACHED, reached)
        blobs = self._blobs(events, numbers)
        size = len(self.buckets)
        columns = [
            pa.array(self.buckets, pa.int32()),
            pa.array(np.full(size, hi.min())),
            pa.array(np.full(size, hi.max())),
            pa.array([closing[0].as_py() if len(closing) else None] * size, pa.int64()),
            pa.array([marks] * size, pa.binary()),
            pa.array([blobs.get(number) for number in range(size)], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=PACKED_ARROW)

    def _blobs(self, events: pa.Table, numbers: Any) -> dict[int, bytes]:
        if len(self.buckets) == 1 and (numbers == 0).all():
            return {0: to_bytes(events)}
        order = np.argsort(numbers, kind="stable")
        spread = events.take(pa.array(order))
        ends = np.searchsorted(numbers[order], np.arange(len(self.buckets) + 1))
        return {
            number: to_bytes(spread.slice(start, stop - start))
            for number, (start, stop) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
            if stop > start
        }


def unpacked(batches: Iterable[Any]) -> Iterator[Any]:
    """Sent to workers: blobs of detections as rows."""
    for batch in batches:
        for blob in batch.column(0):
            if blob.is_valid:
                yield from from_bytes(blob.as_py()).to_batches()


def balanced_buckets(count: int, partitions: int) -> tuple[int, ...]:
    """Numbers for buckets that Spark's hash spreads evenly over the partitions. The first is 0 always, so that a run which
    divides its state differently from its checkpoint finds a bucket of it and can tell."""
    room = -(-count // partitions)
    taken: dict[int, int] = {}
    chosen: list[int] = []
    number = 0
    while len(chosen) < count:
        partition = spark_hash(number) % partitions
        if taken.get(partition, 0) < room:
            taken[partition] = taken.get(partition, 0) + 1
            chosen.append(number)
        number += 1
    return tuple(chosen)


def spark_hash(number: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer, as Spark distributes rows by it (as a signed number)."""
    mask = 0xFFFFFFFF
    k = number * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = seed ^ (k * 0x1B873593 & mask)
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64 & mask) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
