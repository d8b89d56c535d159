"""The end of a stream's table: what the kept state still holds is made as if the input were over."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket
from coincide.engines.spark.rowpatterns import streamed
from coincide.engines.spark.tablework import TableStream
from coincide.errors import CoincideError
from coincide.source import SourceText

ENDS = ("closed", "open")
PARTS = {"meta": "value", "segments": "map", "bases": "map", "logs": "map", "rules": "map"}
"""The variables of a bucket's state (stateful.py)."""


def match_recognize_to_end(
    df: DataFrame,
    clause: str,
    write: Callable[[DataFrame, int], None],
    *,
    checkpoint: str,
    end: str = "closed",
    time: str | None = None,
    steps: int = STEPS,
    delay: str | None = None,
    buckets: int | None = None,
    pages: int | None = None,
) -> None:
    """Run MATCH_RECOGNIZE over all that a streaming DataFrame has now, and give what it makes to `write`, as Spark's foreachBatch
    would: a frame and the number of its micro-batch.

    With `end="closed"` the input is then over: what only its end decides is made from the state that the checkpoint keeps, and
    written last, with the number -1. With `end="open"` it stays undecided, for the next run from this checkpoint."""
    if end not in ENDS:
        raise CoincideError(f"end must be one of {', '.join(ENDS)}, not '{end}'")
    stream = streamed(df, SourceText("clause.mr.sql", clause), time, steps, delay, buckets, pages)
    writer = stream.matched().writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    if end == "closed":
        write(_rest(stream, checkpoint), -1)


def _rest(stream: TableStream, checkpoint: str) -> DataFrame:
    spark: SparkSession = stream.frame.sparkSession
    parts = [_part(spark, checkpoint, name, kind) for name, kind in PARTS.items()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    make = _Ending(stream)

    def ending(rows: pa.Table) -> pa.Table:  # Spark looks at the types that a function names
        return make(rows)

    ending.__annotations__ = {"rows": pa.Table, "return": pa.Table}
    return whole.groupBy("bucket").applyInArrow(ending, stream.result)


def _part(spark: SparkSession, checkpoint: str, name: str, kind: str) -> DataFrame:
    """Bucket, variable, key (as text) and bytes."""
    reader = spark.read.format("statestore").option("path", checkpoint).option("stateVarName", name)
    bucket = F.col("key")["bucket"].alias("bucket")
    if kind == "value":
        item, value = F.lit("{}"), F.col("value")
    else:
        item, value = F.to_json(F.col("user_map_key")), F.col("user_map_value")
    return reader.load().select(bucket, F.lit(name).alias("part"), item.alias("item"), value["data"].alias("data"))


class _Kept:
    """A bucket's store, to read."""

    def __init__(self, rows: pa.Table) -> None:
        self.parts: dict[tuple[str, tuple[Any, ...]], bytes] = {}
        for row in rows.to_pylist():
            self.parts[row["part"], tuple(json.loads(row["item"]).values())] = row["data"]

    def meta(self) -> bytes | None:
        return self.parts.get(("meta", ()))

    def segment(self, number: int) -> bytes:
        return self.parts["segments", (number,)]

    def base(self, page: int) -> bytes | None:
        return self.parts.get(("bases", (page,)))

    def entry(self, page: int, number: int) -> bytes:
        return self.parts["logs", (page, number)]

    def rules(self, digest: str) -> bytes:
        return self.parts["rules", (digest,)]

    def put_meta(self, data: bytes) -> None: ...
    def put_segment(self, number: int, data: bytes) -> None: ...
    def drop_segment(self, number: int) -> None: ...
    def put_base(self, page: int, data: bytes) -> None: ...
    def put_entry(self, page: int, number: int, data: bytes) -> None: ...
    def drop_entry(self, page: int, number: int) -> None: ...
    def put_rules(self, digest: str, data: bytes) -> None: ...


class _Ending:
    """Sent to workers: a bucket's rest."""

    def __init__(self, stream: TableStream) -> None:
        self.task, self.delay, self.timed, self.division = stream.task, stream.delay, stream.timed, stream.division

    def __call__(self, rows: pa.Table) -> pa.Table:
        bucket = Bucket(self.task, self.delay, self.timed, self.division, _Kept(rows))
        outcome = bucket.advance(Arrived(bucket.meta.clock, bucket.meta.clock, [], FOREVER))
        return pa.Table.from_batches(self.task.rows(outcome.made, None), self.task.result)
