"""Batch DataFrames: the same detections as the embedded engine's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support import chained, expected, random_events, texts, texts_of_rows

from coincide import spark as on_spark
from coincide.adapters.mapping import FieldMapping
from coincide.engines.spark import runner
from coincide.engines.spark.frame import MIXED
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive
from coincide.rulebook import loads

pytestmark = pytest.mark.spark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = "type string, time struct<lo: bigint, hi: bigint>, id string, k double, s string, v double, w " + MIXED.simpleString()


def rows(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.type, (e.lo // 1000, e.hi // 1000), e.id, *(e.attributes.get(n) for n in "ksv"), _mixed(e)) for e in events]


def _mixed(event: Event) -> tuple[Any, ...] | None:
    value = event.attributes.get("w")
    return None if value is None else (None, value, None) if isinstance(value, str) else (value, None, None)


@pytest.mark.parametrize("tier", ["kernel", "interpreter"])
def test_groups_chains_intervals_nulls_and_equal_times(spark: Any, tier: str) -> None:
    events = random_events(2000, span=500)
    frame = spark.createDataFrame(rows(events), SCHEMA).repartition(3)
    found = frame.transform(on_spark.detect(chained(), tier=tier))
    assert found.columns == ["type", "time", "from", "source", "k", "s", "twice", "v", "w", "was"]
    assert dict(found.dtypes)["twice"] == "double"
    assert texts_of_rows(found.collect()) == expected(chained(), events)


def test_times_in_every_form(spark: Any) -> None:
    rules = loads("monitor m by k = repeat { push(x) { sequential { a, b } } }")
    events = [e for e in random_events(300) if e.lo == e.hi]
    moments = [EPOCH + timedelta(microseconds=e.hi) for e in events]
    data = [
        (
            e.type,
            e.id,
            e.attributes.get("k"),
            e.hi // 1000,
            e.hi / 1e6,
            m,
            m.replace(tzinfo=None),
            m.isoformat(),
            m.strftime(PLAIN),
        )
        for e, m in zip(events, moments, strict=True)
    ]
    kinds = "ms bigint, seconds double, moment timestamp, local timestamp_ntz, iso string, naive string"
    frame = spark.createDataFrame(data, f"type string, id string, k double, {kinds}")
    frame = frame.selectExpr("*", "array(ms, ms) as pair", "struct(moment as lo, moment as hi) as both").cache()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # must not matter
    try:
        for name, unit in TIMES.items():
            found = on_spark.detect(rules, frame, mapping=FieldMapping(time=name, unit=unit))
            assert texts_of_rows(found.collect()) == expected(rules, events), name
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
        frame.unpersist()


PLAIN = "%Y-%m-%d %H:%M:%S.%f"
TIMES = {"ms": "ms", "seconds": "s", "moment": "ms", "local": "ms", "iso": "ms", "naive": "ms", "pair": "ms", "both": "ms"}


def test_keys_of_mixed_types_through_the_runner(spark: Any) -> None:
    events = random_events(600, keys=(1.0, "1", True, 2.0, None))
    made = [e for b in runner.run_batch(chained(), [EventBatch(events[:300]), EventBatch(events[300:])]) for e in b.events]
    assert texts(made) == expected(chained(), events)
    assert [e.hi for e in made] == sorted(e.hi for e in made)


def test_names_that_differ_in_case(spark: Any) -> None:
    rules = loads("monitor m by K = repeat { push(x, V: v, v: V) { sequential { a, b } } }")
    events = [
        primitive(kind, n * 1000, n * 1000, str(n), {"K": 1.0, "k": float(n), "v": float(n), "V": f"big{n}"})
        for n, kind in enumerate("abab")
    ]
    made = [e for b in runner.run_batch(rules, [EventBatch(events)]) for e in b.events]
    assert texts(made) == expected(rules, events)


def test_without_ids_each_row_gets_the_same_one_every_time(spark: Any) -> None:
    rules = loads("monitor m = repeat { push(x) { a } }")
    frame = spark.createDataFrame([("a", 1, 2.0), ("a", 2, 2.0), ("b", 3, 2.0)], "type string, time int, v double")
    first, second = (
        [r["from"] for r in on_spark.detect(rules, f).orderBy("time.lo").collect()] for f in (frame, frame.coalesce(1))
    )
    assert first == second
    assert len({identifier for [identifier] in first}) == 2


def test_a_constant_type_and_an_end_column(spark: Any) -> None:
    rules = loads("monitor m = repeat { push(x) { trip and duration() >= 2000 } }")
    frame = spark.createDataFrame([(0, 2000, 7), (0, 1999, 8), (5, 1, 9)], "start int, stop int, id int")
    mapping = FieldMapping(time="start", end="stop", constant_type="trip")
    [row] = on_spark.detect(rules, frame, mapping=mapping).collect()
    assert row["from"] == ["7"]
    assert row.time.hi.timestamp() - row.time.lo.timestamp() == 2


def test_what_is_no_event_is_left_out(spark: Any) -> None:
    rules = loads("monitor m = repeat { push(x, v: v) { true } }")
    data = [("a", 1, 1.0), (None, 2, 1.0), ("a", None, 1.0), ("", 3, 1.0), ("heartbeat", 4, 1.0), ("a", 5, float("inf"))]
    frame = spark.createDataFrame(data, "type string, time int, v double")
    found = on_spark.detect(rules, frame).orderBy("time.lo").collect()
    assert [(round(r.time.lo.timestamp() * 1000), r.v) for r in found] == [(1, 1.0), (5, None)]
    assert on_spark.detect(rules, frame.limit(0)).collect() == []


def test_only_what_rules_need_is_read(spark: Any, tmp_path: Any) -> None:
    events = random_events(50)
    spark.createDataFrame(rows(events), SCHEMA).write.parquet(str(tmp_path / "events"))
    rules = loads("monitor m by k = repeat { push(x) { sequential { a and v > 0.5, b } } }")
    found = on_spark.detect(rules, spark.read.parquet(str(tmp_path / "events")))
    plan = found._jdf.queryExecution().executedPlan().toString()
    scan = next(line for line in plan.splitlines() if "ReadSchema" in line)
    assert "ReadSchema: struct<type:string,time:struct<lo:bigint,hi:bigint>,id:string,k:double,v:double>" in scan
    assert "EqualTo(type,a)" in scan  # the text is cut after a while
    assert texts_of_rows(found.collect()) == expected(rules, events)


def test_frames_that_cannot_serve(spark: Any) -> None:
    rules = loads("monitor m = push(x) { a and v > 1 }")
    with pytest.raises(InputError, match="no column 'time'"):
        on_spark.detect(rules, spark.createDataFrame([("a", 1)], "type string, at int"))
    with pytest.raises(InputError, match="attribute 'v'"):
        on_spark.detect(rules, spark.createDataFrame([("a", 1, [1])], "type string, time int, v array<int>"))
