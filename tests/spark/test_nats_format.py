"""Spark's format `nats` against a real server: every message once, whatever is restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import Nats
from support import expected, finished, random_events, texts_of_rows

from coincide.connectors.nats import SCHEMA, NatsFormat
from coincide.errors import CoincideError
from coincide.model.event import record
from coincide.rulebook import loads
from coincide.spark import decoded, detect, register, split

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nats]:
    made = Nats(tmp_path_factory.mktemp("nats"))
    yield made
    made.stop()


@pytest.fixture
def reading(spark: Any) -> Any:
    return register(spark, "nats").readStream.format("nats")


def run(frame: Any, folder: Path) -> list[int]:
    """Everything that is there, then stops; the numbers of rows of the micro-batches."""
    sink = frame.writeStream.format("parquet").option("path", str(folder / "rows"))
    query = finished(sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True))
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def rows(spark: Any, folder: Path) -> list[tuple[int, str]]:
    return sorted((row.sequence, bytes(row.value).decode()) for row in spark.read.parquet(str(folder / "rows")).collect())


def test_every_message_once(spark: Any, reading: Any, nats: Nats, tmp_path: Path) -> None:
    url = nats.make("ONCE")
    nats.publish("ONCE.a", [b"%d" % n for n in range(25)])
    limited = reading.option("maxOffsetsPerTrigger", 10).option("minPartitions", 3)
    assert run(limited.load(url), tmp_path) == [10, 10, 5]
    nats.stop()
    nats.start()
    nats.publish("ONCE.b", [b"%d" % n for n in range(25, 31)])
    assert run(limited.load(url), tmp_path) == [6]
    assert rows(spark, tmp_path) == [(n + 1, str(n)) for n in range(31)]
    assert run(limited.load(url), tmp_path) == []


def test_one_subject_among_others(spark: Any, reading: Any, nats: Nats, tmp_path: Path) -> None:
    """What is of other subjects makes no micro-batch of its own."""
    nats.make("AMONG")
    for part in range(3):
        nats.publish("AMONG.rare", [b"%d" % part])
        nats.publish("AMONG.often", [b"x"] * 40)
    url = f"{nats.address}/AMONG.rare?stream=AMONG"
    assert run(reading.option("maxOffsetsPerTrigger", 10).load(url), tmp_path) == [1, 1, 1]
    assert rows(spark, tmp_path) == [(1, "0"), (42, "1"), (83, "2")]


def test_a_batch_has_all_columns(spark: Any, nats: Nats) -> None:
    url = nats.make("BATCH")
    nats.publish("BATCH.x", [b"a", b"\xff"])
    found = register(spark, "nats").read.format("nats").option("minPartitions", 2).load(url)
    assert [(bytes(r.value), r.subject, r.sequence) for r in found.collect()] == [(b"a", "BATCH.x", 1), (b"\xff", "BATCH.x", 2)]
    assert found.filter("published > current_timestamp() - interval 1 hour and published <= current_timestamp()").count() == 2
    later = register(spark, "nats").read.format("nats")
    assert [later.option("startingOffsets", start).load(url).count() for start in ("latest", "2", "7")] == [0, 1, 0]


@pytest.mark.matrix  # as those of Kafka, in the engine that is the same
def test_detections_are_those_of_the_embedded_engine(spark: Any, reading: Any, nats: Nats, tmp_path: Path) -> None:
    rules = loads("monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }")
    events = [event for event in random_events(400) if event.lo == event.hi and "k" in event.attributes]
    url = nats.make("DETECT")
    records = [{**record(event), "id": event.id} for event in sorted(events, key=lambda event: event.hi)]
    end = {"type": "heartbeat", "time": 10**6}
    nats.publish("DETECT.all", [*records[:100], b"no json", b'{"type": "a"}\n{"type": "b"}', *records[100:], end])
    frame = decoded(
        reading.option("maxOffsetsPerTrigger", 150).load(url), "type string, time long, id string, k double, v double"
    )
    run(frame.transform(detect(rules, delay="3 seconds", rejects=True)), tmp_path)
    found, rejected = split(spark.read.parquet(str(tmp_path / "rows")))
    assert texts_of_rows(found.collect()) == expected(rules, events)
    assert found.count() > 5
    assert sorted(row.type or "" for row in rejected.collect()) == ["", "a", "b"]


def test_columns_that_are_kept(spark: Any, nats: Nats) -> None:
    url = nats.make("KEPT")
    nats.publish("KEPT.door", [b'{"n": 1}\n\n{"n": 2}', b"["])
    messages = register(spark, "nats").read.format("nats").load(url)
    found = decoded(messages, "n int, _corrupt_record string", keep=["subject", "sequence"]).collect()
    assert [tuple(row) for row in found] == [("KEPT.door", 1, 1, None), ("KEPT.door", 1, 2, None), ("KEPT.door", 2, None, "[")]


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("/WRONG.>", {}, "names no stream"),
        ("/WRONG.>?stream=NONE", {}, "there is no stream 'NONE'"),
        ("/WRONG.>?stream=WRONG&durable=d", {}, "keeps its place in its checkpoint"),
        ("/WRONG.>?stream=WRONG", {"startingOffset": "1"}, "did you mean 'startingOffsets'"),
        ("/WRONG.>?stream=WRONG", {"startingOffsets": "first"}, "must be earliest, latest or a number"),
        ("/WRONG.>?stream=WRONG", {"maxOffsetsPerTrigger": "0"}, "must be a number above zero"),
        ("/QUEUE.>?stream=QUEUE", {}, "could not be read again"),
    ],
)
def test_what_cannot_be_read_is_told(nats: Nats, query: str, options: dict[str, str], message: str) -> None:
    nats.make("WRONG")
    nats.make("QUEUE", retention="workqueue")
    with pytest.raises(CoincideError, match=message):
        NatsFormat({"path": nats.address + query, **options}).reader(SCHEMA).partitions()


def test_columns_of_ones_own_are_refused(spark: Any, nats: Nats) -> None:
    with pytest.raises(Exception, match="has columns of its own: value, subject, sequence, published"):
        register(spark, "nats").read.format("nats").schema("type string").load(nats.make("OWN")).count()


def test_messages_that_are_gone_are_told(spark: Any, reading: Any, nats: Nats, tmp_path: Path) -> None:
    url = nats.make("GONE")
    nats.publish("GONE.x", [b"1", b"2"])
    run(reading.load(url), tmp_path)
    nats.publish("GONE.x", [b"3", b"4"])
    nats.do(lambda stream: stream.purge_stream("GONE", seq=4))
    with pytest.raises(Exception, match="begins with number 4 by now, but 3 was to be read"):
        run(reading.load(url), tmp_path)
    run(reading.option("failOnDataLoss", "false").load(url), tmp_path)
    assert rows(spark, tmp_path) == [(1, "1"), (2, "2"), (4, "4")]
    nats.do(lambda stream: stream.delete_stream("GONE"))
    nats.make("GONE")
    with pytest.raises(Exception, match="not the one that the checkpoint belongs to"):
        run(reading.load(url), tmp_path)
