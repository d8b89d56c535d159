"""Sinks that have each detection once, though micro-batches are written again."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support import random_events

from coincide.adapters.order import sort_batch
from coincide.connectors.sinks import by_batch, by_key
from coincide.engines import embedded
from coincide.engines.identity import Keys, digests_of
from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.rulebook import loads
from coincide.spark import detect

pytestmark = pytest.mark.spark


def test_what_is_written_again_is_there_once(spark: Any, tmp_path: Path) -> None:
    """By the number of its micro-batch, and by its key, which is that of the embedded engine."""
    rules = loads("monitor m by k = repeat { push(x, v: v) { sequential { a, b } } }")
    events = [event for event in random_events(300) if event.lo == event.hi and "k" in event.attributes]
    rows = [(e.type, e.hi / 1000, e.id, e.attributes["k"], e.attributes["v"]) for e in events]
    frame = spark.createDataFrame(rows, "type string, time double, id string, k double, v double")
    found = frame.transform(detect(rules, keys=True)).persist()
    keys = Keys(digests_of(rules))
    made = list(embedded.run(rules, [sort_batch(EventBatch(events))], None, "interpreter"))
    expected = {key: record(event) for batch in made for key, event in zip(keys.of(batch), batch.events, strict=True)}
    assert expected

    folder, database = tmp_path / "found", tmp_path / "found.db"
    files, table = by_batch(str(folder)), by_key(f"sqlite:///{database}#detections")
    first, rest = found.filter("k = 1"), found.filter("k != 1")
    for number, part in ((0, first), (1, rest), (1, rest)):
        files(part, number)
        table(part, number)
    assert sorted(row["_key"] for row in spark.read.parquet(str(folder)).collect()) == sorted(expected)
    with sqlite3.connect(database) as connection:
        kept = {key: json.loads(text) for key, text in connection.execute("SELECT key, record FROM detections")}
    assert kept == expected


def test_a_sink_by_key_needs_keys(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(CoincideError, match="keys=True"):
        by_key(f"sqlite:///{tmp_path / 'x.db'}#t")(spark.range(1), 0)
    with pytest.raises(CoincideError, match="names no table"):
        by_key(f"sqlite:///{tmp_path / 'x.db'}")
