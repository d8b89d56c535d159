"""Events by the address of where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from coincide.connectors.reading import _broker
from coincide.errors import CoincideError
from coincide.spark import decoded, events

pytestmark = pytest.mark.spark


def test_files_by_their_endings(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text('{"type": "a", "time": 1}\n{"type": "b", "time": 2}\n', encoding="utf-8")
    (tmp_path / "e.csv").write_text("a,1\n", encoding="utf-8")
    assert events(spark, str(tmp_path / "e.jsonl")).columns == ["time", "type"]
    assert events(spark, str(tmp_path / "e.csv"), "type string, time long").collect() == [("a", 1)]
    events(spark, str(tmp_path / "e.jsonl")).write.parquet(str(tmp_path / "folder"))
    assert events(spark, str(tmp_path / "folder"), streaming=True).isStreaming


def test_what_spark_is_told_of_kafka() -> None:
    told = {"kafka.bootstrap.servers": "b:9093", "subscribe": "t"}
    assert _broker("kafka://b:9093/t", "kafka") == ("kafka", told)
    assert _broker("kafkas://b:9093/t", "kafkas") == ("kafka", {**told, "kafka.security.protocol": "SSL"})
    with pytest.raises(CoincideError, match="names no topic"):
        _broker("kafka://b", "kafka")


def test_messages_need_a_schema(spark: Any) -> None:
    with pytest.raises(CoincideError, match="a schema says which fields are wanted"):
        events(spark, "nats://localhost/x?stream=X")


def test_messages_of_kafka_become_rows(spark: Any) -> None:
    """As Spark's connector gives them; here they are read from a cluster that the client's library plays."""
    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 2, "linger.ms": 0})
    broker = producer.list_topics(timeout=10).brokers[1]
    for number in range(3):
        producer.produce("t", b'{"type": "a", "time": %d}' % number)
    producer.flush(10)
    consumer = Consumer({"bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    rows: list[tuple[bytes, str, int, int]] = []
    while len(rows) < 3:
        for message in consumer.consume(3, timeout=10):
            rows.append((message.value(), message.topic(), message.partition(), message.offset()))
    consumer.close()
    frame = spark.createDataFrame(rows, "value binary, topic string, partition int, offset long")
    found = decoded(frame, "type string, time long", keep=["topic"]).collect()
    assert sorted(tuple(row) for row in found) == [("t", "a", 0), ("t", "a", 1), ("t", "a", 2)]
