"""Sinks that have each detection once, though micro-batches are written again."""

from __future__ import annotations

import json
import sqlite3
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import random_events

from coincide.adapters.order import sort_batch
from coincide.connectors import job
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


MERGE = """MERGE INTO detections d USING staging s ON d."_key" = s."_key"
    WHEN NOT MATCHED THEN INSERT VALUES (s."_key", s."type", s."k")"""


def test_a_database_that_only_jdbc_reaches(spark: Any, compiling: None) -> None:
    """The recipe of docs/spark-clusters.md, with the database that Spark brings along."""
    url = "jdbc:derby:memory:sinks;create=true"
    database = spark._jvm.java.sql.DriverManager.getConnection(url)

    def merge(statement: str) -> None:
        database.createStatement().executeUpdate(statement)

    def write(batch: Any, number: int) -> None:
        texts = {"createTableColumnTypes": "_key VARCHAR(64), type VARCHAR(64)"}
        batch.selectExpr("_key", "type", "k").write.options(**texts).jdbc(url, "staging", "overwrite")
        merge(MERGE)

    merge('CREATE TABLE detections ("_key" VARCHAR(64) PRIMARY KEY, "type" VARCHAR(64), "k" BIGINT)')
    rows = [("a", 1, 1), ("b", 2, 1), ("a", 3, 2), ("b", 4, 2)]
    frame = spark.createDataFrame(rows, "type string, time long, k long")
    found = frame.transform(detect(loads("monitor m by k = repeat { push(x) { sequential { a, b } } }"), keys=True)).persist()
    for number, part in ((0, found.filter("k = 1")), (1, found), (1, found)):
        write(part, number)
    kept = spark.read.jdbc(url, "detections").collect()
    assert sorted(row["_key"] for row in kept) == sorted(row["_key"] for row in found.collect())
    assert sorted(row["k"] for row in kept) == [1, 2]


def test_a_job_keeps_what_is_no_event(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch, with the text of what is no JSON; and how much that was."""
    (tmp_path / "m.ecl").write_text("monitor m by k = repeat { push(x) { sequential { a, b } } }", encoding="utf-8")
    records = ['{"type": "a", "time": 1, "k": 1}', '{"type": "b", "time": 2, "k": 1}', '{"type": "a", ', '{"time": 3}']
    (tmp_path / "events.json").write_text("\n".join(records), encoding="utf-8")
    words = ["m.ecl", "--source", "events.json", "--sink", "found", "--rejects", "rejected"]
    assert _run_job(spark, tmp_path, words, "--schema", "type string, time long, k long") == 0
    assert capsys.readouterr().err.startswith("warning: 2 of 4 rows have no type or no time: left out")
    assert [row["type"] for row in spark.read.parquet(str(tmp_path / "found")).collect()] == ["x"]
    rejected = spark.read.parquet(str(tmp_path / "rejected")).collect()
    assert {(row["reason"], row["_corrupt_record"]) for row in rejected} == {
        ("not JSON, or not of these types", '{"type": "a", '),
        ("missing type", None),
    }


SIGMA = """title: A login
name: login
logsource: {category: network_connection}
detection: {selection: {user.name: root}, condition: selection}
"""


def test_a_job_keeps_what_came_too_late_and_reads_rules_of_sigma(spark: Any, tmp_path: Path) -> None:
    """A stream; what is far in the future is believed if that is asked for, so that all that follows is late."""
    (tmp_path / "login.yml").write_text(SIGMA, encoding="utf-8")
    columns = "`event.category` string, `@timestamp` timestamp, `user.name` string"
    options = ("--schema", columns, "--format", "json", "--sigma-mapping", "ecs", "--ahead", "none")
    (tmp_path / "events").mkdir()
    words = ["login.yml", "--source", "events", "--sink", "found", "--checkpoint", "kept", "--late", "late"]
    for number, day in enumerate(("2026-01-01", "2036-01-01", "2026-01-02")):
        record = {"event.category": "network", "@timestamp": f"{day}T00:00:00Z", "user.name": "root"}
        (tmp_path / "events" / f"{number}.json").write_text(json.dumps(record), encoding="utf-8")
        assert _run_job(spark, tmp_path, words, *options) == 0
    assert len(spark.read.parquet(str(tmp_path / "found")).collect()) == 1
    late = spark.read.parquet(str(tmp_path / "late")).collect()
    assert [str(row["time"]["hi"])[:10] for row in late] == ["2026-01-02"]


def _run_job(spark: Any, folder: Path, words: Sequence[str], *options: str) -> int:
    parser = ArgumentParser()
    parser.add_argument("rules", nargs="+")
    job.arguments(parser)
    where = [word if word.startswith("-") else str(folder / word) for word in words]
    return job.run(spark, parser.parse_args([*where, *options]))
