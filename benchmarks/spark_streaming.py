"""How the division of state into pages, and its size, tell on a streaming query (docs/decisions/0003).

    python benchmarks/spark_streaming.py [rows per micro-batch] [micro-batches] [keys] [pages ...]

Events come in order, one file a micro-batch; the delay is a tenth of a micro-batch. Figures are of the micro-batches after the
first, which starts workers and compiles. With three equally likely steps, two keys in three have a state to keep."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide import spark as on_spark
from coincide.rulebook import loads

RULES = "monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }"


def write_events(folder: Path, rows: int, files: int, keys: int) -> None:
    rng = np.random.default_rng(1)
    for number in range(files):
        types = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, rows), pa.int32()), ["a", "b", "c"])
        first = number * rows
        columns = {
            "type": types.cast(pa.string()),
            "time": pa.array(np.arange(first, first + rows)),
            "id": pa.array(np.arange(first, first + rows)),
            "k": pa.array(_keys(rng, rows, keys, first)),
            "v": pa.array(rng.random(rows)),
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1000 + number, 1000 + number))


def _keys(rng: Any, rows: int, keys: int, first: int) -> Any:
    """Each key once before any comes again, so that all are open early; then at random."""
    return np.arange(first, first + rows) if first + rows <= keys else rng.integers(0, keys, rows)


def run(spark: Any, folder: Path, rows: int, pages: int) -> None:
    frame = spark.readStream.schema("type string, time bigint, id bigint, k bigint, v double")
    frame = frame.option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
    found = on_spark.detect(loads(RULES), frame, delay=f"{rows // 10} ms", pages=pages)
    checkpoint = folder / f"checkpoint-{pages}"
    query = found.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p.numInputRows]
    took = [p.durationMs["triggerExecution"] / 1000 for p in progress]
    size = sum(f.stat().st_size for f in (checkpoint / "state").rglob("*") if f.is_file())
    print(f"{pages:5} pages  {' '.join(f'{t:.1f}' for t in took)} s  median {median(took[1:]):.2f} s", end="  ")
    print(f"{rows / median(took[1:]):10,.0f} events/s  {size / 1e6:,.1f} MB of state files", flush=True)


def main(rows: int = 250_000, files: int = 6, keys: int = 10_000, *pages: int) -> None:
    spark = on_spark.session("benchmark", spark__driver__memory="4g")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "events").mkdir()
        write_events(Path(name) / "events", rows, files, keys)
        for count in pages or (8,):
            run(spark, Path(name), rows, count)
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
