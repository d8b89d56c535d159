"""Spark's format `coincide-kafka` against the cluster that librdkafka brings for tests: every message once."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from brokers import Kafka
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support import expected, finished, random_events, texts_of_rows

from coincide.connectors.formats import FORMATS
from coincide.connectors.kafka import SCHEMA, KafkaFormat, KafkaReader, KafkaStreamReader, Range, shared
from coincide.errors import CoincideError
from coincide.model.event import record
from coincide.rulebook import loads
from coincide.spark import detect, events, register
from coincide.streams import kafkalog
from coincide.streams.registry import missing_client

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return Kafka()


def run(frame: Any, folder: Path) -> list[int]:
    """Everything that is there, then stops; the numbers of rows of the micro-batches."""
    sink = frame.writeStream.format("parquet").option("path", str(folder / "rows"))
    query = finished(sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True))
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_every_message_once(spark: Any, kafka: Kafka, tmp_path: Path) -> None:
    for partition, count in enumerate((20, 4, 1)):
        url = kafka.publish("once", [b"%d" % n for n in range(count)], partition)
    reading = register(spark, "coincide-kafka").readStream.format("coincide-kafka").option("maxOffsetsPerTrigger", 10)
    assert run(reading.load(url), tmp_path) == [8 + 1 + 1, 8 + 2, 4 + 1]
    kafka.publish("once", [b"20", b"21"], 0)
    kafka.publish("once", [b"0"], 3)
    assert run(reading.load(url), tmp_path) == [3]
    found = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert {row.topic for row in found} == {"once"}
    assert all(row.offset == int(bytes(row.value)) for row in found)
    places = sorted((row.partition, row.offset) for row in found)
    assert places == [(partition, n) for partition, count in enumerate((22, 4, 1, 1)) for n in range(count)]


def test_detections_are_those_of_the_embedded_engine(spark: Any, kafka: Kafka, tmp_path: Path) -> None:
    rules = loads("monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }")
    made = [event for event in random_events(300) if event.lo == event.hi and "k" in event.attributes]
    records = [{**record(event), "id": event.id} for event in sorted(made, key=lambda event: event.hi)]
    columns = "type string, time long, id string, k double, v double"
    for half in (records[: len(records) // 2], [*records[len(records) // 2 :], {"type": "heartbeat", "time": 10**6}]):
        for partition in (0, 1):
            url = kafka.publish("detect", half[partition::2], partition)
        frame = events(spark, url, columns, streaming=True, options={"maxOffsetsPerTrigger": "100"})
        run(frame.transform(detect(rules, delay="30 seconds")), tmp_path)
    found = spark.read.parquet(str(tmp_path / "rows"))
    assert texts_of_rows(found.collect()) == expected(rules, made)
    assert found.count() > 5


def test_a_batch_by_its_url(spark: Any, kafka: Kafka) -> None:
    url = kafka.publish("batch", [b'{"n": 1}\n{"n": 2}', None], 0)
    kafka.publish("batch", [b'{"n": 3}'], 2)
    assert sorted(row.n for row in events(spark, url, "n int").collect()) == [1, 2, 3]
    assert events(spark, url, "n int", options={"startingOffsets": "latest"}).collect() == []
    with pytest.raises(Exception, match="no topic 'nowhere'"):
        events(spark, f"{kafka.address}/nowhere", "n int").collect()


def taken(reader: KafkaReader | KafkaStreamReader, parts: list[Range]) -> list[dict[str, Any]]:
    """As tasks do, to which the reader is sent."""
    there = pickle.loads(pickle.dumps(reader))
    return [row for part in parts for batch in there.read(part) for row in batch.to_pylist()]


def test_columns(kafka: Kafka) -> None:
    url = kafka.publish("columns", [b"\xff", None], 1, key=b"k", timestamp=1_700_000_000_123)
    reader = KafkaFormat({"path": url}).reader(SCHEMA)
    value, tombstone = taken(reader, reader.partitions())
    told = {"key": b"k", "topic": "columns", "partition": 1, "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)}
    assert value == {"value": b"\xff", "offset": 0, **told}
    assert tombstone == {"value": None, "offset": 1, **told}


def test_a_task_for_each_partition_or_more(kafka: Kafka) -> None:
    url = kafka.publish("tasks", [b"x"] * 6, 0)
    kafka.publish("tasks", [b"x"] * 2, 3)
    assert KafkaReader({"path": url}).partitions() == [Range(0, 0, 6), Range(3, 0, 2)]
    reader = KafkaReader({"path": url, "minPartitions": "3"})
    assert reader.partitions() == [Range(0, 0, 3), Range(0, 3, 6), Range(3, 0, 2)]
    assert len(taken(reader, reader.partitions())) == 8
    nothing = KafkaReader({"path": url, "startingOffsets": "latest"})
    assert taken(nothing, nothing.partitions()) == []


def test_what_is_new_is_read_and_what_is_newer_waits(kafka: Kafka) -> None:
    url = kafka.publish("newer", [b"0", b"1"], 0)
    reader = KafkaStreamReader({"path": url, "startingOffsets": "latest"})
    begin = reader.initialOffset()
    assert begin == {"newer": {"0": 2, "1": 0, "2": 0, "3": 0}}
    kafka.publish("newer", [b"2"], 0)
    reader.prepareForTriggerAvailableNow()
    kafka.publish("newer", [b"3"], 0)
    end = reader.latestOffset(begin, ReadAllAvailable())
    assert [row["value"] for row in taken(KafkaStreamReader({"path": url}), reader.partitions(begin, end))] == [b"2"]
    assert reader.latestOffset(end, ReadMaxRows(1)) == end
    assert reader.reportLatestOffset()["newer"]["0"] == 4
    del begin["newer"]["0"]  # as if the partition were new
    assert reader.partitions(begin, end) == [Range(0, 0, 3)]
    reader.stop()


def test_shares_are_fair() -> None:
    assert shared({0: 5}, {0: 8, 1: 2}, 5) == {0: 8, 1: 2}
    assert shared({0: 100}, {0: 1100, 1: 500, 2: 1, 3: 0}, 150) == {0: 199, 1: 49, 2: 1, 3: 0}
    assert shared({}, {0: 9, 1: 9, 2: 9}, 2) == {0: 1, 1: 1, 2: 1}


def test_messages_that_are_gone_are_told(kafka: Kafka) -> None:
    """The cluster keeps 5 MB of a partition."""
    url = kafka.publish("gone", [b"x" * 100_000] * 120)
    reader = KafkaStreamReader({"path": url})
    (begin, end) = (reader.initialOffset()["gone"]["0"], 120)
    assert begin > 5
    with pytest.raises(CoincideError, match="has no message 5 in partition 0 any more, which was to be read"):
        taken(KafkaStreamReader({"path": url}), [Range(0, 5, end)])
    lenient = KafkaStreamReader({"path": url, "failOnDataLoss": "false"})
    assert [row["offset"] for row in taken(lenient, [Range(0, 5, end)])] == [*range(begin, end)]
    assert taken(lenient, [Range(0, 5, 7)]) == []
    reader.stop()


def test_the_end_is_found_where_its_message_is_not_given_out(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is with the marks of transactions: what has been seen beyond it tells, or the end of the partition."""
    url = kafka.publish("marks", [b"%d" % n for n in range(4)])
    consumer = kafkalog._consumer

    def without(*settings: Any) -> Any:
        made = consumer(*settings)

        class Without:
            assign, close = made.assign, made.close

            def consume(self, *how: Any) -> list[Any]:
                return [each for each in made.consume(*how) if each.error() is not None or each.offset() not in (1, 3)]

        return Without()

    monkeypatch.setattr(kafkalog, "_consumer", without)
    reader = KafkaStreamReader({"path": url})
    assert [row["offset"] for batch in reader.read(Range(0, 0, 2)) for row in batch.to_pylist()] == [0]
    assert [row["offset"] for batch in reader.read(Range(0, 0, 4)) for row in batch.to_pylist()] == [0, 2]


