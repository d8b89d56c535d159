"""Rules of Sigma on Spark: how often the source is read, and correlations that are spread by what they group by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.spark import detect

pytestmark = pytest.mark.spark

RULE = "name: %s\nlogsource: {category: log}\ndetection: {s: {a|contains: %s}, condition: s}\n"
COUNT = "type: event_count, rules: [x, y], group-by: [k], timespan: 1s, condition: {gte: 3}, generate: true"
MANY = f"name: many\ncorrelation: {{{COUNT}}}\n"
EVENTS = [{"type": "log", "id": str(n), "time": 10 * n, "a": "xyz"[n % 3], "k": f"k{n % 7 % 3}"} for n in range(60)]


def scans(frame: Any) -> int:
    return str(frame._jdf.queryExecution().executedPlan().toString()).count("FileScan")


def asdict(row: Any) -> dict[str, Any]:
    return {"k": None, "count": None, **row.asDict()}


def embedded(book: Rulebook, events: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return sorted((d["type"], str(d.get("k"))) for d in coincide.detect(book, events))


def test_detection_rules_and_correlations_read_the_source_once(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(EVENTS).write.parquet(str(tmp_path / "events"))
    frame = spark.read.parquet(str(tmp_path / "events"))
    simple = load(SourceText("r.yml", "---\n".join(RULE % (name, name) for name in "xyz")))
    assert scans(detect(simple, frame)) == 1
    book = load(SourceText("r.yml", "---\n".join([*(RULE % (name, name) for name in "xyz"), MANY])))
    found = detect(book, frame)
    assert scans(found) == 1
    assert "hashpartitioning(tag" in str(found._jdf.queryExecution().executedPlan().toString())
    assert sorted((row["type"], str(asdict(row)["k"])) for row in found.collect()) == embedded(book, EVENTS)


def test_an_event_of_several_groups_is_in_each_of_them(spark: Any) -> None:
    events = [{**event, "k": [event["k"], "all"]} for event in EVENTS]
    book = load(SourceText("r.yml", "---\n".join([*(RULE % (name, name) for name in "xy"), MANY])))
    found = [row for row in detect(book, spark.createDataFrame(events)).collect() if row["type"] == "many"]
    expected = [d for d in coincide.detect(book, events) if d["type"] == "many"]
    assert sorted(str(row["k"]) for row in found) == sorted(d["k"] for d in expected)
    assert "all" in {d["k"] for d in expected}
