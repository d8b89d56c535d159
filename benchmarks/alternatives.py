"""What would one write instead? The same questions for coincide, for Polars and for a loop in Python, with equal answers.

Each gets the events as columns in memory and gives the detections as tuples of numbers; counted is the processor time of all
threads. `python -m benchmarks.alternatives docs/performance.md` writes the table into the page."""

from __future__ import annotations

import platform
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.measure import best
from benchmarks.workload_k import RULE, WITHIN, by_hand
from benchmarks.workloads import fresh, keyed
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable

EVENTS, KEYS, TYPES = 300_000, 1_000, 8
BEGIN, END = "<!-- made by benchmarks.alternatives -->", "<!-- end -->"
SECOND = 1_000_000
WINDOW = 10 * SECOND

Answer = list[tuple[float, ...]]
Way = Callable[[EventTable], Answer]


# coincide


def made(text: str, language: str, table: EventTable) -> EventBatch:
    graph = Graph(loads(text, language).plans("kernel"))
    state = graph.initial()
    found = graph.advance(state, EventBatch(table=fresh(table)))
    last = graph.finish(state)
    assert not len(last)
    return found


def origins(found: EventBatch) -> Answer:
    return sorted(tuple(map(int, ids)) for ids in found.table.origin().lists().to_pylist())


def sequence_by_rules(table: EventTable) -> Answer:
    return origins(made(RULE, "ce", table))


def absence_by_rules(table: EventTable) -> Answer:
    return origins(made("detect X = ([t0(k = ?k)], [T in {T, t1(k = ?k)}]) T = 1s", "ce", table))


