"""Kafka, against the cluster that librdkafka brings for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from servers import Reader, lines

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.kafka import InStep, KafkaSource
from coincide.streams.registry import open_sink, open_source


def publish(cluster: str, topic: str, times: list[int], partition: int | None = None) -> None:
    producer = Producer({"bootstrap.servers": cluster, "linger.ms": 0, "log_level": 2})
    for time, line in zip(times, lines(times), strict=True):
        where: dict[str, Any] = {} if partition is None else {"partition": partition}
        producer.produce(topic, line, timestamp=1_000_000 + time, **where)
    assert producer.flush(10) == 0


def test_partitions_are_read_in_step_and_gone_on_with(cluster: str) -> None:
    publish(cluster, "events", [*range(0, 2000, 2)], 0)
    publish(cluster, "events", [*range(1, 2000, 2)], 1)
    url = f"kafka://{cluster}/events"
    with Reader(open_source(url, Reading())) as reader:
        assert reader.take(2000) == [*range(2000)]
    assert sorted(reader.position) == [[0, 1000], [1, 1000]]
    publish(cluster, "events", [2000, 2001], 2)
    with Reader(open_source(url, Reading()), reader.position) as later:
        assert later.take(2) == [2000, 2001]


def test_a_group_is_told_what_was_dealt_with(cluster: str) -> None:
    publish(cluster, "grouped", [1, 2, 3], 0)
    url = f"kafka://{cluster}/grouped?group=g"
    source = open_source(url, Reading())
    source.awaits_checkpoints = True
    with Reader(source) as reader:
        assert reader.take(3) == [1, 2, 3]
    with Reader(open_source(url, Reading())) as again:  # nobody was told
        assert again.take(3) == [1, 2, 3]
    publish(cluster, "grouped", [4], 0)
    with Reader(open_source(url, Reading())) as later:
        assert later.take(1) == [4]


def test_a_detection_is_there_once(cluster: str) -> None:
    publish(cluster, "found", [0])
    url = f"kafka://{cluster}/found"
    first, second, third = (Made(f"k{n}", "a", line + b"\n") for n, line in enumerate(lines([1, 2, 3])))
    sink = open_sink(url)
    assert sink.once
    sink.open(None)
    sink.write([first])
    position = json.loads(json.dumps(sink.commit()))
    sink.write([second])
    sink.close()
    later = open_sink(url)
    later.open(position)
    later.write([second, third])
    later.close()
    with Reader(open_source(url, Reading())) as reader:
        assert sorted(reader.take(4)) == [0, 1, 2, 3]
        assert sum(offset for _, offset in reader.position) == 4


def test_a_sink_goes_on_where_what_followed_the_checkpoint_is_partly_gone(cluster: str) -> None:
    """The cluster keeps 5 MB of a partition."""
    producer = Producer({"bootstrap.servers": cluster, "linger.ms": 0, "log_level": 2})
    for number in range(120):
        producer.produce("short", b"x" * 100_000, f"k{number}", partition=0)
        producer.poll(0)
    assert producer.flush(10) == 0
    sink = open_sink(f"kafka://{cluster}/short")
    sink.open([[0, 5]])
    sink.write([Made("k119", "a", b"{}\n"), Made("new", "a", b"{}\n")])
    sink.close()
    consumer = Consumer({"bootstrap.servers": cluster, "group.id": "look", "log_level": 2})
    parts = [TopicPartition("short", number) for number in consumer.list_topics("short", timeout=10).topics["short"].partitions]
    assert sum(consumer.get_watermark_offsets(part, timeout=10)[1] for part in parts) == 121
    consumer.close()


class Held:
    """A message of a partition, with a time."""

    def __init__(self, partition: int, time: int) -> None:
        self._at = partition, time

    def partition(self) -> int:
        return self._at[0]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at[1]


def test_a_partition_that_is_behind_is_waited_for() -> None:
    step: Any = InStep([0, 1])
    for time in (1, 5, 9):
        step.add(Held(0, time))
    assert step.ready() == []
    step.add(Held(1, 4))
    assert [message.timestamp()[1] for message in step.ready()] == [1, 4]
    step.ended(1)
    assert [message.timestamp()[1] for message in step.ready()] == [5, 9]


def test_settings_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "properties").write_text("# ours\nclient.id = here\n")
    monkeypatch.setenv("KAFKA_USER", "me")
    monkeypatch.setenv("KAFKA_PASSWORD_FILE", str(tmp_path / "password"))
    monkeypatch.setenv("KAFKA_CONFIG", str(tmp_path / "properties"))
    source = open_source("kafkas://one,two:1/x", Reading())
    assert isinstance(source, KafkaSource)
    said = source.topic.settings()
    assert (said["bootstrap.servers"], said["security.protocol"]) == ("one:9092,two:1", "sasl_ssl")
    assert (said["sasl.mechanism"], said["sasl.username"], said["sasl.password"]) == ("PLAIN", "me", "secret")
    assert said["client.id"] == "here"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://{cluster}/none", "no topic 'none'"),
        ("kafka://{cluster}/", "names no topic"),
        ("kafka://{cluster}/x?gruop=g", "unknown option 'gruop'"),
        ("kafka://me:secret@{cluster}/x", "credentials belong in KAFKA_USER"),
    ],
)
def test_what_is_wrong_is_told(cluster: str, url: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message):
        next(open_source(url.format(cluster=cluster), Reading()).deliveries(None))
