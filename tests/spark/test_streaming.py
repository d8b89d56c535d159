"""Streaming DataFrames: the same detections again, whatever order events come in within the delay."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support import chained, expected, random_events, texts, texts_of_rows

from coincide import spark as on_spark
from coincide.engines.spark import runner
from coincide.model.batch import EventBatch
from coincide.rulebook import loads

pytestmark = pytest.mark.spark


def test_several_groups_and_micro_batches_out_of_order(spark: Any) -> None:
    rng = random.Random(5)
    events = random_events(1500, keys=(1.0, "1", True, 2.0, None))
    arrival = sorted(events, key=lambda e: e.hi + rng.randrange(20_000_000))
    batches = [EventBatch(arrival[:500]), EventBatch(arrival[500:])]
    made = [e for b in runner.run_streaming(chained(), batches, delay="20 seconds", files=3) for e in b.events]
    assert texts(made) == expected(chained(), events)


def test_late_events_heartbeats_and_the_clock(spark: Any, tmp_path: Path) -> None:
    """Detections come once the clock, less the delay, has passed them; a heartbeat moves it."""
    rules = loads("monitor m by k = repeat { push(x) { sequential { a, b } } }")
    files = [
        [("a", 0, 1), ("b", 2000, 1), ("a", 9000, 2)],  # clock 9 s: nothing below 4 s is outstanding
        [("b", 3000, 2), ("a", 8000, 1), ("b", 9500, 2)],  # the first is late
        [("heartbeat", 20000, None)],
    ]
    out: list[list[str]] = []
    schema = "type string, time bigint, k bigint"
    for number, rows in enumerate(files):
        spark.createDataFrame(rows, schema).coalesce(1).write.mode("append").parquet(str(tmp_path / "events" / f"part={number}"))
    frame = _stream(spark, tmp_path / "events", schema)
    query = (
        frame.transform(on_spark.detect(rules, delay="5 seconds"))
        .writeStream.foreachBatch(lambda batch, _: out.append(texts_of_rows(batch.drop("from").collect())))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert out == [['{"k": 1, "time": 2000, "type": "x"}'], [], ['{"k": 2, "time": 9500, "type": "x"}']]
    counts = [progress.observedMetrics["coincide"] for progress in query.recentProgress if progress.numInputRows]
    assert [count.late for count in counts] == [0, 1, 0]
    assert [count.consumed for count in counts] == [2, 0, 3]


def _stream(spark: Any, folder: Path, schema: str) -> Any:
    """The files of the folders below, one a micro-batch, in order."""
    import os

    ordered = folder.parent / "ordered"
    ordered.mkdir()
    for number, path in enumerate(sorted(folder.glob("*/*.parquet"))):
        path.rename(ordered / f"{number}.parquet")
        os.utime(ordered / f"{number}.parquet", (1000 + number, 1000 + number))
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(ordered))
