"""Rows that row patterns cannot take are shown on demand, beside what Python functions of the user's make of the others."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coincide
from coincide.engines.spark.progress import progress_line
from coincide.spark import match_recognize, match_recognize_to_end, split

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("sym", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("reason", pa.string())])
ROWS = [
    {"sym": "ab"[n % 2], "ts": None if n % 7 == 0 else START + timedelta(seconds=n), "n": n * 5 % 7, "reason": str(n)}
    for n in range(120)
]
FUTURE = {"sym": "a", "ts": START + timedelta(days=900), "n": 6, "reason": "far"}
CLAUSE = """PARTITION BY sym ORDER BY ts
    MEASURES {f}(LOW.n) AS low, LAST({f}(HIGH.n)) AS high, FIRST(ts) AS since, COUNT(*) AS size
    PATTERN (LOW+ HIGH) WITHIN 9 seconds DEFINE LOW AS {f}(LOW.n) < 8, HIGH AS {f}(HIGH.n) >= 8"""


@pytest.fixture(scope="module")
def python_functions(spark: Any) -> None:
    from pyspark.sql import functions as F

    def twice(number: int | None) -> int | None:
        return None if number is None else number * 2

    spark.udf.register("twice", twice, "long")
    spark.udf.register("twice_in_bulk", F.pandas_udf(lambda numbers: numbers * 2, "long"))


def expected(rows: list[dict[str, Any]], clause: str = CLAUSE) -> list[str]:
    table = pa.Table.from_pylist(rows, SCHEMA)
    return shown(coincide.match_recognize(table, clause.format(f="2 *")).to_pylist())


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([v.astimezone(UTC) if isinstance(v, datetime) else v for v in row.values()]) for row in rows)


def records(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]


def of_no_time(rejected: list[dict[str, Any]]) -> list[str]:
    assert {row["reason_"] for row in rejected} <= {"missing ts"}
    return sorted(row["reason"] for row in rejected)


WITHOUT_TIME = sorted(row["reason"] for row in ROWS if row["ts"] is None)


@pytest.mark.parametrize("function", ["twice", "twice_in_bulk"])
def test_batch(spark: Any, python_functions: None, tmp_path: Path, function: str) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path))
    found, rejected = split(match_recognize(frame, CLAUSE.format(f=function), rejects=True))
    assert shown(records(found)) == expected(ROWS) != []
    assert list(rejected.columns) == ["reason_", *SCHEMA.names]
    assert of_no_time(records(rejected)) == WITHOUT_TIME
    plain = CLAUSE.replace(" WITHIN 9 seconds", "")
    found, rejected = split(match_recognize(frame, plain.format(f=function), rejects=True))
    assert shown(records(found)) == expected(ROWS, plain)
    assert records(rejected) == []


def test_stream(spark: Any, python_functions: None, tmp_path: Path) -> None:
    """A row of the far future comes with the first ones, which it would make late."""
    made: list[dict[str, Any]] = []
    rejected: list[dict[str, Any]] = []

    def write(frame: Any, number: int) -> None:
        found, apart = (records(part) for part in split(frame))
        made.extend(found)
        rejected.extend(apart)

    folder = tmp_path / "rows"
    folder.mkdir()
    for number, part in enumerate(([*ROWS[:60], FUTURE], ROWS[60:])):
        file = folder / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), file)
        os.utime(file, (1000 + number, 1000 + number))  # they are read by their times
    schema = spark.read.parquet(str(folder)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    options: dict[str, Any] = {"delay": "5 seconds", "ahead": "1 day", "rejects": True, "buckets": 2}
    match_recognize_to_end(stream, CLAUSE.format(f="twice"), write, checkpoint=str(tmp_path / "state"), **options)
    assert shown(made) == expected([row for row in ROWS if row["ts"] is not None]) != []
    far = [row for row in rejected if row["ts"] is not None]
    assert [(row["reason"], row["reason_"]) for row in far] == [
        ("far", "time is more than 1d ahead of other events, or of the wall clock")
    ]
    assert of_no_time([row for row in rejected if row["ts"] is None]) == WITHOUT_TIME


def test_progress_tells_of_row_patterns() -> None:
    from types import SimpleNamespace

    from pyspark.sql import Row

    counts = {
        "match_recognize_0abc_rows": Row(rows=7, rejected=2),
        "match_recognize_0abc": Row(late=1, consumed=3, waiting=1, ahead=0),
    }
    told = SimpleNamespace(observedMetrics=counts, numInputRows=14, batchId=3, batchDuration=2000)
    assert progress_line(told) == "micro-batch 3: 7 rows, 3 consumed, 1 waiting, 1 late, 2 rejected; 2.0 s"
