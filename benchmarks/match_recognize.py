"""MATCH_RECOGNIZE over tables: V-shapes in prices against Polars, and an ambiguous pattern.

    python -m benchmarks.match_recognize [ROWS] [SYMBOLS]

The Polars program finds the same V-shapes with window functions, which it can because each row is either down or up: runs of one
direction are numbered, and a V is a run down with the run up behind it. Both answers are compared before times are shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import coincide

V_SHAPE = """PARTITION BY sym ORDER BY t
    MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom, LAST(price) AS end_price
    AFTER MATCH SKIP TO LAST UP
    PATTERN (START DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)"""


def ticks(rows: int, symbols: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "sym": rng.integers(0, symbols, rows).astype(np.int32),
            "t": np.arange(rows),
            "price": np.round(rng.normal(100, 5, rows), 2),
        }
    )


def by_polars(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs of rows that go the same way; a V begins with the row before a run down that a run up follows."""
    change = pl.col("price").diff().over("sym", order_by="t").sign().cast(pl.Int8)
    before = pl.col("price").shift().over("sym", order_by="t")
    marked = frame.with_columns(way=change, before=before)
    runs = marked.with_columns(run=pl.col("way").ne_missing(pl.col("way").shift()).cum_sum().over("sym", order_by="t"))
    each = runs.group_by("sym", "run", maintain_order=True).agg(
        pl.col("way").first(), top=pl.col("before").first(), last=pl.col("price").last(), t=pl.col("t").first()
    )
    following = [pl.col(name).shift(-1).over("sym", order_by="t").alias(f"next_{name}") for name in ("way", "last")]
    found = each.with_columns(following).filter((pl.col("way") == -1) & (pl.col("next_way") == 1))
    return found.select("sym", "top", bottom="last", end_price="next_last")


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    run()
    start = time.perf_counter()
    made = run()
    return made, time.perf_counter() - start


def main(rows: int = 1_000_000, symbols: int = 10_000) -> None:
    table = ticks(rows, symbols)
    ours, own = timed(lambda: coincide.match_recognize(table, V_SHAPE))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    theirs, other = timed(lambda: by_polars(frame))
    mine = pl.from_arrow(ours)
    assert isinstance(mine, pl.DataFrame)
    order = ["sym", "top", "bottom", "end_price"]
    assert mine.sort(order).equals(theirs.sort(order).select(mine.columns)), (len(mine), len(theirs))
    print(f"{rows:,} rows, {symbols:,} symbols, {len(mine):,} V-shapes")
    print(f"  coincide {own:6.2f} s, {rows / own / 1e6:5.2f} M rows/s")
    print(f"  Polars   {other:6.2f} s, {rows / other / 1e6:5.2f} M rows/s (window functions)")
    equal = pa.table({"t": np.arange(5000), "v": np.ones(5000)})
    ambiguous = "ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+ B+) DEFINE A AS v = 1, B AS v = 2"
    _, took = timed(lambda: coincide.match_recognize(equal, ambiguous))
    print(f"  A+ B+ over 5,000 equal rows, B never true: {took:.3f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
