"""A streaming query in which a thousand keys are touched a micro-batch: what does it take with many keys open, and what with few?

    python -m benchmarks.spark_open [LANGUAGE …]

The real thing, Spark's store, shuffles and workers with it (`spark_pages` has a bucket alone, in CPU time). The first file opens
all keys, each that follows is a micro-batch; then the query is started again, so that its workers hold nothing and read. Only
ratios mean anything on a shared machine, those of CPU time, of Spark and all its workers, the more. A micro-batch now and then
writes or reads a page whole, so the mean is given, too."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming.listener import StreamingQueryListener

from benchmarks.measure import family_seconds, show
from benchmarks.snapshots import TOUCHED, batch
from benchmarks.spark_pages import LANGUAGES
from coincide import spark as on_spark
from coincide.rulebook import loads

SCHEMA = "type string, time timestamp, id string, k string"
SIZES = (10_000, 1_000_000)
WARM = 8
"""Micro-batches that start workers and compile, or open what is open: the first ones wait for the clock."""
MICRO_BATCHES = 20
ROUND = "COINCIDE_BENCHMARK_ROUND"
Costs = list[tuple[float, float]]
"""Milliseconds of each micro-batch, of the wall and of CPU."""


class Meter(StreamingQueryListener):
    """What each micro-batch of a query takes."""

    def __init__(self) -> None:
        self.costs: Costs = []
        self._spent = family_seconds()

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        before, self._spent = self._spent, family_seconds()
        if event.progress.numInputRows and self._spent > before:  # or a worker has ended, and is counted no more
            self.costs.append((event.progress.durationMs["triggerExecution"], 1000 * (self._spent - before)))

    def onQueryTerminated(self, event: Any) -> None:
        pass


def write_file(folder: Path, number: int, *parts: Any) -> None:
    tables = [each.table for each in parts]
    rows = [pa.table({"time": pa.array(each.hi, pa.timestamp("us", "UTC")), **each.fields}) for each in tables]
    pq.write_table(pa.concat_tables(rows).select(["type", "time", "id", "k"]), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1000 + number, 1000 + number))


def write_touches(folder: Path, first: int, size: int, count: int, random: Any) -> None:
    for number in range(first, first + count):
        keys = random.choice(size, TOUCHED, replace=False)
        write_file(folder, number, batch("payment", keys[::2], 2 * number), batch("order", keys[1::2], 2 * number + 1))


def micro_batches(spark: Any, language: str, folder: Path) -> Costs:
    """Of those that came after the first ones."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    found = on_spark.detect(loads(LANGUAGES[language], language), frame)
    writer = found.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    meter = Meter()
    spark.streams.addListener(meter)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    spark.streams.removeListener(meter)
    return meter.costs[WARM:]


def measured(spark: Any, language: str, size: int, count: int) -> tuple[Costs, Costs]:
    """Micro-batches of a query that goes on, and of one that was started again."""
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "events").mkdir()
        write_file(folder / "events", 0, batch("order", np.arange(size), 1))
        write_touches(folder / "events", 1, size, WARM + count, random)
        held = micro_batches(spark, language, folder)
        start_workers(spark)
        write_touches(folder / "events", 1 + WARM + count, size, WARM + count, random)
        return held, micro_batches(spark, language, folder)


def start_workers(spark: Any) -> None:
    """What is defined from now on gets workers that hold nothing: Spark keeps workers apart by their environment."""
    environment = spark.sparkContext.environment
    environment[ROUND] = str(int(environment.get(ROUND, "0")) + 1)


def question(spark: Any, language: str) -> None:
    measured(spark, language, TOUCHED, 1)  # workers are there, kernels compiled
    rows = {size: measured(spark, language, size, MICRO_BATCHES) for size in SIZES}
    for number, what in enumerate(("wall", "CPU")):
        figures = {}
        taken = [[[cost[number] for cost in costs] for costs in both] for both in rows.values()]
        for size, both in zip(rows, taken, strict=True):
            told = [f"{median(took):,.0f} (mean {mean(took):,.0f}, most {max(took):,.0f})" for took in both]
            figures[f"{size:,} open: goes on; started again"] = "; ".join(told) + " ms"
        ratios = [f"{of(many) / of(few):.2f}" for of in (median, mean) for few, many in zip(*taken, strict=True)]
        aim = f"medians {ratios[0]}, started again {ratios[1]}; means {ratios[2]}, {ratios[3]} (at most 1.5)"
        show(f"A micro-batch on Spark, {language}, {TOUCHED:,} keys touched, {what}", figures, aim)


def main(*languages: str) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers need not find it
    spark = on_spark.session("benchmark", spark__driver__memory="4g", spark__sql__streaming__numRecentProgressUpdates="1000")
    spark.sparkContext.setLogLevel("ERROR")
    for language in languages or LANGUAGES:
        question(spark, language)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
