"""A table cut into ranges of time anywhere gives what it gives as a whole, numbers of matches included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.detection.rowpattern.columnar import range_reasons
from coincide.errors import CoincideError
from coincide.lang.matchrecognize.parse import parse_clause
from coincide.source import SourceText
from coincide.tables.query import TableQuery
from coincide.tables.ranges import (
    POSITION,
    TIE,
    Entry,
    RangeScan,
    entries_of,
    is_walked,
    joined,
    neighbours,
    ranges_of,
)

CONDITIONS = (
    "v > 2", "v < PREV(v)", "v > PREV(v, 2)", "v <> NEXT(v)", "v >= LAST(v, 1)", "SUM(v) < 9", "v > FIRST(A.v)", "NEXT(v, 2) > 1",
    "true", "v < 5", "v > 0",
)  # fmt: skip
PARTS = ("A", "B", "(A | B)", "(B A)", "PERMUTE(A, B)", "^", "$", "{- B -}")
ROWS = (
    "ONE ROW PER MATCH", "ONE ROW PER MATCH WITH TIMED OUT MATCHES", "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
)  # fmt: skip
SKIPS = ("PAST LAST ROW", "PAST LAST ROW", "TO NEXT ROW", "TO LAST A", "TO FIRST B")


@st.composite
def clauses(draw: st.DrawFn) -> str:
    rows = draw(st.sampled_from(ROWS))
    parts = PARTS if "UNMATCHED" not in rows else PARTS[:-1]
    quantified = st.tuples(st.sampled_from(parts), st.sampled_from(["", "", "+", "*", "*?", "?", "{1,3}"]))
    pattern = " ".join(
        part + (often if part not in "^$" else "") for part, often in draw(st.lists(quantified, min_size=1, max_size=4))
    )
    tests = draw(st.tuples(*(st.sampled_from(CONDITIONS) for _ in "AB")))
    late = ", TIMED_OUT() AS late" if "TIMED" in rows else ""
    order = draw(st.sampled_from(["t", "t, n", "t NULLS LAST, n"]))
    return f"""ORDER BY {order} MEASURES MATCH_NUMBER() AS number, CLASSIFIER() AS label, COUNT(*) AS size, FIRST(n) AS since,
        NEXT(n) AS following{late} {rows} AFTER MATCH SKIP {draw(st.sampled_from(SKIPS))}
        PATTERN ({pattern} | A B) WITHIN {draw(st.sampled_from([0, 4, 20, 20]))} ms DEFINE A AS {tests[0]}, B AS {tests[1]}"""


def table_of(steps: list[tuple[int | None, int]]) -> pa.Table:
    times, now = [], 0
    for step, _ in steps:
        now += step or 0
        times.append(None if step is None else now)
    schema = pa.schema([("t", pa.int64()), ("v", pa.int64()), ("n", pa.int64())])
    return pa.table([times, [v for _, v in steps], list(range(len(steps)))], schema=schema)


def in_ranges(query: TableQuery, table: pa.Table, cuts: list[int], tasks: int) -> list[dict[str, Any]]:
    """As engines do it: each range gets only the rows that it reads, in any order."""
    micros = query.times(table)
    nulls = -(2**62) if query.clause.order[0].nulls_first else 2**62
    positions = np.where(micros >= 2**62, nulls, micros)
    table = table.append_column(POSITION, pa.array(positions)).append_column(TIE, table.column("n"))
    program, scan = query.program, RangeScan(query)
    near = joined([neighbours(part, cuts, program) for part in np.array_split(positions[::-1], tasks)], program)
    parts = ranges_of(cuts, near, program)
    read = [_reversed(table.filter(pa.array((positions >= part.low) & (positions <= part.high)))) for part in parts]
    entries = [Entry()] * len(parts)
    if is_walked(program):
        ways = [scan.ways(rows, part) for rows, part in zip(read, parts, strict=True)]
        entries = entries_of([way for way in ways if way is not None])
    clock = int(micros[micros < 2**62].max(initial=-(2**62)))
    made = [scan.run(rows, part, entry, clock) for rows, part, entry in zip(read, parts, entries, strict=False)]
    return [row for part in made for row in part.to_pylist()]


def _reversed(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.arange(len(table))[::-1]))


def outcome(make: Any) -> Any:
    try:
        return make()
    except CoincideError as error:
        return str(error)


@given(
    clauses(),
    st.lists(st.tuples(st.sampled_from([0, 1, 1, 1, 2, 9, None]), st.integers(0, 5)), min_size=12, max_size=40),
    st.sets(st.integers(0, 40), max_size=6),
    st.integers(1, 3),
)
@settings(max_examples=100, deadline=None)
def test_ranges_give_what_the_whole_gives(clause: str, steps: list[tuple[int | None, int]], cuts: set[int], tasks: int) -> None:
    table = table_of(steps)
    query = TableQuery(parse_clause(SourceText("clause", clause)), table.schema)
    if any(range_reasons(query.program)):
        return
    whole = outcome(lambda: query.run(query.in_order(table, "n")).to_pylist())
    assert outcome(lambda: in_ranges(query, table, sorted(cut * 1000 for cut in cuts), tasks)) == whole


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("ORDER BY t MEASURES 1 AS x PATTERN (A+) DEFINE A AS v > 1", "without WITHIN"),
        ("ORDER BY t MEASURES 1 AS x PATTERN (A+) WITHIN 1 s DEFINE A AS MATCH_NUMBER() > v", "MATCH_NUMBER"),
    ],
)
def test_what_cannot_be_cut(clause: str, reason: str) -> None:
    query = TableQuery(parse_clause(SourceText("clause", clause)), table_of([(1, 1)]).schema)
    assert reason in "".join(range_reasons(query.program))
