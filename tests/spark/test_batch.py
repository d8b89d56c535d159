"""Batch DataFrames: the same detections as the embedded engine's."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import chained, expected, random_events, texts, texts_of_rows

import coincide
from coincide import spark as on_spark
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import event_of
from coincide.engines.spark import runner
from coincide.engines.spark.frame import MIXED
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive
from coincide.rulebook import load, loads

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


TIED = [
    *(("ab"[n % 2], n // 8, None if n % 3 else f"i{n}", None, n) for n in range(24)),  # some have no id
    *(("a", 9, "same", None, n) for n in range(4)),  # an id that is none
    *(("b", 9, None, *pair) for pair in ((None, 7), (7, None))),
]


@pytest.mark.parametrize("ids", [True, False])
def test_the_order_of_rows_does_not_matter(spark: Any, ids: bool) -> None:
    """Where ids are missing or not unique, at one instant."""
    rules = loads("monitor m = repeat { push(x, v: v, w: w) { sequential { a, b } } }\nmonitor n = repeat { push(y) { a or b } }")
    found = []
    for seed in range(3):
        shuffled = Random(seed).sample(TIED, len(TIED))
        frame = spark.createDataFrame(shuffled, "type string, time int, id string, v int, w int").coalesce(1)
        found.append(texts_of_rows(on_spark.detect(rules, frame if ids else frame.drop("id")).collect()))
    assert found[0] == found[1] == found[2]
    assert len({line for line in found[0] if '"y"' in line}) == len(TIED) - 3 * ids


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
        on_spark.detect(rules, spark.createDataFrame([("a", 1, {"x": 1})], "type string, time int, v map<string,int>"))


NESTED = [
    {
        "type": 4625,
        "time": 1000,
        "id": "1",
        "process": {"name": "sh", "parent": {"pid": 7}},
        "tags": ["x"],
        "files": [{"n": "a"}],
    },
    {"type": 4625, "time": 2000, "id": "2", "process": {"name": "sh", "parent": None}, "tags": ["x", "y"], "dotted.name": "q"},
    {"type": 4624, "@timestamp": "1970-01-01T02:00:03+02:00", "id": "3", "process": {"name": "sh", "parent": {"pid": 9}}},
    {"type": 4625, "time": 4000, "id": "4", "process": None, "tags": None, "dotted": {"name": "r"}},
]
NESTED_SCHEMA = (
    "type int, time bigint, `@timestamp` string, id string, process struct<name: string, parent: struct<pid: int>>, "
    "tags array<string>, files array<struct<n: string>>, dotted struct<name: string>, `dotted.name` string"
)
NESTED_RULES = """
monitor hit by `process.name` = repeat {
  push(hit, pid: `process.parent.pid`, tag: tags, file: `files.n`) { sequential { `4625`, `4624` } } }
monitor each = repeat {
  push(each, d: `dotted.name`, tag: tags) { `4625` and (`process.parent.pid` > 3 or `dotted.name` is not null) } }
monitor keyed by tags = repeat { push(keyed) { `4625` } }
"""


def test_structs_and_arrays(spark: Any, tmp_path: Path) -> None:
    rules = loads(NESTED_RULES)
    events = [event_of(raw, FieldMapping(), 1) for raw in NESTED]
    spark.createDataFrame(NESTED, NESTED_SCHEMA).write.parquet(str(tmp_path / "nested"))
    frame = spark.read.parquet(str(tmp_path / "nested"))
    assert texts_of_rows(frame.transform(on_spark.detect(rules)).collect()) == expected(rules, events)
    few = frame.transform(on_spark.detect(loads("monitor m by `process.name` = repeat { push(x) { `4625` } }")))
    (read,) = re.findall(r"ReadSchema: (.*)", few._jdf.queryExecution().executedPlan().toString())
    assert "process:struct<name:string>" in read
    assert "tags" not in read


def test_ranges_are_structs(spark: Any, tmp_path: Path) -> None:
    """As in columns of Arrow and pandas; in batches and in streams."""
    rules = load(Path(__file__).parents[1] / "conformance/cases/cdl/set-and-range-of-text/rules.cdl.xml")
    bounds = [("k", "z"), ("n", None), (None, "c"), ("z", "a"), (None, None), None, ("m", "m")]
    seen = [("seen", f"e{number}", number, span) for number, span in enumerate(bounds, 1)]
    rows = [("name", "n", 0, ("m", "m")), *seen, ("heartbeat", "h", 99, None)]
    frame = spark.createDataFrame(rows, "type string, id string, time long, v struct<lo:string,hi:string>")
    told = sorted((each["type"], each["from"]) for each in coincide.detect(rules, frame.toArrow()))
    assert {kind for kind, _ in told} == {"surely-less", "surely-not-less", "may-equal", "equal"}
    frame.coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    found: list[Any] = []
    stream = stream.transform(on_spark.detect(rules, delay="0 seconds"))
    writer = stream.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    writer.option("checkpointLocation", str(tmp_path / "kept")).trigger(availableNow=True).start().awaitTermination()
    for made in (frame.transform(on_spark.detect(rules)).collect(), found):
        assert sorted((row.type, row["from"]) for row in made) == told
