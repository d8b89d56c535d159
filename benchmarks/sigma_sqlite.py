"""A pack of Sigma rules as other tools run it: pySigma makes an SQL query of each rule, and SQLite asks a table of the events
(Zircolite's way). The same rules and events as in many_sigma, fewer events; matches must be equal."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from functools import lru_cache
from pathlib import Path
from time import process_time

from benchmarks.many_sigma import RULES, SOURCES, events, fresh, rules
from benchmarks.measure import best, show
from coincide import load
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable

EVENTS = 20_000
NAMES = list(dict.fromkeys(name for names in SOURCES.values() for name in names))
PIPELINE = """\
name: kinds
transformations:
  - {id: kind, type: add_condition, template: true, conditions: {kind: 'windows.$category'}}
"""
Matches = set[tuple[str, str]]
"""Types of detections and ids of events."""


def queries(folder: Path) -> dict[str, str]:
    """For each rule, by the type of its detections, its query."""
    from sigma.backends.sqlite import sqliteBackend  # type: ignore[import-not-found]
    from sigma.collection import SigmaCollection
    from sigma.processing.pipeline import ProcessingPipeline

    backend = sqliteBackend(ProcessingPipeline.from_yaml(PIPELINE))
    files = sorted(folder.glob("*.yml"))
    return {f"rule_{n}": backend.convert(SigmaCollection.from_yaml(file.read_text()))[0] for n, file in enumerate(files)}


def database(table: EventTable) -> sqlite3.Connection:
    """Compared without case, as the rules ask for; with an index by what log sources ask for."""
    store = sqlite3.connect(":memory:")
    kinds = {name: "INTEGER" if name == "DestinationPort" else "TEXT COLLATE NOCASE" for name in NAMES}
    store.execute(f"CREATE TABLE logs (id, kind, {', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
    columns = [table.fields[name].to_pylist() for name in ("id", "type", *NAMES)]
    store.executemany(f"INSERT INTO logs VALUES ({', '.join('?' * len(columns))})", zip(*columns, strict=True))
    store.execute("CREATE INDEX kinds ON logs (kind)")
    pattern = lru_cache(None)(re.compile)
    store.create_function("regexp", 2, lambda wanted, text: text is not None and pattern(wanted).search(str(text)) is not None)
    return store


def asked(store: sqlite3.Connection, made: dict[str, str]) -> Matches:
    return {(name, row[0]) for name, query in made.items() for row in store.execute(query)}


def main() -> None:
    table = events(EVENTS)
    with tempfile.TemporaryDirectory() as name:
        rules(RULES, Path(name))
        begun = process_time()
        graph = Graph(load(name).plans("kernel"))
        state = graph.initial()
        graph.advance(state, EventBatch(table=fresh(table)))
        loading = process_time() - begun
        taken, found = best(lambda: graph.advance(state, EventBatch(table=fresh(table))), times=3)
        ours: Matches = {(event.type, key[4]) for event in found.events for key in event.origin}
        try:
            begun = process_time()
            made = queries(Path(name))
            converting = process_time() - begun
        except ModuleNotFoundError:
            print("\nthe other way needs pySigma's backend: pip install pysigma-backend-sqlite")
            return
    begun = process_time()
    store = database(table)
    filling = process_time() - begun
    begun = process_time()
    theirs = asked(store, made)
    asking = process_time() - begun
    assert ours == theirs, sorted(ours ^ theirs)[:10]
    show(
        f"{RULES:,} rules of Sigma over {EVENTS:,} Windows events; {len(ours):,} matches, the same in both (CPU seconds)",
        {
            "here: loading, and a first run": f"{loading:.1f} s",
            "here: events": f"{EVENTS / taken / 1e3:,.1f} k events/s",
            "pySigma: rules to queries": f"{converting:.1f} s",
            "SQLite: filling the table": f"{filling:.1f} s",
            "SQLite: queries": f"{EVENTS / asking / 1e3:,.1f} k events/s",
            "ratio": f"{asking / taken:,.0f}",
        },
    )


if __name__ == "__main__":
    main()
