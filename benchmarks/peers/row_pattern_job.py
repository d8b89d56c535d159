"""Workload K as MATCH_RECOGNIZE over a plain table: python row_pattern_job.py table|spark EVENTS OUT"""

from __future__ import annotations

import sys

CLAUSE = """
    PARTITION BY k ORDER BY time
    MEASURES A.id AS a, B.id AS b, C.id AS c
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C) WITHIN 10 seconds
    DEFINE A AS A.type = 't0', X AS X.type <> 't1', B AS B.type = 't1', Y AS Y.type <> 't2', C AS C.type = 't2'
"""


def by_table(events: str, out: str) -> None:
    from pyarrow import csv

    import coincide

    query = f"SELECT a, b, c FROM (SELECT * FROM events WHERE type IN ('t0', 't1', 't2')) MATCH_RECOGNIZE ({CLAUSE}) AS m"
    csv.write_csv(coincide.sql(query, events=events), out, csv.WriteOptions(include_header=False))


def by_spark(events: str, out: str) -> None:
    from coincide.spark import match_recognize, session

    spark = session(master="local[1]")
    rows = spark.read.csv(events, header=True, schema="type string, time long, id long, k string")
    wanted = rows.filter("type IN ('t0', 't1', 't2')")
    match_recognize(wanted, CLAUSE).select("a", "b", "c").write.csv(out)


if __name__ == "__main__":
    {"table": by_table, "spark": by_spark}[sys.argv[1]](*sys.argv[2:])
