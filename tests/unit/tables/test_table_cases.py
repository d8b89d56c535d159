"""The conformance cases of MATCH_RECOGNIZE over plain tables: what can be said of a table gives what it gives of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide.lang.matchrecognize.definition import Query
from coincide.lang.matchrecognize.parse import parse
from coincide.source import SourceText
from coincide.tables.names import names_read, with_nested
from coincide.tables.query import TableQuery
from coincide.tables.scan import TableScan

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "match-recognize"
ENVELOPE = ("type", "time", "from", "id", "space")


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def query_of(case: Path) -> Query | None:
    """None: views over views, an open end or a clock that goes on are not for a table."""
    rules = case / "rules.mr.sql"
    if not rules.exists() or (case / "end").exists() or (case / "until").exists():
        return None
    queries = parse(SourceText("rules.mr.sql", rules.read_text(encoding="utf-8"))).queries
    return queries[0] if len(queries) == 1 else None


def table_of(case: Path, query: Query) -> pa.Table | None:
    """None: a column of it would have values of several types, or rows have no plain time."""
    rows = []
    for number, record in enumerate(records(case / "events.jsonl"), 1):
        if not isinstance(record["time"], int | float):
            return None
        rows.append({"id": str(number), **record})
    rows.sort(key=lambda row: row["time"])
    kept = [row for row in rows if query.source.table in ("events", row["type"])]
    names = dict.fromkeys([*(name for row in rows for name in row), "source"])
    if any("." in name for name in names):  # and the same inside an object: an event's field, two of a table
        return None
    try:
        table = with_nested(pa.table({name: pa.array([row.get(name) for row in kept]) for name in names}), query)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    for name in names_read(query):
        table = table if name in table.column_names else table.append_column(name, pa.nulls(len(table)))
    return table


def told(rows: list[dict[str, Any]], without: tuple[str, ...]) -> list[str]:
    """In any order: partitions come one after the other here."""
    plain = [{name: value for name, value in row.items() if value is not None and name not in without} for row in rows]
    return sorted(json.dumps(_number(row), sort_keys=True) for row in plain)


def _number(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _number(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_number(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def found(case: Path) -> tuple[Query, pa.Table] | None:
    query = query_of(case)
    table = None if query is None else table_of(case, query)
    named = query is not None and (query.clause.measures or query.clause.partition or query.clause.all_rows)
    return (query, table) if query is not None and table is not None and named else None  # else there would be no column


FOR_TABLES = {case.name: whole for case in sorted(CASES.iterdir()) if (whole := found(case)) is not None}


@pytest.mark.parametrize("name", FOR_TABLES)
def test_a_table_gives_what_events_give(name: str) -> None:
    query, table = FOR_TABLES[name]
    whole = TableQuery(query, table.schema, "time")
    expected = told(records(CASES / name / "expected.jsonl"), ("type", "time", "from"))
    without = ENVELOPE if query.items is None else ()
    clock = max(int(record["time"] * 1000) for record in records(CASES / name / "events.jsonl"))
    assert told(whole.run(table, clock).to_pylist(), without) == expected
    if query.clause.by_time:
        assert told([*bit_by_bit(TableScan(whole), table, clock)], without) == expected


def bit_by_bit(scan: TableScan, table: pa.Table, clock: int) -> Iterator[dict[str, Any]]:
    """Instant by instant, over a snapshot each time."""
    state = scan.initial()
    times = table.column("time").to_numpy()
    for instant in np.unique(times):
        yield from scan.advance(state, table.filter(pa.array(times == instant))).to_pylist()
        state = scan.decode(scan.encode(state))
    state.hi = max(state.hi, clock)
    yield from scan.finish(state).to_pylist()


def test_most_cases_are_for_tables() -> None:
    assert len(FOR_TABLES) > 50
