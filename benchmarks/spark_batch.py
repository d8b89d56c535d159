"""What detection costs in a Spark batch job: the same job with and without it, in one run.

    python benchmarks/spark_batch.py [events] [keys]

Both jobs read the same Parquet files, filter, project and shuffle by key in the same way. One counts the rows that reach Python
and ends; the other detects three-step monitors: one, or three whose keys differ. These are also detected apart, each in a scan
and a shuffle of its own. Only ratios mean anything on a shared machine."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide import spark as on_spark
from coincide.engines.spark.frame import Source
from coincide.engines.spark.groups import groups
from coincide.engines.spark.tags import Tagging
from coincide.rulebook import loads

ONE = "monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }"
OTHERS = (
    "monitor n by l = repeat { push(y, v: v) { sequential { a, b, a } } }",
    "monitor o by l, k = repeat { push(z, v: v) { sequential { b, c, a } } }",
)
THREE = "\n".join((ONE, *OTHERS))
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
            "l": pa.array(rng.integers(0, keys, rows)),
            "v": pa.array(rng.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def counted(batches: Iterable[Any]) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


def counting(frame: Any, text: str) -> Any:
    """The job of detect_batch up to Python, where rows are only counted."""
    rules = loads(text)
    tagging = Tagging(Source(frame), [(group, group.plans(rules)) for group in groups(rules)])
    return tagging.exchanged().mapInArrow(counted, "rows bigint").groupBy().sum("rows")


def detecting(frame: Any, *texts: str) -> Any:
    return (
        reduce(lambda a, b: a.unionAll(b), (on_spark.detect(loads(text), frame).select("type") for text in texts))
        .groupBy()
        .count()
    )


def seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = job()
    return time.perf_counter() - start, answer


def main(size: int = 5_000_000, keys: int = 10_000) -> None:
    spark = on_spark.session("benchmark", spark__driver__memory="4g")
    with tempfile.TemporaryDirectory() as name:
        write_events(Path(name), size, keys)
        frame = spark.read.parquet(name)
        jobs = {
            "count": counting(frame, ONE),
            "detect": detecting(frame, ONE),
            "count three": counting(frame, THREE),
            "detect three": detecting(frame, THREE),
            "three apart": detecting(frame, ONE, *OTHERS),
        }
        best: dict[str, float] = {}
        for turn in range(ROUNDS + 1):  # the first round warms up
            for label, job in jobs.items():
                took, answer = seconds(lambda job=job: job.first()[0])
                print(f"{label:12} {took:6.2f} s  {size / took:12,.0f} events/s  {answer:,}", flush=True)
                best[label] = min(took, best.get(label, took)) if turn else float("inf")
        print(f"speed of detection relative to counting: {best['count'] / best['detect']:.2f}")
        print(f"the same of three rules of three keys: {best['count three'] / best['detect three']:.2f}")
        print(f"speed of three rules together relative to three apart: {best['three apart'] / best['detect three']:.2f}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
