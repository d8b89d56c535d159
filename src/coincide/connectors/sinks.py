"""Detections out of a stream, each once, for `writeStream.foreachBatch`.

A micro-batch that was being written when the query died is written again, with the same number and the same detections. So what
is written by the number, or by the keys of detections, is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.adapters.write import KEY
from coincide.engines.spark.rows import events_of
from coincide.errors import CoincideError
from coincide.model.event import record
from coincide.streams.base import Made
from coincide.streams.registry import open_sink

Write = Callable[[DataFrame, int], None]
NUMBER = "batch"

_encode = msgspec.json.Encoder().encode


def by_batch(path: str, format: str = "parquet", **options: str) -> Write:
    """Files below a path, in a folder for each micro-batch (`batch=17`), which is replaced as a whole if it is written again."""

    def write(batch: DataFrame, number: int) -> None:
        batch.write.format(format).options(**options).mode("overwrite").save(f"{path.rstrip('/')}/{NUMBER}={number}")

    return write


def by_key(url: str) -> Write:
    """A sink of coincide (`postgresql://…#TABLE`, `sqlite:///…#TABLE`, `nats://…?stream=NAME`; see docs/live.md) that has each
    detection once by its key: `detect` must have been given `keys=True`. Tasks write to it side by side, without the driver."""
    open_sink(url)  # what is wrong with it is told at once

    def write(batch: DataFrame, number: int) -> None:
        if KEY not in batch.columns:
            raise CoincideError("to have each detection once, its key is needed: detect(…, keys=True)")
        names = list(batch.columns)
        batch.mapInArrow(lambda rows: _sent(url, names, rows), "sent bigint").agg({"sent": "sum"}).collect()

    return write


def _sent(url: str, names: list[str], rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    sink = None
    for part in rows:
        if sink is None:
            sink = open_sink(url)
            sink.open(None)
        made = _detections_of(pa.Table.from_batches([part]), names)
        sink.write(made)
        yield pa.record_batch({"sent": pa.array([len(made)], pa.int64())})
    if sink is not None:
        sink.commit()
        sink.close()


def _detections_of(table: pa.Table, names: list[str]) -> list[Made]:
    made = []
    for event in events_of(table, names):
        told = record(event)
        made.append(Made(told.pop(KEY), told["type"], _encode(told) + b"\n"))
    return made
