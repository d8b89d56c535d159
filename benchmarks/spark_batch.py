"""What detection costs in a Spark batch job: the same job with and without it, in one run.

    python -m benchmarks.spark_batch [events] [keys]

Both jobs read the same Parquet files, filter, project and shuffle by key in the same way. One counts the rows that reach Python
and ends; the other detects: three-step monitors, one, or three whose keys differ (these also apart, each in a scan and a shuffle
of its own); one by texts, with timestamps; and a rule with timers (workload K: every A, the next B, the next C,
within 10 seconds), which Spark SQL's window functions can say, too. Only ratios mean anything on a shared machine; those of CPU
seconds, of Spark and all its workers, the more."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import family_seconds
from coincide import spark as on_spark
from coincide.engines.spark.frame import Source
from coincide.engines.spark.groups import groups
from coincide.engines.spark.tags import Tagging
from coincide.rulebook import Rulebook, loads

ONE = "monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }"
OTHERS = (
    "monitor n by l = repeat { push(y, v: v) { sequential { a, b, a } } }",
    "monitor o by l, k = repeat { push(z, v: v) { sequential { b, c, a } } }",
)
THREE = "\n".join((ONE, *OTHERS))
TEXTS = ONE.replace("by k", "by name")
TIMED = "detect K = ([a(k = ?k)], [b(k = ?k)] [c(k = ?k)]) T = 10s"
FOLLOWING = "OVER (PARTITION BY k ORDER BY time DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
WINDOWS = f"""WITH with_c AS (SELECT *, last(IF(type = 'c', time, NULL), true) {FOLLOWING} AS c FROM events),
    with_b AS (SELECT *, last(IF(type = 'b', struct(time, c), NULL), true) {FOLLOWING} AS b FROM with_c)
    SELECT count(*) FROM with_b WHERE type = 'a' AND b.c - time <= 10000"""
ROUNDS = 3


def write_events(folder: Path, size: int, keys: int) -> None:
    rng = np.random.default_rng(1)
    for number in range(4):
        rows = size // 4
        types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, rows), pa.int32()), ["a", "b", "c"])
        time, key = rng.permutation(rows) * 4 + number, rng.integers(0, keys, rows)
        names = pa.DictionaryArray.from_arrays(pa.array(key, pa.int32()), [f"customer {key}" for key in range(keys)])
        columns = {
            "type": types.cast(pa.string()),
            "time": pa.array(time),
            "at": pa.array(1_000 * time, pa.timestamp("us", "UTC")),
            "id": pa.array(np.arange(rows) * 4 + number),
            "k": pa.array(key),
            "l": pa.array(rng.integers(0, keys, rows)),
            "name": names.cast(pa.string()),
            "v": pa.array(rng.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def counted(batches: Iterable[Any]) -> Iterator[Any]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"rows": pa.array([rows], pa.int64())})


def counting(frame: Any, rules: Rulebook) -> Any:
    """The job of detect_batch up to Python, where rows are only counted."""
    tagging = Tagging(Source(frame), [(group, group.plans(rules)) for group in groups(rules)])
    return tagging.exchanged().mapInArrow(counted, "rows bigint").groupBy().sum("rows")


def detecting(frame: Any, *rules: Rulebook) -> Any:
    frames = (on_spark.detect(some, frame).select("type") for some in rules)
    return reduce(lambda a, b: a.unionAll(b), frames).groupBy().count()


def measured(jobs: dict[str, Any], size: int) -> dict[str, tuple[float, float]]:
    """The least seconds, of the wall and of CPU, of each."""
    best: dict[str, tuple[float, float]] = {}
    for turn in range(ROUNDS + 1):  # the first round warms up
        for label, job in jobs.items():
            wall, cpu = time.perf_counter(), family_seconds()
            answer = job.first()[0]
            took = time.perf_counter() - wall, family_seconds() - cpu
            print(f"{label:12} {took[0]:6.2f} s {took[1]:6.2f} s of CPU {size / took[0]:12,.0f} events/s  {answer:,}", flush=True)
            if turn:
                best[label] = min(took[0], best.get(label, took)[0]), min(took[1], best.get(label, took)[1])
    return best


def main(size: int = 5_000_000, keys: int = 10_000) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers need not find it
    spark = on_spark.session("benchmark", spark__driver__memory="4g")
    with tempfile.TemporaryDirectory() as name:
        write_events(Path(name), size, keys)
        whole = spark.read.parquet(name)
        whole.createOrReplaceTempView("events")
        frame, texts = whole.drop("at", "name"), whole.drop("time").withColumnRenamed("at", "time")
        one, three, by_name, timed = loads(ONE), loads(THREE), loads(TEXTS), loads(TIMED, "ce")
        best = measured(
            {
                "count": counting(frame, one),
                "detect": detecting(frame, one),
                "count texts": counting(texts, by_name),
                "detect texts": detecting(texts, by_name),
                "count three": counting(frame, three),
                "detect three": detecting(frame, three),
                "three apart": detecting(frame, one, *map(loads, OTHERS)),
                "count timed": counting(frame, timed),
                "detect timed": detecting(frame, timed),
                "windows": spark.sql(WINDOWS),
            },
            size,
        )
        for what, slow, fast in (
            ("detection relative to counting", "detect", "count"),
            ("the same with texts as keys and timestamps", "detect texts", "count texts"),
            ("the same of three rules of three keys", "detect three", "count three"),
            ("the same of a rule with timers", "detect timed", "count timed"),
            ("three rules together relative to three apart", "detect three", "three apart"),
            ("the rule with timers relative to window functions", "detect timed", "windows"),
        ):
            wall, cpu = (best[fast][n] / best[slow][n] for n in (0, 1))
            print(f"speed of {what}: {wall:.2f}; by CPU {cpu:.2f}")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
