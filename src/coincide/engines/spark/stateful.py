"""A bucket in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from coincide.engines.spark.bucket import Arrived, Bucket, Division, Outcome
from coincide.engines.spark.marks import merged_marks
from coincide.engines.spark.packing import to_bytes
from coincide.engines.spark.pages import Work

RESULT = "blob binary, late bigint, consumed bigint, waiting bigint"


class Processor(StatefulProcessor):  # type: ignore[misc]
    """Called once a bucket and micro-batch. There are no timers of Spark's: every bucket hears from every micro-batch."""

    def __init__(self, task: Work, delay: int, timed: bool, division: Division, sources: Sequence[str] = ()) -> None:
        self.sources = sources
        self.task = task
        self.delay = delay
        self.timed = timed
        self.division = division

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._meta = handle.getValueState("meta", "data binary")
        self._segments = handle.getMapState("segments", "number int", "data binary")
        self._bases = handle.getMapState("bases", "page int", "data binary")
        self._logs = handle.getMapState("logs", "page int, number int", "data binary")
        self._rules = handle.getMapState("rules", "digest string", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        bucket = Bucket(self.task, self.delay, self.timed, self.division, self, self.sources)
        yield self._result(bucket.advance(arrived_rows(pd.concat(rows))))

    def _result(self, outcome: Outcome) -> pd.DataFrame:
        rows = self.task.rows(outcome.made, outcome.late_events)
        blob = to_bytes(pa.Table.from_batches(rows)) if rows else None
        columns = {"blob": [blob], "late": [outcome.late], "consumed": [outcome.consumed], "waiting": [outcome.waiting]}
        return pd.DataFrame(columns)

    def close(self) -> None:
        pass

    # The bucket's store.

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


def value_bytes(found: Any) -> bytes | None:
    return None if found is None or found[0] is None else bytes(found[0])


def arrived_rows(rows: pd.DataFrame) -> Arrived:
    closing = rows["closing"].dropna()
    blobs = [bytes(blob) for blob in rows["blob"] if blob is not None]
    marks = merged_marks(bytes(told) for told in rows["marks"] if told is not None)
    ends = int(closing.iloc[0]) if len(closing) else None
    return Arrived(int(rows["first"].min()), int(rows["last"].max()), blobs, ends, marks)
