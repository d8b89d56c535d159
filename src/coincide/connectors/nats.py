"""Spark's format `nats`: a stream of JetStream, batch and streaming. An offset is a number of the stream.

    register(spark)
    spark.readStream.format("nats").load("nats://HOST:PORT/SUBJECT?stream=NAME")

Credentials are in the environment, of executors too (see coincide.streams.nats)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from coincide.connectors.logs import LogFormat, Ranges, rows
from coincide.errors import CoincideError
from coincide.streams.nats import Subject
from coincide.streams.natslog import Log

SCHEMA = StructType().add("value", BinaryType()).add("subject", StringType()).add("sequence", LongType())
SCHEMA.add("published", TimestampType())
ARROW = pa.schema(
    [("value", pa.binary()), ("subject", pa.string()), ("sequence", pa.int64()), ("published", pa.timestamp("us", "UTC"))]
)
Offset = dict[str, int]


@dataclass
class Range(InputPartition):  # type: ignore[misc]
    """Messages after one number, up to another."""

    after: int
    last: int


class NatsRanges(Ranges[Log]):
    format, numbered = "nats", True

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.address = Subject(self.url)
        if self.address.stream is None:
            raise CoincideError(f"'{self.url}' names no stream: only what JetStream keeps can be read again after a failure")
        if self.address.durable is not None:
            raise CoincideError(f"'{self.url}': Spark keeps its place in its checkpoint; a durable consumer is not needed")

    def opened(self) -> Log:
        log = Log(self.address)
        log.check()
        return log

    def first(self) -> int:
        """The number before that of the first message to be read."""
        begin, end = self.log.bounds()
        if self.start == "latest":
            return end
        return max(begin, 1 if self.start == "earliest" else int(self.start)) - 1

    def ranges(self, after: int, last: int) -> list[Range]:
        return [Range(*part) for _, *part in self.divided({"": (after, last)})]

    def read(self, part: Range) -> Iterator[pa.RecordBatch]:
        log = Log(self.address, at_once=False)
        try:
            for block in log.between(part.after, part.last):
                yield rows(block, ARROW)
            self._check_losses(part.after, log.bounds()[0])
        finally:
            log.close()

    def _check_losses(self, after: int, begin: int) -> None:
        if self.losses_fail and begin > after + 1:
            raise CoincideError(
                f"the stream '{self.address.stream}' begins with number {begin} by now, but {after + 1} was to be read: messages "
                "were removed before they were read; with failOnDataLoss=false that does not matter"
            )


class NatsReader(NatsRanges, DataSourceReader):  # type: ignore[misc]
    """All that is there."""

    def partitions(self) -> list[Range]:
        after, last = self.first(), self.log.bounds()[1]
        self.stop()
        return self.ranges(after, last) or [Range(last, last)]


class NatsStreamReader(NatsRanges, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What is there, micro-batch by micro-batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._target: int | None = None

    def initialOffset(self) -> Offset:
        return {"sequence": self.first()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.log.bounds()[1]

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        after = start["sequence"]
        last = self.log.bounds()[1]
        if last < after:
            raise CoincideError(
                f"the stream '{self.address.stream}' ends with number {last}, but {after} has been read: it is not the one "
                "that the checkpoint belongs to"
            )
        last = last if self._target is None else max(after, min(last, self._target))
        if isinstance(limit, ReadMaxRows) and last - after > limit.max_rows:
            wanted = self.log.next_after(after)  # what lies between may be of other subjects
            last = last if wanted is None else min(last, wanted - 1 + limit.max_rows)
        return {"sequence": last}

    def reportLatestOffset(self) -> Offset:
        return {"sequence": self.log.bounds()[1]}

    def partitions(self, start: Offset, end: Offset) -> list[Range]:
        return self.ranges(start["sequence"], end["sequence"])


class NatsFormat(LogFormat):
    columns, batch, stream = SCHEMA, NatsReader, NatsStreamReader
