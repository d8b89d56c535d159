"""MATCH_RECOGNIZE over DataFrames and inside Spark SQL: the same rows as over Arrow tables."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

import coincide
from coincide.errors import RuleError
from coincide.spark import match_recognize, sql

pytestmark = pytest.mark.spark

ROWS = [
    {"sym": sym, "ts": n, "price": (n * 7919 + len(sym or '')) % 11, "spot": Row(x=n)}
    for n in range(60)
    for sym in ("a", "bb", None)
]  # fmt: skip
V_SHAPE = """PARTITION BY sym ORDER BY ts
    MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom, COUNT(*) AS n, AVG(price) AS mean, LAST(spot) AS there
    PATTERN (START DOWN+ UP+) DEFINE DOWN AS price < PREV(price), UP AS UP.price > LAST(DOWN.price)"""


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    made = spark.createDataFrame([Row(**row) for row in ROWS], "sym string, ts long, price long, spot struct<x: long>")
    made.createOrReplaceTempView("ticks")
    return made


def expected(clause: str) -> list[tuple[Any, ...]]:
    table = pa.Table.from_pylist([{**row, "spot": {"x": row["ts"]}} for row in ROWS])
    found = coincide.match_recognize(table, clause)
    return sorted((tuple(record.values()) for record in found.to_pylist()), key=repr)


def rows_of(made: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.asDict(recursive=True).values()) for row in made.collect()), key=repr)


def test_a_frame_gives_what_a_table_gives(frame: Any) -> None:
    made = match_recognize(frame, V_SHAPE)
    kinds = ["string", "bigint", "bigint", "bigint", "double", "struct<x:bigint>"]
    assert [field.dataType.simpleString() for field in made.schema] == kinds
    assert rows_of(made) == expected(V_SHAPE) != []
    assert rows_of(frame.transform(match_recognize(V_SHAPE))) == expected(V_SHAPE)


@pytest.mark.usefixtures("compiling")
def test_sql_around_it(frame: Any, spark: Any) -> None:
    text = f"""
        WITH low AS (SELECT * FROM ticks WHERE price < 9),
             v AS (SELECT * FROM low AS l MATCH_RECOGNIZE ({V_SHAPE}) AS m WHERE n > 2)
        SELECT sym, count(*) AS c, 'MATCH_RECOGNIZE (' AS t FROM
            (SELECT sym, n AS ts, bottom AS price FROM v) MATCH_RECOGNIZE (
                PARTITION BY sym ORDER BY ts MEASURES COUNT(*) AS k PATTERN (A B?) DEFINE B AS price <= PREV(price)) AS outer_
        GROUP BY sym ORDER BY sym"""
    low = pa.Table.from_pylist([{**row, "spot": None} for row in ROWS if row["price"] < 9])
    v = coincide.sql(f"SELECT sym, n AS ts, bottom AS price FROM low MATCH_RECOGNIZE ({V_SHAPE}) AS m WHERE n > 2", low=low)
    outer = "PARTITION BY sym ORDER BY ts MEASURES COUNT(*) AS k PATTERN (A B?) DEFINE B AS price <= PREV(price)"
    counted = Counter(coincide.match_recognize(v, outer).column("sym").to_pylist())
    assert {row["sym"]: row["c"] for row in sql(spark, text).collect()} == counted
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("coincide_matches")]


def test_errors_name_the_place_in_the_query(frame: Any, spark: Any) -> None:
    clause = "PARTITION BY sym ORDER BY ts MEASURES 1 AS one\nPATTERN (A) DEFINE A AS 1 < 2 * prize"
    with pytest.raises(RuleError, match=r"query\.sql:2:33: error: no column 'prize' in the table; did you mean 'price'\?"):
        sql(spark, f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})")
    clause = "PARTITION BY t.sym ORDER BY t.day MEASURES 1 AS x PATTERN (A) DEFINE A AS true"
    text = f"SELECT *\nFROM ticks AS t\nMATCH_RECOGNIZE (\n  {clause})"
    with pytest.raises(RuleError, match=r"query\.sql:4:31: error: no column 'day' in the table"):
        sql(spark, text)
    assert sql(spark, text.replace("t.day", "t.ts")).count() == len(ROWS)
    with pytest.raises(RuleError, match="MATCH_RECOGNIZE on Spark needs ORDER BY"):
        match_recognize(frame, "PARTITION BY sym PATTERN (A) DEFINE A AS true")


def random_clause(rng: random.Random) -> str:
    """A pattern over A, B and C with conditions of every kind: of the row, of its neighbours, of rows of the match."""
    of_row = ["price > 4", "price < PREV(price)", "price <> NEXT(price)"]
    tests = [*of_row, "price >= LAST(price, 1)", "SUM(price) < 30", "MATCH_NUMBER() < 9"]
    defined = ", ".join(f"{name} AS {rng.choice(tests)}" for name in "ABC" if rng.random() < 0.8) or "A AS true"
    parts = [
        rng.choice(["A", "B", "C", "(A | B)", "PERMUTE(A, C)"]) + rng.choice(["", "+", "*?", "?", "{1,3}"]) for _ in range(3)
    ]
    rows = rng.choice(["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"])
    within = rng.choice(["", " WITHIN 9 ms"])
    return f"""PARTITION BY sym ORDER BY ts MEASURES CLASSIFIER() AS label, COUNT(*) AS n, MATCH_NUMBER() AS number
        {rows} AFTER MATCH SKIP {rng.choice(["PAST LAST ROW", "TO NEXT ROW"])}
        PATTERN ({" ".join(parts)} A | A B | C){within} DEFINE {defined}"""


def test_random_queries_give_what_a_table_gives(frame: Any) -> None:
    rng = random.Random(11)
    found = 0
    for clause in (random_clause(rng) for _ in range(6)):
        made = rows_of(match_recognize(frame, clause))
        assert made == expected(clause), clause
        found += len(made)
    assert found > 100


def test_names_are_resolved_as_spark_does(frame: Any) -> None:
    """Whatever their case, and inside structs."""
    plain = "PARTITION BY sym ORDER BY ts MEASURES LAST(A.spot.x) AS x PATTERN (A+) DEFINE A AS A.spot.x + price < 20"
    clause = plain.replace("sym", "SYM").replace("ts", "Ts").replace("spot", "Spot").replace("price", "PRICE")
    assert rows_of(match_recognize(frame, clause)) == expected(plain) != []


def test_keys_that_are_equal_meet(spark: Any) -> None:
    """Zero is zero, and a list counts as null (MR-1)."""
    rows = [(n, -0.0 if n % 2 else 0.0, [n]) for n in range(20)]
    frame = spark.createDataFrame(rows, "t long, z double, l array<long>").repartition(4)
    for key in ("z", "l"):
        made = match_recognize(frame, f"PARTITION BY {key} ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS true")
        assert [row["n"] for row in made.collect()] == [20]
