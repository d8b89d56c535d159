"""Queries over tables in a bucket, without Spark: micro-batches of any size, out of order within the delay, and the end."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from support import Memory

import coincide
from coincide.engines.ahead import Guard
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket
from coincide.engines.spark.division import Division
from coincide.engines.spark.packing import Packing, Road, to_bytes
from coincide.engines.spark.rejects import REJECTED, SHOWN
from coincide.engines.spark.stateful import arrived_rows
from coincide.engines.spark.tablework import TableTask
from coincide.engines.spark.timing import Timing

START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
FALLS = """SELECT k, ts, n FROM t MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts MEASURES LAST(ts) AS ts, COUNT(*) AS n
    PATTERN (A B+) WITHIN 6 s DEFINE B AS v < PREV(v)) AS f WHERE n < 5"""
PAIRS = """SELECT since, n FROM (SELECT * FROM matches WHERE n > 1) AS f MATCH_RECOGNIZE (
    ORDER BY f.ts, f.k MEASURES FIRST(ts) AS since, SUM(n) AS n AFTER MATCH SKIP TO NEXT ROW
    PATTERN (X Y) WITHIN 20 s DEFINE Y AS n >= PREV(n))"""
DELAY = 5_000_000


def result_of(*queries: str) -> pa.Schema:
    table: Any = SCHEMA.empty_table()
    for query in queries:
        table = coincide.sql(query, t=table, matches=table)
    return table.schema


def taken(task: TableTask, store: Memory, rows: list[dict[str, Any]], closing: int | None = None) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(rows, SCHEMA)
    hi = table.column("ts").cast(pa.int64())
    told = table.rename_columns([f".{name}" for name in SCHEMA.names]).add_column(0, "hi", hi)
    blob = to_bytes(told.append_column("page", pa.array([0] * len(rows), pa.int32())))
    stamps = hi.to_pylist()
    runs = [(min(stamps), max(stamps), len(stamps))] if stamps else []
    arrived = Arrived(runs, [blob] if rows else [], closing, firsts=[run[0] for run in runs])
    outcome = Bucket(task, Timing(DELAY), True, Division([], 1, 1), store).advance(arrived)
    return [row for batch in task.rows(outcome.made, None) for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", range(3))
def test_a_query_over_the_matches_of_another(seed: int) -> None:
    rng = random.Random(seed)
    rows = [{"k": rng.choice("ab"), "ts": START + timedelta(seconds=n), "v": rng.randrange(7)} for n in range(150)]
    whole = coincide.sql(PAIRS, matches=coincide.sql(FALLS, t=pa.Table.from_pylist(rows, SCHEMA))).to_pylist()
    task = TableTask("query.sql", FALLS, "ts", 10_000, SCHEMA, result_of(FALLS, PAIRS), (PAIRS,))
    shuffled = sorted(rows, key=lambda row: row["ts"] + timedelta(seconds=rng.randrange(5)))
    store, made, at = Memory(), [], 0
    while at < len(shuffled):
        size = rng.randrange(1, 40)
        made += taken(task, store, shuffled[at : at + size])
        at += size
    assert 0 < len(made) < len(whole) + 1
    made += taken(task, store, [], FOREVER)
    assert sorted(made, key=repr) == sorted(whole, key=repr)


def test_what_is_too_far_ahead_is_shown_and_makes_nothing_late() -> None:
    """From the rows that Spark hands over to those that it gets back."""
    shown = pa.struct([("reason", pa.string()), ("k", pa.string()), ("v", pa.int64())])
    result = result_of(FALLS).append(pa.field(REJECTED, shown))
    task = TableTask("query.sql", FALLS, "ts", 10_000, SCHEMA, result)
    guard = Guard()
    rows = [{"k": "a", "ts": START + timedelta(seconds=n), "v": -n % 4} for n in range(40)]
    far = {"k": "b", "ts": START + timedelta(days=400), "v": 7}
    store, made = Memory(), []
    for part, closing in (([*rows[:20], far], None), (rows[20:], FOREVER)):
        table = pa.Table.from_pylist(part, SCHEMA)
        hi = table.column("ts").cast(pa.int64())
        why = pa.array(["far"] * len(part))
        structs = pa.StructArray.from_arrays([why, *(table.column(n).combine_chunks() for n in "kv")], fields=list(shown))
        zeros, none = pa.array([0] * len(part), pa.int32()), pa.nulls(len(part), pa.int64())
        columns = {"w0": hi, **{f"w{n}": table.column(name) for n, name in enumerate(SCHEMA.names, 1)}, SHOWN: structs}
        given = pa.table({**columns, "page0": zeros, "bucket0": zeros, "closing": none, "wall": none})
        packing = Packing(task.layout, (Road("query", task.layout, (0,)),), guard=guard)
        (packed,) = packing(given.to_batches())
        arrived = replace(arrived_rows(packed.to_pandas()), closing=closing)
        outcome = Bucket(task, Timing(DELAY, guard), True, Division([], 1, 1), store).advance(arrived)
        assert (outcome.late, outcome.ahead) == (0, len(part) - 20)
        made += [row for batch in task.rows(outcome.made, None, outcome.set_aside) for row in batch.to_pylist()]
    rejected = [row.pop(REJECTED) for row in made]
    assert [row for row in rejected if row is not None] == [{"reason": "far", "k": "b", "v": 7}]
    matches = [row for row, apart in zip(made, rejected, strict=True) if apart is None]
    assert matches == coincide.sql(FALLS, t=pa.Table.from_pylist(rows, SCHEMA)).to_pylist() != []
