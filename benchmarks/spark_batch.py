"""What detection costs in a Spark batch job: the same job with and without it, in one run.

    python benchmarks/spark_batch.py [events] [keys]

Both jobs read the same Parquet files, filter, project and shuffle by key in the same way. One counts the rows that reach Python
and ends; the other detects a three-step monitor. Only their ratio means anything on a shared machine."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide import spark as on_spark
from coincide.engines.spark import pushdown
from coincide.engines.spark.frame import Source
from coincide.rulebook import loads

RULES = "monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }"
ROUNDS = 3


def write_events(folder: Path, size: int, keys: int) -> None:
    rng = np.random.default_rng(1)
    for number in range(4):
        rows = size // 4
        types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, rows), pa.int32()), ["a", "b", "c"])
        columns = {
            "type": types.cast(pa.string()),
            "time": pa.array(rng.permutation(rows) * 4 + number),
            "id": pa.array(np.arange(rows) * 4 + number),
            "k": pa.array(rng.integers(0, keys, rows)),
            "v": pa.array(rng.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def counted(batches: Iterable[Any]) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


def counting(frame: Any) -> Any:
    """The job of detect_batch up to Python, where rows are only counted."""
    from pyspark.sql import functions as F

    rules = loads(RULES)
    source = Source(frame)
    layout = pushdown.layout(source, rules.plans())
    spread = F.xxhash64(*pushdown.key_columns(source, ("k",))).alias("spread")
    rows = source.frame.filter(pushdown.wanted(source, rules.plans(), ("k",))).select(*source.wire_columns(layout), spread)
    return rows.repartition("spread").drop("spread").mapInArrow(counted, "rows bigint")


def seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = job()
    return time.perf_counter() - start, answer


def main(size: int = 5_000_000, keys: int = 10_000) -> None:
    spark = on_spark.session("benchmark", spark__driver__memory="4g")
    with tempfile.TemporaryDirectory() as name:
        write_events(Path(name), size, keys)
        frame = spark.read.parquet(name)
        detecting = on_spark.detect(loads(RULES), frame)
        jobs: dict[str, Callable[[], Any]] = {
            "count": lambda: counting(frame).groupBy().sum("rows").first()[0],
            "detect": lambda: detecting.groupBy().count().first()[0],
        }
        best: dict[str, float] = {}
        for turn in range(ROUNDS + 1):  # the first round warms up
            for label, job in jobs.items():
                took, answer = seconds(job)
                print(f"{label:8} {took:6.2f} s  {size / took:12,.0f} events/s  {answer:,}", flush=True)
                best[label] = min(took, best.get(label, took)) if turn else float("inf")
        print(f"speed of detection relative to counting: {best['count'] / best['detect']:.2f}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
