"""A streaming query whose state is large, and whose workers have just started: they read only what is touched or due."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import expected, finished, texts_of_rows

from coincide import spark as on_spark
from coincide.engines.spark.bucket import read_meta
from coincide.engines.spark.checkpoint import stored_buckets
from coincide.engines.spark.pages import LARGE
from coincide.model.event import Event, primitive
from coincide.rulebook import Rulebook, loads

pytestmark = pytest.mark.spark

RULES = "sequence by k with maxspan=100s [order where true] ![payment where true]"
KEYS = 6_000
SETTING = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
"""It stands in the environment of workers: if it is changed, new ones are started."""


@pytest.fixture
def other_workers(spark: Any) -> Iterator[Callable[[], None]]:
    before = spark.conf.get(SETTING)
    yield lambda: spark.conf.set(SETTING, "false" if before == "true" else "true")
    spark.conf.set(SETTING, before)


def test_restarted_in_the_middle(spark: Any, tmp_path: Path, other_workers: Callable[[], None]) -> None:
    """Orders of all keys; some are paid; some come again; a few of the rest are due, and are not paid, or just in time."""
    files = [
        [event("order", 1000 + key // 6, key) for key in range(KEYS)],
        [event("payment", 10_000, key) for key in range(20)],
        [event("payment", 30_000, key) for key in range(20, 30)] + [event("order", 40_000, key) for key in (0, KEYS)],
        [event("payment", 101_000, key) for key in range(30, 40)],
    ]
    clocks = [3000, 11_000, 41_000, 101_010]
    rules, found = loads(RULES, "eql"), list[str]()
    (tmp_path / "events").mkdir()
    for numbers in ((0, 1), (2, 3)):
        for number in numbers:
            write(tmp_path / "events" / f"{number}.parquet", files[number], clocks[number], number)
        found += run(spark, rules, tmp_path)
        other_workers()
    assert sorted(found) == expected(rules, [event for file in files for event in file], clocks[-1] * 1000 - 1)
    assert len(found) == 60 - 40
    ((bucket,),) = (each.values() for each in stored_buckets(spark, str(tmp_path / "checkpoint"), 1).values())
    page = read_meta(bucket.meta() or b"").pages[0]
    assert page.base > LARGE, "what is left is read by portions"
    assert len(page.log) == 3


def event(kind: str, time: int, key: int) -> Event:
    return primitive(kind, time * 1000, time * 1000, f"{kind}{key}-{time}", {"k": f"customer {key}"})


def write(path: Path, events: list[Event], clock: int, number: int) -> None:
    columns = {
        "type": pa.array([*(event.type for event in events), "heartbeat"]),
        "time": pa.array([*(event.hi for event in events), clock * 1000], pa.timestamp("us", "UTC")),
        "id": pa.array([*(event.id for event in events), "end"]),
        "k": pa.array([*(str(event.attributes["k"]) for event in events), None]),
    }
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1000 + number, 1000 + number))


def run(spark: Any, rules: Rulebook, folder: Path) -> list[str]:
    found = list[str]()
    checkpoint = str(folder / "checkpoint")
    stream = spark.readStream.schema("type string, time timestamp, id string, k string").option("maxFilesPerTrigger", 1)
    detected = on_spark.detect(
        rules, stream.parquet(str(folder / "events")), delay="0 s", ahead=None, buckets=1, pages=1, checkpoint=checkpoint
    )
    writer = detected.writeStream.foreachBatch(lambda batch, _: found.extend(texts_of_rows(batch.collect())))
    finished(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True))
    return found
