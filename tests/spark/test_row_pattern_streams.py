"""MATCH_RECOGNIZE over streaming DataFrames: what comes bit by bit, and out of order, gives what a whole table gives."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coincide
from coincide.errors import RuleError
from coincide.spark import match_recognize, match_recognize_to_end, sql

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=UTC)
SPOT = pa.struct([("x", pa.int64())])
SCHEMA = pa.schema([("sym", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("spot", SPOT)])
CLAUSE = """PARTITION BY sym ORDER BY ts, n
    MEASURES FIRST(ts) AS since, LAST(spot) AS there, SUM(n) AS total, TIMED_OUT() AS late, MATCH_NUMBER() AS number
    ONE ROW PER MATCH WITH TIMED OUT MATCHES
    PATTERN (START DOWN+ UP) WITHIN 6 seconds
    DEFINE DOWN AS n < PREV(n), UP AS UP.n > FIRST(n) AND weekday(UP.ts) < 7"""


def ticks(size: int = 240) -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [
        {"sym": rng.choice(["a", "b", None]), "ts": START + timedelta(seconds=n // 2), "n": rng.randrange(9), "spot": {"x": n}}
        for n in range(size)
    ]


def written(folder: Path, parts: list[list[dict[str, Any]]]) -> str:
    folder.mkdir(exist_ok=True)
    before = len(list(folder.iterdir()))
    for number, part in enumerate(parts, before):
        file = folder / f"{number:03}.parquet"
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), file)
        os.utime(file, (1000 + number, 1000 + number))  # they are read by their times
    return str(folder)


def stream(spark: Any, folder: str) -> Any:
    read = spark.readStream.schema(spark.read.parquet(folder).schema).option("maxFilesPerTrigger", 1).parquet(folder)
    return read.withWatermark("ts", "5 seconds")


def expected(rows: list[dict[str, Any]]) -> list[str]:
    """Over the whole table; `weekday` is Spark's, and always true there."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    return shown(coincide.match_recognize(table, CLAUSE.replace(" AND weekday(UP.ts) < 7", "")).to_pylist())


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([v.astimezone(UTC) if isinstance(v, datetime) else v for v in row.values()]) for row in rows)


@pytest.fixture
def shuffled(spark: Any) -> Iterator[list[list[dict[str, Any]]]]:
    """Rows a few seconds out of order, in three files."""
    kept = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rng = random.Random(1)
    rows = sorted(ticks(), key=lambda row: row["ts"] + timedelta(seconds=rng.randrange(5)))
    yield [rows[:90], rows[90:150], rows[150:]]
    spark.conf.set("spark.sql.shuffle.partitions", kept)


def test_a_stream_gives_what_a_table_gives(spark: Any, shuffled: Any, tmp_path: Path) -> None:
    """Over a restart from the checkpoint; the end is open while it runs and closed at last."""
    made: list[dict[str, Any]] = []

    def write(frame: Any, number: int) -> None:
        made.extend(row.asDict(recursive=True) for row in frame.collect())

    folder, checkpoint = tmp_path / "rows", str(tmp_path / "checkpoint")
    path = written(folder, shuffled[:1])
    match_recognize_to_end(stream(spark, path), CLAUSE, write, checkpoint=checkpoint, end="open")
    whole = expected(ticks())
    assert 0 < len(made) < len(whole)
    assert set(shown(made)) <= set(whole)
    written(folder, shuffled[1:])
    match_recognize_to_end(stream(spark, path), CLAUSE, write, checkpoint=checkpoint)
    assert shown(made) == whole


@pytest.mark.usefixtures("compiling")
def test_sql_over_a_stream(spark: Any, shuffled: Any, tmp_path: Path) -> None:
    """Late rows are dropped: here half a minute too late."""
    late = [{"sym": "a", "ts": START, "n": 100, "spot": None}]
    path = written(tmp_path / "rows", [shuffled[0] + shuffled[1], shuffled[2] + late])
    stream(spark, path).createOrReplaceTempView("ticks_stream")
    clause = CLAUSE.replace(" WITH TIMED OUT MATCHES", "").replace("TIMED_OUT() AS late, ", "")
    found = sql(spark, f"SELECT sym, total * 2 AS twice FROM ticks_stream MATCH_RECOGNIZE ({clause}) AS v WHERE total > 0")
    query = found.writeStream.format("memory").queryName("twice").trigger(availableNow=True).start()
    query.awaitTermination()
    plain = clause.replace(" AND weekday(UP.ts) < 7", "")
    rows = pa.Table.from_pylist([row for row in ticks() if row["ts"] < START + timedelta(seconds=114)], SCHEMA)
    whole = coincide.match_recognize(rows, plain).to_pylist()
    got = sorted(map(repr, (tuple(row) for row in spark.table("twice").collect())))
    assert 0 < len(got) >= len(whole) - 6
    assert set(got) <= {
        repr((row["sym"], row["total"] * 2))
        for row in coincide.match_recognize(pa.Table.from_pylist(ticks(), SCHEMA), plain).to_pylist()
    }
    counted = [dict(row.asDict()) for p in query.recentProgress for name, row in p.observedMetrics.items() if "match" in name]
    assert sum(row.get("late", 0) for row in counted) == 1
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("coincide_matches")]


