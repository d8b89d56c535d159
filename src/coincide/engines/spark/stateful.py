"""A bucket in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from coincide.collecting import spare_what_is_kept
from coincide.engines.spark.bucket import Arrived, Bucket, Outcome
from coincide.engines.spark.division import Division
from coincide.engines.spark.marks import read_marks
from coincide.engines.spark.moving import Moving
from coincide.engines.spark.packing import OUT, PACKED, PACKED_ARROW, Telling, sender, to_bytes, unpacked
from coincide.engines.spark.pages import Work
from coincide.engines.spark.timing import Timing

METRICS = "coincide"
"""The observed metrics of a stream's state."""
COUNTS = ("late", "consumed", "waiting", "ahead")
COUNTED = ", ".join(f"{count} bigint" for count in COUNTS)
RESULT = f"blob binary, {COUNTED}"
WORKERS = "COINCIDE_WORKERS"
"""In the environment of workers: those with other values are others."""
PASSED = f"{PACKED}, {COUNTED}"
"""From one stage to the next: rows for groups there, and results."""


@dataclass(frozen=True)
class Keeper:
    """What is known of a group where its state is kept."""

    task: Work
    timed: bool
    division: Division
    feeders: Sequence[str] = ()  # buckets of earlier stages that tell it how far they have come
    moving: Moving | None = None  # what buckets have to begin with, if there were others before


