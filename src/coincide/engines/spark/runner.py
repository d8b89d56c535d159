"""Whole runs on Spark for the command line and for tests: events from our own readers in, detections out.

A session that is there is used; otherwise a local one is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from coincide.adapters.mapping import FieldMapping
from coincide.adapters.scratch import remove, scratch_folder
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import PolicyRun
from coincide.engines.spark.batch import detect_batch
from coincide.engines.spark.bucket import FOREVER, OPEN
from coincide.engines.spark.frame import Source
from coincide.engines.spark.rows import gathered, no_run, ordered
from coincide.engines.spark.session import session
from coincide.engines.spark.spool import CLOSING, NUMBER, Spool
from coincide.engines.spark.streaming import detect_streaming
from coincide.engines.spark.timing import Timing, parse_delay
from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.model.stamp import LIMIT
from coincide.rulebook import Rulebook

MAPPING = FieldMapping(unit="us")
ROWS_PER_FILE = 500_000
WHOLE = "30000 days"
"""A delay that no input exceeds: definitions without a policy wait for all of it, as they do elsewhere."""


def run_batch(
    rules: Rulebook, batches: Iterable[EventBatch], until: float | None = None, tier: str = "kernel", closed: bool = True
) -> Iterator[EventBatch]:
    """Detections of a whole input in the order made."""
    with _spooled(batches, until, files=1) as (spark, spool):
        if spool.rows:
            yield from ordered(*_found(rules, spark, spool, until, tier, closed=closed))


def run_arrivals(
    rules: Rulebook,
    batches: Iterable[EventBatch],
    policy: StabilityPolicy | None,
    until: float | None = None,
    engine: str = "spark",
    tier: str = "kernel",
) -> PolicyRun:
    """Detections, latencies and late events of records that stand in the order of their arrival."""
    files = 1 if engine == "spark" else 2
    with _spooled(batches, until, files) as (spark, spool):
        if not spool.rows:  # a run that never began has no clock
            return no_run(rules, policy)
        if engine == "spark":
            return gathered(rules, policy, *_found(rules, spark, spool, until, tier, policy, late=True))
        return gathered(rules, policy, *_streamed(rules, spark, spool, WHOLE, tier, policy, late=True))


def run_streaming(
    rules: Rulebook,
    batches: Iterable[EventBatch],
    until: float | None = None,
    tier: str = "kernel",
    closed: bool = True,
    delay: str = "0 seconds",
    files: int = 2,
) -> Iterator[EventBatch]:
    """The same, with the events coming in several micro-batches. They may come out of order, within the delay."""
    if not closed and until is not None:
        raise CoincideError("an open end on a stream goes by the clock of its events: leave `until` out")
    with _spooled(batches, until, files, closed) as (spark, spool):
        if spool.rows:
            yield from ordered(*_streamed(rules, spark, spool, delay, tier))


def _found(
    rules: Rulebook,
    spark: SparkSession,
    spool: Spool,
    until: float | None,
    tier: str,
    policy: StabilityPolicy | None = None,
    late: bool = False,
    closed: bool = True,
) -> tuple[pa.Table, list[str]]:
    """The resulting frame, and the names of its columns."""
    source = Source(spark.read.parquet(str(spool.folder / "events")).toDF(*spool.names), rules.fields(MAPPING), NUMBER)
    found = detect_batch(rules, source, until, tier, policy, late, late, CLOSING, closed=closed)
    return found.toDF(*_numbered(found)).toArrow(), found.columns


def _streamed(
    rules: Rulebook,
    spark: SparkSession,
    spool: Spool,
    delay: str,
    tier: str,
    policy: StabilityPolicy | None = None,
    late: bool = False,
) -> tuple[pa.Table, list[str]]:
    folder = str(spool.folder / "events")
    schema = spark.read.parquet(folder).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    source = Source(stream.toDF(*spool.names), rules.fields(MAPPING), NUMBER)
    timing = Timing(parse_delay(delay))  # all of it is there, so the latest time is to be believed
    found = detect_streaming(rules, source, timing, tier, closing=CLOSING, policy=policy, late=late, latency=late)
    target = spool.folder / "detections"
    _awaited(found.toDF(*_numbered(found)), target, spool.folder / "checkpoint")
    return pa.dataset.dataset(str(target), format="parquet", exclude_invalid_files=False).to_table(), found.columns


def _awaited(found: DataFrame, target: Path, checkpoint: Path, attempts: int = 3) -> None:
    writer = found.writeStream.format("parquet").option("path", str(target)).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:  # on a busy machine Spark gives up on its worker; the checkpoint lets us go on
        if "failed to connect back" not in str(error) or attempts == 1:
            raise
        _awaited(found, target, checkpoint, attempts - 1)
    finally:
        query.stop()


@contextmanager
def _spooled(
    batches: Iterable[EventBatch], until: float | None, files: int, closed: bool = True
) -> Iterator[tuple[SparkSession, Spool]]:
    spark = SparkSession.getActiveSession() or session()
    spool = Spool(scratch_folder("coincide-spark-"))
    try:
        end = -LIMIT if until is None else FOREVER if until == inf else int(until)
        spool.fill(batches, files, ROWS_PER_FILE, end if closed else OPEN)
        yield spark, spool
    finally:
        remove(spool.folder)


def _numbered(frame: DataFrame) -> list[str]:
    """Names for columns whose own may differ in case only."""
    return [f"o{number}" for number in range(len(frame.columns))]