def windows_by_rules(aggregate: str, name: str, table: EventTable) -> Answer:
    found = made(f"detect w per k = t0^{aggregate} over 10s  give {name}, k", "ecco", table).table
    keys = [int(text[1:]) for text in found.fields["k"].to_pylist()]
    values = np.round(found.fields[name].to_numpy(zero_copy_only=False), 6).tolist()
    answer = zip(keys, (found.hi // WINDOW).tolist(), values, strict=True)
    return sorted(one for one in answer if one[2])  # a count of none is told, too


# Polars


def frame(table: EventTable) -> pl.DataFrame:
    columns = {name: pl.from_arrow(table.fields[name]) for name in ("type", "k", "id", "v")}
    return pl.DataFrame({"time": table.hi, **columns})


def of_type(events: pl.DataFrame, kind: str, name: str) -> pl.DataFrame:
    return events.filter(pl.col("type") == kind).select("k", pl.col("time").alias(f"t{name}"), pl.col("id").alias(name))


def following(first: pl.DataFrame, after: str, others: pl.DataFrame, time: str) -> pl.DataFrame:
    """For each row the next of the others."""
    return first.sort(after).join_asof(
        others, left_on=after, right_on=time, by="k", strategy="forward", allow_exact_matches=False, check_sortedness=False
    )


def sequence_by_polars(table: EventTable) -> Answer:
    events = frame(table)
    pairs = following(of_type(events, "t0", "a"), "ta", of_type(events, "t1", "b"), "tb").drop_nulls("b")
    found = following(pairs, "tb", of_type(events, "t2", "c"), "tc").filter(pl.col("tc") <= pl.col("ta") + WITHIN)
    return sorted(found.select("a", "b", "c").rows())


def absence_by_polars(table: EventTable) -> Answer:
    events = frame(table)
    pairs = following(of_type(events, "t0", "a"), "ta", of_type(events, "t1", "b"), "tb")
    due = pl.col("ta") + SECOND
    found = pairs.filter((due <= int(table.hi[-1])) & (pl.col("tb").is_null() | (pl.col("tb") > due)))
    return sorted(found.select("a").rows())


def windows_by_polars(aggregate: pl.Expr, table: EventTable) -> Answer:
    events = frame(table).filter(pl.col("type") == "t0")
    window = ((pl.col("time") - 1) // WINDOW + 1).alias("window")
    found = events.group_by(pl.col("k").cast(pl.String), window).agg(aggregate.alias("value"))
    found = found.filter(pl.col("window") * WINDOW <= int(table.hi[-1]))
    keys = found["k"].str.slice(1).cast(pl.Int64)
    return sorted(zip(keys.to_list(), found["window"].to_list(), found["value"].round(6).to_list(), strict=True))


# A loop in Python


def sequence_by_hand(table: EventTable) -> Answer:
    return sorted(by_hand(table))


def rows_of(table: EventTable, kind: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row, (type, key) in enumerate(zip(table.fields["type"].to_pylist(), table.fields["k"].to_pylist(), strict=True)):
        if type == kind:
            found[key].append(row)
    return found


def absence_by_hand(table: EventTable) -> Answer:
    firsts, others = rows_of(table, "t0"), rows_of(table, "t1")
    times, ids, last = table.hi.tolist(), table.fields["id"].to_pylist(), int(table.hi[-1])
    found = []
    for key, rows in firsts.items():
        for row in rows:
            at = bisect_right(others[key], row)
            due = times[row] + SECOND
            if due <= last and (at == len(others[key]) or times[others[key][at]] > due):
                found.append((ids[row],))
    return sorted(found)


def windows_by_hand(reduce: Callable[[list[float]], float], table: EventTable) -> Answer:
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    columns = (table.fields[name].to_pylist() for name in ("type", "k", "v"))
    for type, key, value, time in zip(*columns, table.hi.tolist(), strict=True):
        if type == "t0":
            values[int(key[1:]), (time - 1) // WINDOW + 1].append(value)
    last = int(table.hi[-1])
    return sorted((*where, round(reduce(some), 6)) for where, some in values.items() if where[1] * WINDOW <= last)


QUESTIONS: dict[str, tuple[Way, Way, Way]] = {
    "t0, then t1, then t2 of one key within 10 s (Opera)": (sequence_by_rules, sequence_by_polars, sequence_by_hand),
    "t0 that no t1 of its key follows within 1 s (Opera)": (absence_by_rules, absence_by_polars, absence_by_hand),
    "how many t0 of each key in 10 s (ECCO)": (
        lambda table: windows_by_rules("COUNT", "count", table),
        lambda table: windows_by_polars(pl.len().cast(pl.Float64), table),
        lambda table: windows_by_hand(len, table),
    ),
    "their average in 10 s (ECCO)": (
        lambda table: windows_by_rules("AVG(v)", "avg", table),
        lambda table: windows_by_polars(pl.col("v").mean(), table),
        lambda table: windows_by_hand(lambda some: sum(some) / len(some), table),
    ),
}


def table_of_times(table: EventTable) -> list[str]:
    lines = ["| question | detections | coincide | Polars | a loop in Python |", "| --- | ---: | ---: | ---: | ---: |"]
    for question, ways in QUESTIONS.items():
        answers, speeds = [], []
        for way in ways:
            seconds, answer = best(lambda way=way: way(table), 3)
            answers.append(answer)
            speeds.append(f"{len(table) / seconds / 1e6:.2f}")
        assert all(_same(answers[0], other) for other in answers[1:]), question
        lines.append(f"| {question} | {len(answers[0]):,} | {' | '.join(speeds)} |")
    return lines


def _same(one: Answer, other: Answer) -> bool:
    """But for the last digits of averages: sums are not added up in the same order."""
    return len(one) == len(other) and np.allclose(np.array(one), np.array(other), rtol=0, atol=2e-6)


def main(path: str | None = None) -> None:
    lines = table_of_times(keyed(EVENTS, KEYS, TYPES))
    about = f"{platform.machine()}, Python {platform.python_version()}, Polars {pl.__version__}, pyarrow {pa.__version__}"
    told = [
        f"Million events for each second of processor time; {EVENTS:,} events, {KEYS:,} keys; {about}, {date.today()}.",
        "",
        *lines,
    ]
    print("\n" + "\n".join(told))
    if path is not None:
        page = Path(path)
        before, rest = page.read_text().split(BEGIN)
        page.write_text(f"{before}{BEGIN}\n{chr(10).join(told)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
