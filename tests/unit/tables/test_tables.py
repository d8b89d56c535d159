"""MATCH_RECOGNIZE over tables: kinds of tables, types of results, errors that a schema shows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import coincide
from coincide.errors import CoincideError, RuleError

TICKS = pa.table(
    {
        "sym": ["a", "b", "a", "b", "a", None],
        "ts": pa.array([dt.datetime(2026, 1, 1, 0, 0, s) for s in range(6)], pa.timestamp("us")),
        "price": pa.array([9, 5, 7, 6, 8, 1], pa.int64()),
        "place": pa.array([{"x": n} for n in range(6)]),
    }
)
RISE = """PARTITION BY sym ORDER BY ts MEASURES LAST(price) AS top, FIRST(ts) AS since, LAST(place) AS place
          PATTERN (LOW HIGH+) DEFINE HIGH AS price > PREV(price)"""


def test_what_is_given_comes_back() -> None:
    made = coincide.match_recognize(TICKS, RISE)
    assert made.schema.types == [pa.string(), pa.int64(), pa.timestamp("us"), TICKS.schema.field("place").type]
    assert made.to_pylist() == [
        {"sym": "a", "top": 8, "since": dt.datetime(2026, 1, 1, 0, 0, 2), "place": {"x": 4}},
        {"sym": "b", "top": 6, "since": dt.datetime(2026, 1, 1, 0, 0, 1), "place": {"x": 3}},
    ]
    assert isinstance(coincide.match_recognize(TICKS.to_pandas(), RISE), pd.DataFrame)
    frame: Any = pl.from_arrow(TICKS)
    found = coincide.match_recognize(frame, RISE)
    assert isinstance(found, pl.DataFrame)
    assert found["top"].to_list() == [8, 6]
    assert coincide.match_recognize(frame.lazy(), RISE).equals(found)
    assert coincide.match_recognize(TICKS.to_pylist(), RISE) == made.to_pylist()


def test_types_of_results() -> None:
    clause = """ORDER BY ts MEASURES COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a, price / 2 AS h, price + 1 AS p,
                MAX(ts) AS m, CLASSIFIER() AS c, ARRAY_AGG(price) AS l, price > 3 AS big, MATCH_ROWTIME() AS r, price + 0.5 AS f
                PATTERN (A+) DEFINE A AS true"""
    types = coincide.match_recognize(TICKS, clause).schema.types
    whole, real, moment = pa.int64(), pa.float64(), pa.timestamp("us")
    assert types == [whole, whole, real, real, whole, moment, pa.string(), pa.list_(whole), pa.bool_(), moment, real]


def test_sql_selects_and_filters() -> None:
    text = "SELECT m.top * 2 AS twice, sym FROM ticks MATCH_RECOGNIZE (" + RISE + ") AS m WHERE top > 6"
    assert coincide.sql(text, ticks=TICKS).to_pylist() == [{"twice": 16, "sym": "a"}]


@pytest.mark.parametrize("test", ["HIGH.price > LOW.price", "price > PREV(price)"])
def test_conditions_over_objects_and_columns(test: str) -> None:
    """Columns that are called like fields of events are plain columns."""
    table = [{"time": "x", "id": n, "type": n % 2, "price": p} for n, p in enumerate([3, 1, 4, 1, 5])]
    clause = f"ORDER BY id MEASURES LAST(time) AS t, LAST(id) AS i PATTERN (LOW HIGH) DEFINE LOW AS type = 1, HIGH AS {test}"
    assert coincide.match_recognize(table, clause) == [{"t": "x", "i": 2}, {"t": "x", "i": 4}]


@pytest.mark.parametrize(
    "test",
    ["PREV(price) < price", "PREV(price) + 0 < price", "PREV(price) IN (3, 5, 7)", "PREV(CLASSIFIER() || price) IS NOT NULL"],
)
def test_what_only_navigations_read_is_there(test: str) -> None:
    """Also where no other part of the query has asked for the column before."""
    clause = f"PARTITION BY sym ORDER BY ts MEASURES COUNT(*) AS n PATTERN (LOW HIGH) DEFINE HIGH AS {test}"
    by_rows = clause.replace("HIGH AS", "HIGH AS COUNT(LOW.*) = 1 AND")
    found = coincide.match_recognize(TICKS.select(["price", "ts", "sym"]), clause).to_pylist()
    assert found == coincide.match_recognize(TICKS, by_rows).to_pylist()
    assert found == [{"sym": "a", "n": 2}, {"sym": "b", "n": 2}]


def test_within_goes_by_the_first_key_or_by_time() -> None:
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A+) WITHIN 2 s DEFINE A AS true"
    assert [r["n"] for r in coincide.match_recognize(TICKS, clause).to_pylist()] == [3, 3]
    by_price = clause.replace("ORDER BY ts", "ORDER BY price")
    with pytest.raises(RuleError, match="WITHIN needs ORDER BY ts, ascending, as the first key"):
        coincide.match_recognize(TICKS, by_price, time="ts")


def test_rows_without_time_are_never_taken_within_a_bound() -> None:
    table = [{"t": 0, "v": 1}, {"t": None, "v": 2}, {"t": 1, "v": 3}]
    for test in ("true", "COUNT(*) > 0"):
        clause = f"ORDER BY t NULLS LAST MEASURES ARRAY_AGG(v) AS vs PATTERN (A+) WITHIN 5 ms DEFINE A AS {test}"
        assert coincide.match_recognize(table, clause) == [{"vs": [1, 3]}]


def test_timed_out_rows_need_a_clock_that_has_passed() -> None:
    table = [{"t": 0, "k": 1}, {"t": 9, "k": 2}]
    clause = """PARTITION BY k ORDER BY t MEASURES TIMED_OUT() AS late ONE ROW PER MATCH WITH TIMED OUT MATCHES
                PATTERN (A B) WITHIN 5 ms DEFINE B AS true"""
    assert coincide.match_recognize(table, clause) == [{"k": 1, "late": True}]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("PATTERN (A) DEFINE A AS prize > 1", "clause.mr.sql:1:25: error: no column 'prize' in the table; did you mean 'price'?"),
        ("PATTERN (A) DEFINE A AS price", "clause.mr.sql:1:25: error: the condition of 'A' is not boolean"),
        ("PATTERN (A) DEFINE A AS true", "MATCH_RECOGNIZE gives no column: add MEASURES or PARTITION BY"),
    ],
)
def test_what_the_schema_shows(clause: str, message: str) -> None:
    with pytest.raises(CoincideError) as caught:
        coincide.match_recognize(TICKS, clause)
    assert message in str(caught.value)


def test_an_ambiguous_pattern_over_equal_rows_takes_no_time() -> None:
    table = pa.table({"t": range(5000), "v": [1] * 5000})
    clause = "ORDER BY t MEASURES COUNT(*) AS n PATTERN ((A+)+ B+) DEFINE A AS v = 1, B AS v = 2"
    assert coincide.match_recognize(table, clause, steps=100_000).num_rows == 0


def test_relations_of_duckdb_and_back() -> None:
    """A relation in; what comes out is an Arrow table, which DuckDB reads by its name."""
    with duckdb.connect() as connection:
        connection.register("ticks", TICKS)
        low = connection.sql("SELECT sym, ts, price FROM ticks WHERE price < 9")
        made = coincide.match_recognize(low, RISE.replace(", LAST(place) AS place", ""))
        assert isinstance(made, pa.Table)
        assert connection.sql("SELECT sym, sum(top) FROM made GROUP BY sym ORDER BY sym").fetchall() == [("a", 8), ("b", 6)]


def test_values_keep_their_types_through_aggregates() -> None:
    """Beyond what a double can hold, and whatever has parts."""
    big = 2**53 + 1
    table = pa.table(
        {
            "t": [1, 2, 3, 4],
            "n": pa.array([big, big + 2, None, 5], pa.int64()),
            "d": pa.array([Decimal("0.1"), None, Decimal("12345678901234567.89"), Decimal("1")], pa.decimal128(20, 2)),
            "s": [{"x": 1}, {"x": 2}, None, {"x": 4}],
        }
    )
    measures = "MIN(n) AS low, MAX(n) AS high, MAX(d) AS most, ARRAY_AGG(s) AS all_of, MIN(B.n) AS none, ARRAY_AGG(B.n) AS no"
    made = coincide.match_recognize(table, f"ORDER BY t MEASURES {measures} PATTERN (A{{3}} B?) DEFINE B AS t > 5")
    assert made.schema.types[:4] == [pa.int64(), pa.int64(), pa.decimal128(20, 2), pa.list_(table.schema.field("s").type)]
    assert made.to_pylist() == [
        {
            "low": big,
            "high": big + 2,
            "most": Decimal("12345678901234567.89"),
            "all_of": [{"x": 1}, {"x": 2}, None],
            "none": None,
            "no": None,
        }
    ]


def test_an_index_with_a_name_is_a_column() -> None:
    frame = TICKS.to_pandas()
    assert coincide.match_recognize(frame.set_index("ts"), RISE).equals(coincide.match_recognize(frame, RISE))
    assert coincide.match_recognize(frame.set_index("ts", drop=False), RISE).equals(coincide.match_recognize(frame, RISE))


def test_no_records_give_none() -> None:
    assert coincide.match_recognize([], RISE) == []
    with pytest.raises(RuleError, match="expected"):
        coincide.match_recognize([], "PARTITION BY")


def test_texts_are_no_times() -> None:
    """WITHIN would bound nothing."""
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A+) WITHIN 1 s DEFINE A AS true"
    with pytest.raises(RuleError, match="WITHIN needs a timestamp or a number of milliseconds: 'ts' is string"):
        coincide.match_recognize([{"ts": "2026-01-01T00:00:00Z"}], clause)
    decimals = pa.table({"ts": pa.array([Decimal("0"), Decimal("900.5"), Decimal("1000.25")])})
    assert coincide.match_recognize(decimals, clause).column("n").to_pylist() == [2, 1]


@pytest.mark.parametrize(
    "text", ["SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)", "MATCH_RECOGNIZE (PATTERN (A))"]
)
def test_a_query_is_no_clause(text: str) -> None:
    with pytest.raises(RuleError, match="`sql` takes a whole query"):
        coincide.match_recognize(TICKS, text)
    with pytest.raises(RuleError, match="`match_recognize` takes a clause alone"):
        coincide.sql(RISE, ticks=TICKS)


def test_what_is_most_likely_not_meant_is_told() -> None:
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A | B) DEFINE B AS price > 1"
    with pytest.warns(coincide.DataWarning, match="'B' is never reached: 'A' before it takes every row") as told:
        coincide.match_recognize(TICKS, clause)
    assert told[0].filename == __file__


def test_fields_inside_structs() -> None:
    """They are read, and not given out by themselves (MR-40)."""
    inside = pa.array([{"n": 1, "at": {"y": 5}}, {"n": 2, "at": {"y": 6}}, {"n": 1, "at": None}, None])
    table = pa.table({"t": [4, 3, 2, 1], "p": inside})
    clause = "PARTITION BY p.n ORDER BY t MEASURES LAST(A.p.at.y) AS y PATTERN (A) DEFINE A AS A.p.n > 0"
    found = coincide.match_recognize(table, clause)
    assert sorted(found.to_pylist(), key=repr) == [{"p.n": 1, "y": 5}, {"p.n": 1, "y": None}, {"p.n": 2, "y": 6}]
    shown = coincide.match_recognize(
        table, clause.replace("PARTITION BY p.n ", "").replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
    )
    assert shown.column_names == ["t", "y", "p"]
    with pytest.raises(RuleError, match=r"no column 'p\.m' in the table"):
        coincide.match_recognize(table, clause.replace("A.p.n", "A.p.m"))