def test_another_topic_than_that_of_the_checkpoint_is_told(kafka: Kafka) -> None:
    reader = KafkaStreamReader({"path": kafka.publish("other", [b"0"])})
    with pytest.raises(CoincideError, match="ends with offset 1, but 7 has been reached: it is not the topic"):
        reader.latestOffset({"other": {"0": 7}}, ReadAllAvailable())
    with pytest.raises(CoincideError, match="belongs to the topic 'one', not to 'other'"):
        reader.latestOffset({"one": {"0": 0}}, ReadAllAvailable())
    reader.stop()


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        ("/none", {}, "no topic 'none'"),
        ("", {}, "names no topic"),
        ("/wrong?group=g", {}, "keeps its place in its checkpoint; a group is not needed"),
        ("/wrong?gruop=g", {}, "unknown option 'gruop'"),
        ("/wrong", {"startingOffset": "latest"}, "did you mean 'startingOffsets'"),
        ("/wrong", {"startingOffsets": "3"}, "must be earliest or latest, not '3'"),
        ("/wrong", {"maxOffsetsPerTrigger": "0"}, "must be a number above zero"),
    ],
)
def test_what_cannot_be_read_is_told(kafka: Kafka, where: str, options: dict[str, str], message: str) -> None:
    kafka.publish("wrong", [b"0"])
    with pytest.raises(CoincideError, match=message):
        KafkaFormat({"path": kafka.address + where, **options}).reader(SCHEMA).partitions()


def test_who_was_there_is_waited_for(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = KafkaStreamReader({"path": kafka.publish("away", [b"0"])})
    begin = reader.initialOffset()
    failures, asked = [CoincideError("away")] * 2, reader.topic.offsets

    def offsets(*how: Any) -> dict[int, int]:
        if failures:
            raise failures.pop()
        return asked(*how)

    monkeypatch.setattr(reader.topic, "offsets", offsets)
    assert reader.latestOffset(begin, ReadAllAvailable())["away"]["0"] == 1
    reader.stop()


def test_formats_whose_clients_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    session: Any = SimpleNamespace(dataSource=SimpleNamespace(register=lambda format: made.append(format.name())))

    def absent() -> type:
        with missing_client("mqtt"):
            raise ModuleNotFoundError("No module named 'paho'", name="paho")

    monkeypatch.setitem(FORMATS, "mqtt", absent)
    register(session)
    assert made == ["coincide-kafka", "nats"]
    with pytest.raises(CoincideError, match="is not installed"):
        register(session, "mqtt")


def test_who_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.streams.kafka.PATIENCE", 0.5)
    with pytest.raises(CoincideError, match=r"cannot reach 'kafka://127\.0\.0\.1:1'"):
        KafkaReader({"path": "kafka://127.0.0.1:1/x"}).partitions()
    with pytest.raises(CoincideError, match=r'where is it\? .load\("kafka://…"\)'):
        KafkaFormat({})
