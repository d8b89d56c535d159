"""A bucket in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from coincide.engines.ahead import Run
from coincide.engines.spark.bucket import Arrived, Bucket, Division
from coincide.engines.spark.marks import told_marks
from coincide.engines.spark.packing import to_bytes, unpacked
from coincide.engines.spark.pages import Work
from coincide.engines.spark.timing import Timing

METRICS = "coincide"
"""The observed metrics of a stream's state."""
COUNTS = ("late", "consumed", "waiting", "ahead")
RESULT = f"blob binary, {', '.join(f'{count} bigint' for count in COUNTS)}"


@dataclass(frozen=True)
class Keeper:
    """What is known of a group where its state is kept."""

    task: Work
    timed: bool
    division: Division


class Processor(StatefulProcessor):  # type: ignore[misc]
    """Called once a bucket and micro-batch: every bucket hears from every micro-batch. Timers are for when none come."""

    def __init__(self, keepers: Mapping[str, Keeper], timing: Timing, sources: Sequence[str] = ()) -> None:
        self.keepers = keepers
        self.sources = sources
        self.timing = timing

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._meta = handle.getValueState("meta", "data binary")
        self._segments = handle.getMapState("segments", "number int", "data binary")
        self._bases = handle.getMapState("bases", "page int", "data binary")
        self._logs = handle.getMapState("logs", "page int, number int", "data binary")
        self._rules = handle.getMapState("rules", "digest string", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield self._advanced(self.keepers[key[0]], arrived_rows(pd.concat(rows)))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        if key[0] in self.keepers:  # else no rule is left of the group
            arrived = Arrived(wall=timerValues.getCurrentProcessingTimeInMs() * 1000)
            yield self._advanced(self.keepers[key[0]], arrived)

    def _advanced(self, keeper: Keeper, arrived: Arrived) -> pd.DataFrame:
        outcome = Bucket(keeper.task, self.timing, keeper.timed, keeper.division, self, self.sources).advance(arrived)
        rows = keeper.task.rows(outcome.made, outcome.late_events, outcome.set_aside)
        return result(to_bytes(pa.Table.from_batches(rows)) if rows else None, outcome)

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


def stepped(packed: DataFrame, processor: StatefulProcessor, made: T.StructType, name: str = METRICS) -> DataFrame:
    """What the state makes of packed rows."""
    found = packed.groupBy("name", "bucket").transformWithStateInPandas(processor, RESULT, "Append", processor.timing.mode)
    counts = [F.coalesce(F.sum(count), F.lit(0)).alias(count) for count in COUNTS]
    return found.observe(name, *counts).select("blob").mapInArrow(unpacked, made)


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
    runs = [run for told in rows["runs"] for run in msgspec.msgpack.decode(bytes(told), type=list[Run])]
    blobs = [bytes(blob) for blob in rows["blob"] if blob is not None]
    marks = [told_marks(bytes(told)) for told in rows["marks"] if told is not None]
    return Arrived(runs, blobs, _only(rows["closing"]), marks, _only(rows["wall"]))


def _only(column: Any) -> int | None:
    """What all rows that say something say."""
    told = column.dropna()
    return int(told.iloc[0]) if len(told) else None
