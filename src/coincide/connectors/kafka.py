"""Spark's format `coincide-kafka`: a topic of Kafka, batch and streaming, without a package of Java's.

    register(spark)
    spark.readStream.format("coincide-kafka").load("kafka://HOST:PORT/TOPIC")

Offsets are those of the topic's partitions. Credentials are in the environment, of executors too (see coincide.streams.kafka)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType, TimestampType

from coincide.connectors.logs import LogFormat, Ranges, rows
from coincide.errors import CoincideError
from coincide.streams.kafka import Topic
from coincide.streams.kafkalog import Block, Log, between

SCHEMA = StructType().add("value", BinaryType()).add("key", BinaryType()).add("topic", StringType())
SCHEMA.add("partition", IntegerType()).add("offset", LongType()).add("timestamp", TimestampType())
ARROW = pa.schema(
    {
        "value": pa.binary(),
        "key": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
)
Offset = dict[str, dict[str, int]]
"""The next ones by partition, below the topic, as Spark's connector writes them."""


@dataclass
class Range(InputPartition):  # type: ignore[misc]
    """Messages of a partition from one offset up to another, without that."""

    partition: int
    begin: int
    end: int


class KafkaRanges(Ranges[Log]):
    format = "coincide-kafka"

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.topic = Topic(self.url, ["group"])
        if "group" in self.topic.address.options:
            raise CoincideError(f"'{self.url}': Spark keeps its place in its checkpoint; a group is not needed")

    def opened(self) -> Log:
        return Log(self.topic)

    def first(self) -> dict[int, int]:
        return self.log.ends() if self.start == "latest" else self.log.begins()

    def ranges(self, begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Range]:
        """A partition that is new is read from its first message."""
        return [Range(*part) for part in self.divided({number: (begins.get(number, 0), end) for number, end in ends.items()})]

    def read(self, part: Range) -> Iterator[pa.RecordBatch]:
        for block in between(self.topic, part.partition, part.begin, part.end, losses_fail=self.losses_fail):
            yield _rows(block, self.topic.name, part.partition)


class KafkaReader(KafkaRanges, DataSourceReader):  # type: ignore[misc]
    """All that is there."""

    def partitions(self) -> list[Range]:
        begins, ends = self.first(), self.log.ends()
        self.stop()
        return self.ranges(begins, ends) or [Range(0, 0, 0)]


class KafkaStreamReader(KafkaRanges, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What is there, micro-batch by micro-batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._target: dict[int, int] | None = None

    def initialOffset(self) -> Offset:
        return self._offset(self.first())

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.log.ends()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        begins = self._places(start)
        ends = self._target or self.log.ends()
        for number, begin in begins.items():
            if (end := ends.get(number, 0)) < begin:
                raise CoincideError(
                    f"partition {number} of the topic '{self.topic.name}' ends with offset {end}, but {begin} has been "
                    "reached: it is not the topic that the checkpoint belongs to"
                )
        return self._offset(shared(begins, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends)

    def reportLatestOffset(self) -> Offset:
        return self._offset(self.log.ends())

    def partitions(self, start: Offset, end: Offset) -> list[Range]:
        return self.ranges(self._places(start), self._places(end))

    def _offset(self, places: Mapping[int, int]) -> Offset:
        return {self.topic.name: {str(number): place for number, place in places.items()}}

    def _places(self, offset: Offset) -> dict[int, int]:
        if (topic := self.topic.name) not in offset:
            raise CoincideError(f"the checkpoint belongs to the topic '{', '.join(offset)}', not to '{topic}'")
        return {int(number): place for number, place in offset[topic].items()}


def shared(begins: Mapping[int, int], ends: Mapping[int, int], most: int) -> dict[int, int]:
    """Where to stop so that it is about so many messages: of each partition by what is left of it, so that all come to their end
    at the same time, and none is far ahead of another; one at least, however many partitions there are."""
    left = {number: end - begins.get(number, 0) for number, end in ends.items()}
    total = sum(left.values())
    if total <= most:
        return dict(ends)
    return {number: ends[number] - count + min(count, max(1, count * most // total)) for number, count in left.items()}


def _rows(block: Block, topic: str, partition: int) -> pa.RecordBatch:
    size = len(block.offsets)
    times = [None if time is None else time * 1000 for time in block.times]
    return rows([block.values, block.keys, [topic] * size, [partition] * size, block.offsets, times], ARROW)


class KafkaFormat(LogFormat):
    columns, batch, stream = SCHEMA, KafkaReader, KafkaStreamReader
