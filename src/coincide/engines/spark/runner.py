"""Whole runs on Spark for the command line and for tests: events from our own readers in, detections out.

A session that is there is used; otherwise a local one is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import LIMIT
from coincide.engines.spark.batch import detect_batch
from coincide.engines.spark.bucket import FOREVER
from coincide.engines.spark.frame import Source
from coincide.engines.spark.outputs import MOMENT, ORDER
from coincide.engines.spark.session import session
from coincide.engines.spark.spool import CLOSING, Spool
from coincide.engines.spark.streaming import detect_streaming
from coincide.model.batch import EventBatch
from coincide.model.compound import Compound
from coincide.model.event import Event, Value, detection
from coincide.model.stamp import order_key
from coincide.rulebook import Rulebook

MAPPING = FieldMapping(unit="us")
ROWS_PER_FILE = 500_000
OUT = 65_536


def run_batch(
    rules: Rulebook, batches: Iterable[EventBatch], until: float | None = None, tier: str = "kernel"
) -> Iterator[EventBatch]:
    """Detections of a whole input in the order made."""
    with _spooled(batches, until, files=1) as (spark, spool):
        frame = spark.read.parquet(str(spool.folder / "events"))
        found = detect_batch(rules, Source(frame.toDF(*spool.names), MAPPING), until, tier)
        yield from _ordered(found.toDF(*_numbered(found)).toArrow(), found.columns)


def run_streaming(
    rules: Rulebook,
    batches: Iterable[EventBatch],
    until: float | None = None,
    tier: str = "kernel",
    delay: str = "0 seconds",
    files: int = 2,
) -> Iterator[EventBatch]:
    """The same, with the events coming in several micro-batches. They may come out of order, within the delay."""
    with _spooled(batches, until, files) as (spark, spool):
        folder = str(spool.folder / "events")
        schema = spark.read.parquet(folder).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
        source = Source(stream.toDF(*spool.names), MAPPING)
        found = detect_streaming(rules, source, delay, tier, closing=CLOSING)
        target = spool.folder / "detections"
        _awaited(found.toDF(*_numbered(found)), target, spool.folder / "checkpoint")
        tables = pa.dataset.dataset(str(target), format="parquet", exclude_invalid_files=False).to_table()
        yield from _ordered(tables, found.columns)


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
def _spooled(batches: Iterable[EventBatch], until: float | None, files: int) -> Iterator[tuple[SparkSession, Spool]]:
    spark = SparkSession.getActiveSession() or session()
    spool = Spool(Path(mkdtemp(prefix="coincide-spark-")))
    try:
        spool.fill(batches, files, ROWS_PER_FILE, -LIMIT if until is None else FOREVER if until == inf else int(until))
        yield spark, spool
    finally:
        rmtree(spool.folder, ignore_errors=True)


def _numbered(frame: DataFrame) -> list[str]:
    """Names for columns whose own may differ in case only."""
    return [f"o{number}" for number in range(len(frame.columns))]


def _ordered(table: pa.Table, names: list[str]) -> Iterator[EventBatch]:
    """The detections of the resulting frame in the order in which they were made, as far as that shows."""
    columns = [_plain(table.column(number)) for number in range(len(names))]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    events = sorted((_event(row) for row in rows), key=lambda e: (e.hi, e.lo, e.origin[-1:], e.place[3:]))
    for start in range(0, len(events), OUT):
        yield EventBatch(events[start : start + OUT])


def _plain(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_struct(kind) and {f.name for f in kind} == {"lo", "hi"}:
        ends = [pc.struct_field(column, end).cast(MOMENT).cast(pa.int64()).to_pylist() for end in ("lo", "hi")]
        return list(zip(*ends, strict=True))
    values: list[Any] = column.to_pylist()
    if pa.types.is_struct(kind):
        return [
            None if v is None else next((part for part in v.values() if part is not None), None) for v in map(_decoded, values)
        ]
    return values


def _decoded(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is not None and value.get("compound") is not None:
        return {"compound": msgspec.msgpack.decode(value["compound"], type=Compound)}
    return value


def _event(row: dict[str, Any]) -> Event:
    lo, hi = row.pop("time")
    kind, identifiers, source, order = row.pop("type"), row.pop("from"), row.pop("source"), row.pop(ORDER)
    attributes: dict[str, Value] = {name: value for name, value in row.items() if value is not None}
    origin = tuple(order_key(lo, hi, identifier) for identifier in identifiers)
    return detection(kind, (lo, hi), attributes, origin, (hi, 0, 0, *order), source)
