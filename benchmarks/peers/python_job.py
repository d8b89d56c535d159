"""What one would write instead, over the same file: python python_job.py loop|polars QUESTION EVENTS OUT

And workload K as MATCH_RECOGNIZE over a plain table: table|spark."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.peers.questions import CLAUSE, QUESTIONS, THREE, Event


def by_loop(question: str, events: str, out: str) -> None:
    with open(events, encoding="utf-8") as source, open(out, "w", encoding="utf-8") as sink:
        csv.writer(sink).writerows(QUESTIONS[question].loop(read(csv.reader(source))))


def read(rows: Iterator[list[str]]) -> Iterator[Event]:
    next(rows)
    for kind, time, number, key, value in rows:
        yield kind, int(time), int(number), key, float(value)


def by_polars(question: str, events: str, out: str) -> None:
    import polars as pl

    QUESTIONS[question].polars(pl.read_csv(events)).write_csv(out, include_header=False)


def by_table(question: str, events: str, out: str) -> None:
    from pyarrow import csv as columns

    import coincide

    query = f"SELECT a, b, c FROM {THREE} MATCH_RECOGNIZE ({CLAUSE}) AS m"
    columns.write_csv(coincide.sql(query, events=events), out, columns.WriteOptions(include_header=False))


def by_spark(question: str, events: str, out: str) -> None:
    from coincide.spark import match_recognize, session

    spark = session(master="local[1]")
    rows = spark.read.csv(events, header=True, schema="type string, time long, id long, k string, v long")
    wanted = rows.filter("type IN ('t0', 't1', 't2')")
    match_recognize(wanted, CLAUSE).select("a", "b", "c").coalesce(1).write.csv(out)


if __name__ == "__main__":
    {"loop": by_loop, "polars": by_polars, "table": by_table, "spark": by_spark}[sys.argv[1]](*sys.argv[2:])
