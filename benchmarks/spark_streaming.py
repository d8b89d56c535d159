"""What detection costs in a streaming query: the same query with and without it, in one run.

    python -m benchmarks.spark_streaming [rows per micro-batch] [micro-batches] [keys]

Both read the same files, one a micro-batch, pack their rows and pass them through stateful Python. One keeps what it was told
and gives nothing out; the other detects: a three-step monitor, one by texts, with timestamps, and a rule with timers. Events come
in order; the delay is a tenth of a micro-batch. Figures are of the micro-batches after the first, which starts workers and
compiles. With three equally likely steps, two keys in three have a state to keep. Only ratios mean anything on a shared machine;
those of CPU seconds, of Spark and all its workers (and all micro-batches), the more."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import family_seconds
from benchmarks.spark_batch import ONE, TEXTS, TIMED
from coincide import spark as on_spark
from coincide.engines.spark import streaming
from coincide.engines.spark.bucket import Outcome
from coincide.engines.spark.stateful import Processor, result
from coincide.rulebook import Rulebook, loads

PLAIN = "type string, time bigint, id bigint, k bigint, v double"
SPELLED = "type string, at timestamp, id bigint, name string, v double"


class Passing(Processor):
    """In place of detection: the blobs of a bucket are received, and one is kept."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        frame = pd.concat(rows)
        self.meta()
        self.put_meta(bytes(frame["told"].iloc[0]))
        yield result(None, Outcome(consumed=sum(blob is not None for blob in frame["blob"])))


def write_events(folder: Path, rows: int, files: int, keys: int) -> None:
    rng = np.random.default_rng(1)
    texts = [f"customer {key}" for key in range(keys)]
    for number in range(files):
        types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, rows), pa.int32()), ["a", "b", "c"])
        first = number * rows
        time, key = np.arange(first, first + rows), _keys(rng, rows, keys, first)
        columns = {
            "type": types.cast(pa.string()),
            "time": pa.array(time),
            "at": pa.array(1_000 * time, pa.timestamp("us", "UTC")),
            "id": pa.array(time),
            "k": pa.array(key),
            "name": pa.DictionaryArray.from_arrays(pa.array(key, pa.int32()), texts).cast(pa.string()),
            "v": pa.array(rng.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1000 + number, 1000 + number))


def _keys(rng: Any, rows: int, keys: int, first: int) -> Any:
    """Each key once before any comes again, so that all are open early; then at random."""
    return np.arange(first, first + rows) if first + rows <= keys else rng.integers(0, keys, rows)


def run(spark: Any, folder: Path, rows: int, label: str, rules: Rulebook, schema: str) -> tuple[float, float]:
    """Seconds of a micro-batch, of the wall and of CPU."""
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    frame = frame.withColumnRenamed("at", "time")
    found = on_spark.detect(rules, frame, delay=f"{rows // 10} ms")
    checkpoint, begun = folder / label, family_seconds()
    query = found.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    cpu = family_seconds() - begun
    took = [p.durationMs["triggerExecution"] / 1000 for p in query.recentProgress if p.numInputRows]
    size = sum(f.stat().st_size for f in (checkpoint / "state").rglob("*") if f.is_file())
    print(f"{label:14}  {' '.join(f'{t:.1f}' for t in took)} s  median {median(took[1:]):.2f} s  {cpu:.1f} s of CPU", end="  ")
    print(f"{rows / median(took[1:]):10,.0f} events/s  {size / 1e6:,.1f} MB of state files", flush=True)
    return median(took[1:]), cpu / len(took)


def main(rows: int = 1_000_000, files: int = 5, keys: int = 10_000) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers need not find it
    spark = on_spark.session("benchmark", spark__driver__memory="4g")
    queries = {
        "a monitor": (loads(ONE), PLAIN),
        "texts": (loads(TEXTS), SPELLED),
        "timers": (loads(TIMED, "ce"), PLAIN),
    }
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "events").mkdir()
        write_events(Path(name) / "events", rows, files, keys)
        for label, query in queries.items():
            with patch.object(streaming, "Processor", Passing):
                passing = run(spark, Path(name), rows, f"{label}, passed", *query)
            detecting = run(spark, Path(name), rows, label, *query)
            wall, cpu = (a / b for a, b in zip(passing, detecting, strict=True))
            print(f"speed of {label} relative to passing through: {wall:.2f}; by CPU {cpu:.2f}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
