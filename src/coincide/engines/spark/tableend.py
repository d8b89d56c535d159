"""The end of a stream's table: what the kept state still holds is made as if the input were over."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket
from coincide.engines.spark.checkpoint import PARTS, StoredBucket, state_part
from coincide.engines.spark.rowpatterns import streamed
from coincide.engines.spark.tablework import Options, TableStream
from coincide.errors import CoincideError
from coincide.source import SourceText

ENDS = ("closed", "open")


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
    ahead: str | None = None,
    rejects: bool = False,
) -> None:
    """Run MATCH_RECOGNIZE over all that a streaming DataFrame has now, and give what it makes to `write`, as Spark's foreachBatch
    would: a frame and the number of its micro-batch.

    With `end="closed"` the input is then over: what only its end decides is made from the state that the checkpoint keeps, and
    written last, with the number -1. With `end="open"` it stays undecided, for the next run from this checkpoint. The other
    options are those of `match_recognize`."""
    if end not in ENDS:
        raise CoincideError(f"end must be one of {', '.join(ENDS)}, not '{end}'")
    options = Options(time, steps, delay, buckets, pages, ahead=ahead, rejects=rejects)
    stream = streamed(df, SourceText("clause.mr.sql", clause), options)
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
    parts = [state_part(spark, checkpoint, name) for name in PARTS]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part)
    make = _Ending(stream)

    def ending(rows: pa.Table) -> pa.Table:  # Spark looks at the types that a function names
        return make(rows)

    ending.__annotations__ = {"rows": pa.Table, "return": pa.Table}
    return whole.groupBy("bucket").applyInArrow(ending, stream.result)


class _Ending:
    """Sent to workers: a bucket's rest."""

    def __init__(self, stream: TableStream) -> None:
        self.keeper, self.timing, self.made = stream.keeper, stream.timing, stream.task.result

    def __call__(self, rows: pa.Table) -> pa.Table:
        task = self.keeper.task
        bucket = Bucket(task, self.timing, self.keeper.timed, self.keeper.division, StoredBucket(rows.to_pylist()))
        outcome = bucket.advance(Arrived([(bucket.meta.clock, bucket.meta.clock, 0)], [], FOREVER))
        return pa.Table.from_batches(task.rows(outcome.made, None), self.made)