def test_what_a_stream_refuses(spark: Any, shuffled: Any, tmp_path: Path) -> None:
    frame = stream(spark, written(tmp_path / "rows", shuffled[:1]))
    by_other = (
        CLAUSE.replace("ORDER BY ts, n", "ORDER BY n").replace(" WITHIN 6 seconds", "").replace("WITH TIMED OUT MATCHES", "")
    )
    for clause in (by_other, by_other.replace("ORDER BY n", "ORDER BY ts DESC")):
        with pytest.raises(RuleError, match="streaming needs ORDER BY the column of the watermark, ascending"):
            match_recognize(frame, clause)
    with pytest.raises(RuleError, match="unknown function 'weekdy'"):
        match_recognize(frame, CLAUSE.replace("weekday", "weekdy"))
    with pytest.raises(RuleError, match="'weekday' is computed for each row"):
        match_recognize(frame, CLAUSE.replace("weekday(UP.ts)", "weekday(LAST(ts))"))
    frame.createOrReplaceTempView("ticks_stream")
    clause = "ORDER BY ts MEASURES LAST(ts) AS ts, 1 AS n PATTERN (A) DEFINE A AS true"
    inner = f"(SELECT * FROM ticks_stream MATCH_RECOGNIZE ({clause}))"
    by_n = "MATCH_RECOGNIZE (ORDER BY n MEASURES 1 AS x PATTERN (A) DEFINE A AS true)"
    with pytest.raises(RuleError, match=r"query\.sql:2:28: error: on a stream matches are ordered by the time of"):
        sql(spark, f"SELECT * FROM {inner}\n {by_n}")
    with pytest.raises(RuleError, match="this cannot stand between two MATCH_RECOGNIZE"):
        sql(spark, f"WITH m AS {inner} SELECT * FROM (SELECT max(ts) AS ts FROM m) {by_n}")


CHAIN = """
    WITH falls AS (SELECT sym, ts, total FROM ticks_stream MATCH_RECOGNIZE (
                     PARTITION BY sym ORDER BY ts, n MEASURES LAST(ts) AS ts, SUM(n) AS total
                     PATTERN (START DOWN+) WITHIN 6 seconds DEFINE DOWN AS n < PREV(n)) AS f WHERE total > 3)
    SELECT since, bottom + 1 AS one_more
    FROM (SELECT * FROM falls WHERE total < 20) AS f
    MATCH_RECOGNIZE (ORDER BY f.ts, f.total MEASURES FIRST(ts) AS since, MIN(total) AS bottom
                     AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN 9 seconds DEFINE B AS total > PREV(total)) AS pairs
    WHERE bottom > 4"""


@pytest.mark.usefixtures("compiling")
def test_sql_over_the_matches_of_a_stream(spark: Any, shuffled: Any, tmp_path: Path) -> None:
    """What is decided is what the same text gives for a table."""
    path = written(tmp_path / "rows", [shuffled[0] + shuffled[1], shuffled[2]])
    spark.read.parquet(path).createOrReplaceTempView("ticks_stream")
    whole = shown([row.asDict() for row in sql(spark, CHAIN).collect()])
    stream(spark, path).createOrReplaceTempView("ticks_stream")
    with pytest.warns(UserWarning, match="'pairs' reads 'f': on a stream both run in one task"):
        found = sql(spark, CHAIN)
    query = found.writeStream.format("memory").queryName("pairs").trigger(availableNow=True).start()
    query.awaitTermination()
    made = shown([row.asDict() for row in spark.table("pairs").collect()])
    assert len(made) > len(whole) * 2 // 3 > 3
    assert set(made) <= set(whole)
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("coincide_matches")]
