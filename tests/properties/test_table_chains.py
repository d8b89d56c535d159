"""A query over the matches of another one, while rows come bit by bit: what both give over whole tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide.errors import RuleError
from coincide.lang.matchrecognize.parse import parse_query
from coincide.source import SourceText
from coincide.tables.chain import chained
from coincide.tables.query import TableQuery
from coincide.tables.scan import TableScan

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
INNER = (
    "SELECT k, ts, n FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(ts) AS ts, COUNT(*) AS n "
    "PATTERN (A B+) WITHIN 5 s DEFINE B AS v > PREV(v)) AS m WHERE n < 5",
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS ts, SUM(v) AS n "
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (A+? B) DEFINE B AS v > 3) AS m",
    "SELECT v AS n, ts FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH WITH UNMATCHED ROWS "
    "PATTERN (A B* C) DEFINE B AS v < 4, C AS C.v > A.v) AS m WHERE c <> 'A'",
)
OUTER = (
    "SELECT * FROM m MATCH_RECOGNIZE (ORDER BY ts, n MEASURES FIRST(ts) AS since, LAST(ts) AS ts, SUM(n) AS total "
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (X Y) WITHIN 20 s DEFINE Y AS n <> PREV(n))",
    "SELECT * FROM (SELECT * FROM m WHERE n > 1) MATCH_RECOGNIZE (PARTITION BY n ORDER BY ts MEASURES MATCH_NUMBER() AS number, "
    "LAST(ts) AS ts PATTERN (X{2}) DEFINE X AS true)",
)


def query(text: str, schema: pa.Schema) -> TableQuery:
    return TableQuery(parse_query(SourceText("query", text)), schema)


def shown(tables: list[pa.Table]) -> list[str]:
    return sorted(repr(list(row.values())) for table in tables for row in table.to_pylist())


@given(
    st.sampled_from(INNER),
    st.lists(st.sampled_from(OUTER), min_size=1, max_size=1),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.integers(0, 6)), max_size=40),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_a_chain_gives_what_whole_tables_give(
    inner: str, outers: list[str], steps: list[tuple[str, int, int]], cuts: list[tuple[int, bool]]
) -> None:
    rows: list[dict[str, Any]] = []
    now = START
    for k, step, v in steps:
        now += timedelta(seconds=step)
        rows.append({"k": k, "ts": now, "v": v})
    table = pa.Table.from_pylist(rows, SCHEMA)
    whole = coincide.sql(inner, t=table)
    chain: Any = TableScan(query(inner, SCHEMA))
    for outer in outers:
        whole = coincide.sql(outer, m=whole)
        chain = chained(chain, query(outer, chain.query.output))
    state, made, at = chain.initial(), [], 0
    for size, restart in cuts:
        made.append(chain.advance(state, table.slice(at, size)))
        at = min(at + size, len(table))
        assert set(shown(made)) <= set(shown([whole]))
        if restart:
            state = chain.decode(chain.encode(state))
    made += [chain.advance(state, table.slice(at)), chain.finish(state)]
    assert shown(made) == shown([whole])


@pytest.mark.parametrize("order", ["ORDER BY since", "ORDER BY ts DESC", "ORDER BY n", ""])
def test_matches_come_in_the_order_of_the_times_of_their_rows(order: str) -> None:
    inner = query("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES PREV(FIRST(ts)) AS since, LAST(ts) AS ts, 1 AS n "
                  "PATTERN (A) DEFINE A AS true)", SCHEMA)  # fmt: skip
    outer = query(f"SELECT * FROM m MATCH_RECOGNIZE ({order} MEASURES 1 AS x PATTERN (A) DEFINE A AS true)", inner.output)
    with pytest.raises(RuleError, match="on a stream matches are ordered by the time of one of their rows"):
        chained(TableScan(inner), outer)
