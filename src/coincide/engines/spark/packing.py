"""Events on their way to the state: packed to one Arrow blob a bucket, so that Spark moves few rows.

A row of the packed frame is for one bucket of one group, from one task of one micro-batch. Every task sends one to every bucket,
if only to tell what time it has seen and what the wall clock says; where sources are waited for, how far each has come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.snapshots import damaged, opened, sealed
from coincide.engines.ahead import Guard, Run
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.marks import REACHED, marks_of
from coincide.engines.spark.rejects import SHOWN
from coincide.model.event import HEARTBEAT

PACKED = "name string, bucket int, told binary, blob binary"
PACKED_ARROW = pa.schema([("name", pa.string()), ("bucket", pa.int32()), ("told", pa.binary()), ("blob", pa.binary())])
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # a task has one core
SEED = 42
"""Of Spark's hash."""
MADE = "made"
"""The column of detections on their way from one stage to the next; in batches also of what is given out, as blobs."""
OUT = ""
"""The name, in place of a group's, of what is given out."""
COUNTED = "counted"
"""The column that says of an event which several groups read whether this one is to count it: the first of them."""
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
    """Events, and detections of other stages. The columns of these names are there, whole numbers and nowhere null; so is the
    `lo` of events, if it is."""
    if len(set(table.column_names)) < len(table.column_names):
        damaged("its events have a field twice")
    for name in numbers:
        _check_whole(table, name)
    events = table.filter(pc.is_null(table.column(MADE))) if MADE in table.column_names else table
    if "lo" in events.column_names and len(events):
        _check_whole(events, "lo")
        if (events.column("lo").to_numpy() > events.column("hi").to_numpy()).any():
            damaged("an event ends before it begins")
    return table


def counted(table: pa.Table) -> int:
    """How many events are counted here: what other stages have detected is not."""
    if COUNTED not in table.column_names or not pa.types.is_boolean(table.column(COUNTED).type):
        return len(table)
    return int(table.column(COUNTED).fill_null(False).to_numpy().sum())


def _check_whole(table: pa.Table, name: str) -> None:
    if not pa.types.is_integer(table.column(name).type) or table.column(name).null_count:
        damaged(f"its events have no '{name}'")


class Telling(msgspec.Struct, array_like=True):
    """What a row says beside its events. A task tells the times that it has seen, a bucket of an earlier stage (chaining.py) how
    far it has come."""

    runs: list[Run] = []
    closing: int | None = None
    wall: int | None = None
    marks: bytes | None = None
    sender: str | None = None
    bound: int | None = None
    first: int | None = None  # of the times of events, which heartbeats are not

    def to_bytes(self) -> bytes:
        return msgspec.msgpack.encode(self)


@dataclass(frozen=True)
class Road:
    """A group's way to its state: the fields that its events have, and the numbers of its buckets."""

    name: str
    layout: Layout
    buckets: tuple[int, ...]
    gone: tuple[int, ...] = ()  # those that there were before (moving.py)


def sender(name: str, bucket: int) -> str:
    """A bucket that feeds others."""
    return f"{name}/{bucket}"


@dataclass(frozen=True)
class Packing:
    """Sent to workers. The rows that come in have the layout's columns and, if some are to be shown, SHOWN; then, for each road,
    the page and the bucket that the row goes to (none: BARE); at last closing and wall."""

    layout: Layout
    roads: tuple[Road, ...]
    marked: bool = False  # by source: rows are in the order of arrival then, and events carry what their source had reached
    guard: Guard | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        received = [batch for batch in batches if batch.num_rows]
        if received:
            yield from self._packed(pa.Table.from_batches(received))

    def _packed(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        hi = table.column(self.layout.fields.index("hi")).to_numpy()
        wall = table.column("wall")[0].as_py()
        closing = table.column("closing").drop_null()
        runs = self._runs(hi, wall)
        events = table.select(range(len(self.layout.fields))).rename_columns([*self.layout.fields])
        marks = None
        if self.marked:
            reached, marks = marks_of(events, runs)
            events = events.append_column(REACHED, reached)
        told = Telling(runs, closing[0].as_py() if len(closing) else None, wall, marks, first=_first(events, hi))
        shown = table.column(SHOWN) if SHOWN in table.column_names else None
        unread = np.ones(len(table), bool)
        for number, road in enumerate(self.roads):
            buckets = table.column(f"bucket{number}").to_numpy()
            own = events.select([*road.layout.fields, *([REACHED] if self.marked else [])])
            own = own.append_column("page", table.column(f"page{number}"))
            own = own if len(self.roads) == 1 else own.append_column(COUNTED, pa.array(unread))
            own = own if shown is None else own.append_column(SHOWN, shown)
            yield road_batch(road, told, _blobs(own, buckets, len(road.buckets)))
            unread &= buckets == BARE
            if shown is not None:  # once is enough
                shown = pc.if_else(pa.array(unread), shown, pa.scalar(None, shown.type))

    def _runs(self, hi: Any, wall: int | None) -> list[Run]:
        return [(int(hi.min()), int(hi.max()), len(hi))] if self.guard is None else self.guard.runs(hi, wall)


def _first(events: pa.Table, hi: Any) -> int | None:
    if "type" in events.column_names:
        hi = hi[~pc.equal(events.column("type"), HEARTBEAT).fill_null(False).to_numpy()]
    return int(hi.min()) if len(hi) else None


def road_batch(road: Road, told: Telling, blobs: Mapping[int, bytes]) -> pa.RecordBatch:
    """A row for each bucket: what all are told, and its own events."""
    buckets = (*road.buckets, *road.gone)
    size = len(buckets)
    rows = [[road.name] * size, buckets, [told.to_bytes()] * size, [blobs.get(n) for n in range(size)]]
    columns = [pa.array(values, field.type) for values, field in zip(rows, PACKED_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED_ARROW)


def _blobs(events: pa.Table, numbers: Any, buckets: int) -> dict[int, bytes]:
    if buckets == 1 and (numbers == 0).all():
        return {0: to_bytes(events)}
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(buckets + 1))
    wanted = order[ends[0] :]
    spread = events.take(pa.array(wanted))
    ends = ends - ends[0]
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


def balanced_buckets(count: int, name: str | None = None) -> tuple[int, ...]:
    """Numbers for buckets, of the group of this name if there are several, that Spark's hash spreads evenly over so many
    partitions, so also over a divisor or a multiple of that. They depend on nothing else: a checkpoint keeps them whatever
    machine it is on, and whatever other groups there are. The first is that of a group of one bucket, so that a run which
    divides its state otherwise finds a bucket and can tell."""
    seed = SEED if name is None else spark_hash(name.encode())
    taken: dict[int, int] = {}
    number = 0
    while len(taken) < count:
        taken.setdefault(spark_hash(number.to_bytes(4, "little"), seed) % count, number)
        number += 1
    return tuple(sorted(taken.values()))


def spark_hash(data: bytes, seed: int = SEED) -> int:
    """Murmur3 of a text, or of a 32-bit integer in little endian, as Spark distributes rows by it (as a signed number)."""
    mask = 0xFFFFFFFF
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    h = seed & mask
    for k in [*words, *(byte - 256 if byte > 127 else byte for byte in data[whole:])]:
        k = k * 0xCC9E2D51 & mask
        k = (k << 15 | k >> 17) & mask
        h ^= k * 0x1B873593 & mask
        h = (h << 13 | h >> 19) & mask
        h = h * 5 + 0xE6546B64 & mask
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
