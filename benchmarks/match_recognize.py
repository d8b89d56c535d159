"""MATCH_RECOGNIZE: V-shapes in prices against Polars and plain PySpark, an ambiguous pattern, the state of a stream.

    python -m benchmarks.match_recognize [ROWS] [SYMBOLS] [ROWS ON SPARK]

The programs of Polars and PySpark find the same V-shapes with window functions, which they can because each row is either down or
up: runs of one direction are numbered, and a V is a run down with the run up behind it. A program for applyInPandas goes over the
rows of each symbol. All answers are compared before times are shown. Without a third number Spark is left out.

Workload K as MATCH_RECOGNIZE against Flink's: python -m benchmarks.peers"""

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
DEEP = """PARTITION BY sym ORDER BY t MEASURES FIRST(price) AS top, LAST(price) AS end_price
    PATTERN (START DOWN+ UP+? HIGH)
    DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price), HIGH AS price > START.price"""


WHOLE = """ORDER BY t MEASURES MATCH_NUMBER() AS number, FIRST(price) AS top, LAST(price) AS bottom
    PATTERN (START DOWN{2,}) WITHIN 1 s DEFINE DOWN AS price < PREV(price)"""


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


def by_windows(frame: Any) -> Any:
    """The same in PySpark."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = Window.partitionBy("sym").orderBy("t")
    before = F.lag("price").over(rows)
    marked = frame.withColumn("before", before).withColumn("way", F.signum(F.col("price") - F.col("before")))
    changed = F.when(F.col("way").eqNullSafe(F.lag("way").over(rows)), 0).otherwise(1)
    runs = marked.withColumn("changed", changed).withColumn("run", F.sum("changed").over(rows))
    each = runs.groupBy("sym", "run").agg(
        F.first("way").alias("way"), F.min_by("before", "t").alias("top"), F.max_by("price", "t").alias("last")
    )
    order = Window.partitionBy("sym").orderBy("run")
    following = each.withColumn("next_way", F.lead("way").over(order)).withColumn("end_price", F.lead("last").over(order))
    found = following.filter("way = -1 AND next_way = 1")
    return found.select("sym", "top", F.col("last").alias("bottom"), "end_price")


def shapes_of(rows: Any) -> Any:
    """The rows of one symbol, for applyInPandas."""
    import pandas as pd

    rows = rows.sort_values("t")
    prices, found, at = rows["price"].to_numpy(), [], 0
    while at < len(prices) - 2:
        low = at
        while low + 1 < len(prices) and prices[low + 1] < prices[low]:
            low += 1
        high = low
        while high + 1 < len(prices) and prices[high + 1] > prices[high]:
            high += 1
        if low > at and high > low:
            found.append((rows["sym"].iloc[0], prices[at], prices[low], prices[high]))
        at = high if low > at and high > low else at + 1
    return pd.DataFrame(found, columns=["sym", "top", "bottom", "end_price"])


def on_spark(table: pa.Table, found: int) -> None:
    import tempfile

    from pyarrow import parquet

    from coincide.spark import match_recognize, session

    spark = session(spark__driver__memory="3g", spark__sql__shuffle__partitions="8")
    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(table, f"{folder}/ticks.parquet")
        frame = spark.read.parquet(f"{folder}/ticks.parquet")
        schema = "sym int, top double, bottom double, end_price double"
        ways = {
            "coincide, Spark": lambda: match_recognize(frame, V_SHAPE),
            "window functions": lambda: by_windows(frame),
            "applyInPandas": lambda: frame.groupBy("sym").applyInPandas(shapes_of, schema),
        }
        shapes = set()
        for name, way in ways.items():
            made, took = timed(lambda way=way: summary(way()))  # type: ignore[misc]
            shapes.add(made)
            assert len(shapes) == 1, (name, shapes)
            assert made[0] == found, (name, made, found)
            print(f"  {name:<17} {took:6.2f} s, {len(table) / took / 1e6:5.2f} M rows/s")
        answers = set()
        for name, ranges in (("one task", 1), ("8 ranges of time", 8)):
            made, took = timed(lambda ranges=ranges: summary(match_recognize(frame, WHOLE, ranges=ranges)))  # type: ignore[misc]
            answers.add(made)
            print(f"  {name:<17} {took:6.2f} s, {len(table) / took / 1e6:5.2f} M rows/s: no PARTITION BY, {made[0]:,} falls")
        assert len(answers) == 1, answers
    spark.stop()


def summary(frame: Any) -> tuple[Any, ...]:
    return tuple(frame.selectExpr("count(*)", "sum(hash(*))").collect()[0])


def kept_by_stream(table: pa.Table) -> tuple[int, int, int]:
    """Partitions, rows and bytes that a stream keeps when it has taken all rows, with an open end."""
    from coincide.lang.matchrecognize.parse import parse_clause
    from coincide.source import SourceText
    from coincide.tables.query import TableQuery
    from coincide.tables.scan import TableScan

    scan = TableScan(TableQuery(parse_clause(SourceText("clause", V_SHAPE)), table.schema))
    state = scan.initial()
    scan.advance(state, table)
    return len(state.keys), len(state.rows), len(scan.encode(state))


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    run()
    start = time.perf_counter()
    made = run()
    return made, time.perf_counter() - start


def main(rows: int = 1_000_000, symbols: int = 10_000, spark_rows: int = 0) -> None:
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
    print(f"  coincide          {own:6.2f} s, {rows / own / 1e6:5.2f} M rows/s")
    print(f"  Polars            {other:6.2f} s, {rows / other / 1e6:5.2f} M rows/s (window functions)")
    deep, took = timed(lambda: coincide.match_recognize(table, DEEP))
    print(
        f"  coincide          {took:6.2f} s, {rows / took / 1e6:5.2f} M rows/s: {len(deep):,} come back above their first price"
    )
    partitions, kept, size = kept_by_stream(table)
    print(
        f"  a stream keeps {kept / partitions:.1f} rows, {size / partitions:.0f} bytes for each of {partitions:,} open partitions"
    )
    equal = pa.table({"t": np.arange(5000), "v": np.ones(5000)})
    ambiguous = "ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+ B+) DEFINE A AS v = 1, B AS v = 2"
    _, took = timed(lambda: coincide.match_recognize(equal, ambiguous))
    print(f"  A+ B+ over 5,000 equal rows, B never true: {took:.3f} s")
    if spark_rows:
        part = table.slice(0, spark_rows)
        print(f"{len(part):,} rows on Spark")
        on_spark(part, len(coincide.match_recognize(part, V_SHAPE)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
