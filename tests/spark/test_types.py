"""Types of columns in resulting DataFrames, and one frame for each type of detections."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import chained, finished, random_events

import coincide
from coincide.engines.identity import Keys, digests_of
from coincide.engines.spark import runner
from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.rulebook import loads
from coincide.spark import by_type, detect

pytestmark = pytest.mark.spark

SCHEMA = "type string, time long, user string, n double, ok boolean"
ROWS = [("a", 1000, "eve", 1.0, True), ("b", 2000, "eve", 2.5, False), ("b", 2500, "eve", 4.0, None)]
ECCO = """detect pair per user = a as x ; b as y  where y.n > x.n
    give n = x.n, both = x.n + y.n, who = x.user, good = y.ok, wait = end(y) - start(x), name = concat(x.user, '!'), kind = y.type
detect many = b*{2} within 1min  give count, last = user
detect whole = b where n > 3"""
TYPED = {
    "n": "double",
    "both": "double",
    "who": "string",
    "good": "boolean",
    "wait": "double",
    "name": "string",
    "kind": "string",
    "count": "double",
    "last": "string",
    "user": "string",
    "ok": "boolean",
    "certainty": "string",
}


def test_ecco_gives_typed_columns(spark: Any) -> None:
    found = detect(loads(ECCO, "ecco"), spark.createDataFrame(ROWS, SCHEMA))
    assert {name: kind for name, kind in found.dtypes if name not in ("type", "time", "from", "source")} == TYPED
    rows = {(row["type"], row["both"]): row for row in found.collect()}
    pair = rows["pair", 3.5]
    assert (pair["n"], pair["who"], pair["good"], pair["wait"], pair["name"], pair["kind"]) == (
        1.0,
        "eve",
        False,
        1000.0,
        "eve!",
        "b",
    )
    assert (rows["many", None]["count"], rows["whole", None]["n"]) == (2.0, 4.0)


def test_a_let_tells_the_type_of_what_it_gives(spark: Any) -> None:
    rules = loads("let hot = a where n > 0 give v = n, w = user\ndetect x = hot as h give v = h.v, w = h.w", "ecco")
    found = detect(rules, spark.createDataFrame(ROWS, SCHEMA))
    assert (dict(found.dtypes)["v"], dict(found.dtypes)["w"]) == ("double", "string")
    assert [(row["v"], row["w"]) for row in found.collect()] == [(1.0, "eve")]


@pytest.mark.parametrize("kind", ["decimal(19,0)", "decimal(38,0)"])
def test_whole_decimals_keep_their_digits_or_stop_the_run(spark: Any, kind: str) -> None:
    """Keys are told apart and handed on by all their digits; beyond 64 bits, where they would be merged, they are refused."""
    rules = loads("detect pair per k = a ; b", "ecco")

    def found(*keys: int) -> list[int]:
        rows = [(name, n, Decimal(key)) for n, (name, key) in enumerate(zip("abb", keys, strict=True))]
        return [row["k"] for row in detect(rules, spark.createDataFrame(rows, f"type string, time long, k {kind}")).collect()]

    assert found(2**53 + 1, 2**53, 2**53 + 1) == [2**53 + 1]
    told = "rules.ecco:1:17: error: attribute 'k' has integers of more than 64 bits: cast it to double, or to a string"
    with pytest.raises(Exception, match=told):
        found(2**63, 2**63, 1)


def test_long_keys_are_told_apart_by_their_last_digit(spark: Any, tmp_path: Path) -> None:
    """2^53 and 2^53 + 1 are one number as doubles: here they are two, in a batch and in a stream."""
    rules = loads("monitor m by k = repeat { push(pair) { sequential { a, b } } }")
    keys = [("a", 2**53), ("a", 2**53 + 1), ("b", 2**53 + 1), ("b", 2**53 + 2), ("b", 2**53), ("a", 1)]
    rows = [(kind, 1000 * second, key) for second, (kind, key) in enumerate(keys, 1)]
    schema = "type string, time long, k long"
    frame = spark.createDataFrame(rows, schema)
    wanted = [(3, 2**53 + 1), (5, 2**53)]

    def found(rows: Any) -> list[tuple[int, int]]:
        return sorted((round(row["time"]["hi"].timestamp()), row["k"]) for row in rows)

    assert found(detect(rules, frame).collect()) == wanted
    frame.coalesce(1).write.parquet(str(tmp_path / "events"))
    stream = detect(rules, spark.readStream.schema(schema).parquet(str(tmp_path / "events")), delay="0s")
    writer = stream.writeStream.format("memory").queryName("long_keys").option("checkpointLocation", str(tmp_path / "kept"))
    finished(writer.trigger(availableNow=True))
    assert found(spark.table("long_keys").collect()) == wanted


def test_one_frame_a_type_with_its_own_columns(spark: Any, tmp_path: Path) -> None:
    rules = loads(
        """monitor m by user = repeat { push(small, v: n) { a } }
           monitor o = repeat { select { push(text, v: user) { b and n < 3 }, push(none) { b and n > 3 } } }"""
    )
    found = detect(rules, spark.createDataFrame(ROWS, SCHEMA))
    assert dict(found.dtypes)["v"].startswith("struct")
    found.write.parquet(str(tmp_path / "found"))
    for frame in (found, found.filter("true"), spark.read.parquet(str(tmp_path / "found"))):
        frames = by_type(frame)
        envelope = ["type", "time", "from", "source"]
        assert {kind: each.columns for kind, each in frames.items()} == {
            "small": [*envelope, "user", "v"],
            "text": [*envelope, "v"],
            "none": envelope,
        }
        assert [row["v"] for row in frames["small"].collect()] == [1.0]
        assert [row["v"] for row in frames["text"].collect()] == ["eve"]
        assert frames["none"].count() == 1
    both = detect(rules, spark.createDataFrame(ROWS, SCHEMA), late=True, rejects=True)
    assert by_type(both)["none"].columns == envelope
    with pytest.raises(CoincideError, match="does not tell which columns"):
        by_type(spark.createDataFrame(ROWS, SCHEMA))


def test_keys_are_those_of_the_embedded_engine(spark: Any, tmp_path: Path) -> None:
    events = sorted(random_events(400, span=300), key=lambda e: e.hi)
    for event in events:
        event.attributes.pop("w", None)  # a column of several types
    wanted = sorted(d["_key"] for d in coincide.detect(chained(), events, keys=True))
    rows = [(e.type, (e.lo // 1000, e.hi // 1000), e.id, *(e.attributes.get(n) for n in "ksv")) for e in events]
    rows.append(("heartbeat", (10**9, 10**9), None, None, None, None))
    schema = "type string, time struct<lo: bigint, hi: bigint>, id string, k double, s string, v double"
    transformed = detect(chained(), keys=True, delay="0 seconds")
    found = spark.createDataFrame(rows, schema).transform(transformed)
    assert sorted(row["_key"] for row in found.collect()) == wanted

    told = Keys(digests_of(chained()))  # as the command has them
    assert sorted(key for batch in runner.run_batch(chained(), [EventBatch(events)]) for key in told.of(batch)) == wanted

    folder = str(tmp_path / "in")
    for half in (rows[:200], rows[200:]):
        spark.createDataFrame(half, schema).coalesce(1).write.mode("append").parquet(folder)
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    got: list[str] = []
    query = (
        stream.transform(transformed)
        .writeStream.foreachBatch(lambda batch, _: got.extend(row["_key"] for row in batch.select("_key").collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(got) == wanted
