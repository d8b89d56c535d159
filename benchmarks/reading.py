"""How fast are events read, beside just reading the same columns with Polars or pyarrow? And what does a whole run take?

Workload K as Parquet, JSON Lines and CSV; each twice: with the four columns that its rules use, and with six more."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq

from benchmarks.measure import show
from benchmarks.peers.processor import processor_seconds
from benchmarks.peers.questions import OPERA
from benchmarks.peers.workload import stream
from coincide.adapters.order import in_total_order
from coincide.adapters.read import open_events

EVENTS, RUNS = 1_000_000, 5
USED = ["type", "time", "id", "k"]
AIMS = {"parquet": 0.7, "jsonl": 0.5, "csv": 0.5}
Seconds = tuple[float, float]
"""Of the processor, and by the clock."""


def table(events: int, wide: bool) -> pa.Table:
    made = stream(events).events.select(USED)
    columns = dict(zip(USED, made.columns, strict=True))
    random = np.random.default_rng(2)
    for number in range(3 if wide else 0):
        columns[f"v{number}"] = pa.array(np.round(random.random(events) * 100, 3))
        columns[f"text{number}"] = pa.array([f"text {n}" for n in random.integers(0, 50_000, events).tolist()])
    return pa.table(columns)


USED_OF_CSV = pcsv.ConvertOptions(include_columns=USED)
PLAIN: dict[str, list[Callable[[Path], object]]] = {
    "parquet": [partial(pl.read_parquet, columns=USED), partial(pq.read_table, columns=USED)],
    "csv": [partial(pl.read_csv, columns=USED), lambda path: pcsv.read_csv(path, convert_options=USED_OF_CSV)],
    "jsonl": [lambda path: pl.read_ndjson(path).select(USED), lambda path: pj.read_json(path).select(USED)],
}


def write(rows: pa.Table, folder: Path) -> None:
    pq.write_table(rows, folder / "k.parquet")
    pcsv.write_csv(rows, folder / "k.csv", pcsv.WriteOptions(quoting_style="none"))
    pl.from_arrow(rows).write_ndjson(folder / "k.jsonl")  # type: ignore[union-attr]


def read(path: Path) -> int:
    """As `coincide run` does it: the attributes that rules use, in total order."""
    return sum(map(len, in_total_order(open_events(path, attributes=frozenset({"k"})))))


def least(action: Callable[[], object]) -> Seconds:
    times = []
    for _ in range(RUNS):
        used, begun = time.process_time(), time.perf_counter()
        action()
        times.append((time.process_time() - used, time.perf_counter() - begun))
    return min(cpu for cpu, _ in times), min(wall for _, wall in times)


def whole_run(path: Path, folder: Path) -> float:
    """Processor seconds, start-up and all."""
    (folder / "k.ce").write_text(OPERA)
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "run", str(folder / "k.ce")]
    return min(processor_seconds([*command, "--events", str(path), "--out", str(folder / "out.jsonl")]) for _ in range(2))


def main(events: int = EVENTS) -> None:
    for wide in (False, True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(table(events, wide), folder)
            for ending, aim in AIMS.items():
                path = folder / f"k.{ending}"
                plain = [least(partial(reader, path)) for reader in PLAIN[ending]]
                cpu, wall = (min(times) for times in zip(*plain, strict=True))
                ours = least(partial(read, path))
                figures = {
                    "just read, CPU s: Polars, pyarrow": f"{plain[0][0]:.3f}  {plain[1][0]:.3f}",
                    "events of coincide, CPU s": f"{ours[0]:.3f}",
                    "share of the speed of the faster, by CPU": f"{cpu / ours[0]:.2f}",
                    "share of the speed of the faster, by the clock": f"{wall / ours[1]:.2f}",
                    "K from file to file, CPU s": f"{whole_run(path, folder):.2f}",
                }
                show(f"{events:,} events, {10 if wide else 4} columns, {ending}", figures, f"{aim} of the speed")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