class Processor(StatefulProcessor):  # type: ignore[misc]
    """Called once a bucket and micro-batch: every bucket hears from every micro-batch. Timers are for when none come. If `more`
    stages follow, what is not for groups of this one goes on to them."""

    def __init__(self, keepers: Mapping[str, Keeper], timing: Timing, sources: Sequence[str] = (), more: bool = False) -> None:
        self.keepers = keepers
        self.sources = sources
        self.timing = timing
        self.more = more

    @property
    def schema(self) -> str:
        return PASSED if self.more else RESULT

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_what_is_kept()
        self._handle = handle
        self._meta = handle.getValueState("meta", "data binary")
        self._segments = handle.getMapState("segments", "number int", "data binary")
        self._bases = handle.getMapState("bases", "page int", "data binary")
        self._logs = handle.getMapState("logs", "page int, number int", "data binary")
        self._rules = handle.getMapState("rules", "digest string", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        if key[0] in self.keepers:
            yield from self._advanced(key, arrived_rows(pd.concat(rows)))
        else:
            yield from (frame if self.more else frame.drop(columns=PACKED_ARROW.names[:-1]) for frame in map(_counted, rows))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        if key[0] in self.keepers:  # else no rule is left of the group
            yield from self._advanced(key, Arrived(wall=timerValues.getCurrentProcessingTimeInMs() * 1000))

    def _advanced(self, key: Any, arrived: Arrived) -> Iterator[pd.DataFrame]:
        keeper = self.keepers[key[0]]
        if keeper.moving is not None and not keeper.moving.arrive(key[1], keeper.division, self, self._clear):
            return
        bucket = Bucket(keeper.task, self.timing, keeper.timed, keeper.division, self, self.sources, keeper.feeders)
        outcome = bucket.advance(arrived)
        rows = keeper.task.rows(outcome.made, outcome.late_events, outcome.set_aside)
        found = result(to_bytes(pa.Table.from_batches(rows)) if rows else None, outcome)
        yield _passed(key, keeper.task, arrived, outcome, found) if self.more else found

    def _clear(self) -> None:
        for variable in (self._meta, self._segments, self._bases, self._logs, self._rules):
            variable.clear()

    def close(self) -> None:
        pass

    # The bucket's store.

    def wake(self, before: int | None, at: int | None) -> None:
        set_timer(self._handle, before, at)

    def meta(self) -> bytes | None:
        return value_bytes(self._meta.get())

    def put_meta(self, data: bytes) -> None:
        self._meta.update((data,))

    def segment(self, number: int) -> bytes:
        data = value_bytes(self._segments.getValue((number,)))
        assert data is not None
        return data

    def put_segment(self, number: int, data: bytes) -> None:
        self._segments.updateValue((number,), (data,))

    def drop_segment(self, number: int) -> None:
        self._segments.removeKey((number,))

    def base(self, page: int) -> bytes | None:
        return value_bytes(self._bases.getValue((page,)))

    def put_base(self, page: int, data: bytes) -> None:
        self._bases.updateValue((page,), (data,))

    def entry(self, page: int, number: int) -> bytes:
        data = value_bytes(self._logs.getValue((page, number)))
        assert data is not None
        return data

    def put_entry(self, page: int, number: int, data: bytes) -> None:
        self._logs.updateValue((page, number), (data,))

    def drop_entry(self, page: int, number: int) -> None:
        self._logs.removeKey((page, number))

    def rules(self, digest: str) -> bytes:
        data = value_bytes(self._rules.getValue((digest,)))
        assert data is not None
        return data

    def put_rules(self, digest: str, data: bytes) -> None:
        self._rules.updateValue((digest,), (data,))

    def drop_rules(self, digest: str) -> None:
        self._rules.removeKey((digest,))


def set_timer(handle: StatefulProcessorHandle, before: int | None, at: int | None) -> None:
    """One timer a key, in milliseconds: another one than before."""
    if before is not None:
        handle.deleteTimer(before)
    if at is not None:
        handle.registerTimer(at)


def value_bytes(found: Any) -> bytes | None:
    return None if found is None or found[0] is None else bytes(found[0])


def stepped(packed: DataFrame, processors: Sequence[Any], made: T.StructType, name: str = METRICS) -> DataFrame:
    """What the state makes of packed rows, stage by stage."""
    found = packed
    for stage in processors:
        grouped = found.groupBy("name", "bucket")
        with workers_of_their_own(packed.sparkSession):
            found = grouped.transformWithStateInPandas(stage, stage.schema, "Append", stage.timing.mode)
    counts = [F.coalesce(F.sum(count), F.lit(0)).alias(count) for count in COUNTS]
    return found.observe(name, *counts).select("blob").mapInArrow(unpacked, made)


@contextmanager
def workers_of_their_own(session: Any) -> Iterator[None]:
    """For functions that are made in it. Spark hands a task the worker that has been idle for longest, whatever it did. Where
    those that keep state are apart, there are as many as tasks that run at once, and what they hold is not old. A client of
    Spark Connect has no say in that."""
    environment = getattr(getattr(session, "_sc", None), "environment", None)
    if environment is None:
        yield
        return
    environment[WORKERS] = "state"
    try:
        yield
    finally:
        environment.pop(WORKERS, None)  # another thread may have defined a stream meanwhile


class Counts(Protocol):
    @property
    def late(self) -> int: ...
    @property
    def consumed(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def ahead(self) -> int: ...


def result(blob: bytes | None, counts: Counts) -> pd.DataFrame:
    return pd.DataFrame({"blob": [blob], **{count: [getattr(counts, count)] for count in COUNTS}})


def arrived_rows(rows: pd.DataFrame) -> Arrived:
    told = [msgspec.msgpack.decode(bytes(data), type=Telling) for data in rows["told"]]
    return Arrived(
        [run for one in told for run in one.runs],
        [bytes(blob) for blob in rows["blob"] if blob is not None],
        next((one.closing for one in told if one.closing is not None), None),
        [read_marks(one.marks) for one in told if one.marks is not None],
        next((one.wall for one in told if one.wall is not None), None),
        {one.sender: one.bound for one in told if one.sender is not None and one.bound is not None},
        [one.first for one in told if one.first is not None],
    )


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that go on as they are: those of the first stage have no counts yet."""
    return rows if COUNTS[0] in rows else rows.assign(**dict.fromkeys(COUNTS, 0))


def _passed(key: Any, task: Work, arrived: Arrived, outcome: Outcome, found: pd.DataFrame) -> pd.DataFrame:
    """The result of a bucket, and what it has to say to others."""
    name, bucket = key
    rows = [(OUT, bucket, b"", found["blob"][0], *(getattr(outcome, count) for count in COUNTS))]
    told = Telling([], arrived.closing, arrived.wall, sender=sender(name, bucket), bound=outcome.reached).to_bytes()
    for listener, blobs in task.leaving(outcome.made):
        for number, other in enumerate(listener.road.buckets):
            rows.append((listener.road.name, other, told, blobs.get(number), *(0 for _ in COUNTS)))
    return pd.DataFrame(rows, columns=[*PACKED_ARROW.names, *COUNTS])
