"""What would one write instead? The questions of benchmarks/peers for coincide, for Polars and for a loop in Python.

Each gets the events as columns in memory, and gives what it finds as columns or as a list; the rows are equal. Counted is the
processor time of all threads. `python -m benchmarks.alternatives docs/performance.md` writes the table into the page."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np
import polars as pl
import pyarrow as pa

from benchmarks.measure import best
from benchmarks.pages import circumstances, put
from benchmarks.peers.contestants import plain_rows
from benchmarks.peers.questions import QUESTIONS, Question, Row
from benchmarks.workloads import fresh
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.model.table import EventTable

EVENTS, RUNS = 300_000, 3
HEAD = ["| question | rows | coincide | in | Polars | a loop in Python |", "| --- | ---: | ---: | --- | ---: | ---: |"]


def table_of(events: pa.Table) -> EventTable:
    hi = events["time"].to_numpy() * 1000
    coded = {name: events[name].combine_chunks().dictionary_encode() for name in ("type", "k")}
    plain = {name: events[name].combine_chunks() for name in ("id", "v")}
    return EventTable(hi, hi, {**coded, **plain})


def by_rules(graph: Graph, table: EventTable) -> list[EventBatch]:
    state = graph.initial()
    return [graph.advance(state, EventBatch(table=fresh(table))), graph.finish(state)]


def by_loop(question: Question, events: pa.Table) -> list[Row]:
    return list(question.loop(zip(*(events[name].to_pylist() for name in events.column_names), strict=True)))


def line(question: Question, size: int = EVENTS, runs: int = RUNS) -> str:
    """Of the table; raises if not all find the same."""
    events = question.stream(size).closed
    table, frame = table_of(events), pl.DataFrame(pl.from_arrow(events))
    polars, answer = best(lambda: question.polars(frame), runs)
    loop, rows = best(lambda: by_loop(question, events), runs)
    expected = shown(rows, events)
    assert expected
    assert shown(answer.rows(), events) == expected, question.words
    ours = {}
    for language, (ending, text, told) in question.rules.items():
        graph = Graph(loads(text, ending[1:]).plans("kernel"))
        ours[language], made = best(lambda graph=graph: by_rules(graph, table), runs)
        found = (told(record(detection)) for batch in made for detection in batch.events)
        assert shown(found, events) == expected, (question.words, language)
    least = min(ours, key=lambda language: ours[language])
    speeds = [f"{len(events) / seconds / 1e6:.2f}" for seconds in (ours[least], polars, loop)]
    return f"| {question.words} | {len(expected):,} | {speeds[0]} | {least} | {speeds[1]} | {speeds[2]} |"


def shown(rows: Iterable[Row], events: pa.Table) -> set[Row]:
    return plain_rows(rows, len(events))


def main(path: str | None = None) -> None:
    about = circumstances(f"Polars {pl.__version__}", f"pyarrow {pa.__version__}", f"NumPy {np.__version__}")
    told = [f"Million events for each second of processor time; {EVENTS:,} events; {about}.", "", *HEAD]
    told += map(line, QUESTIONS.values())
    print("\n" + "\n".join(told))
    if path is not None:
        put(path, "benchmarks.alternatives", told)


if __name__ == "__main__":
    main(*sys.argv[1:])
