"""Spark's format `nats`: a stream of JetStream, batch and streaming. An offset is a number of the stream.

    register(spark)
    spark.readStream.format("nats").load("nats://HOST:PORT/SUBJECT?stream=NAME")

Credentials are in the environment, of executors too (see coincide.streams.nats)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from coincide.connectors.options import COMMON, Options, check_schema
from coincide.errors import CoincideError
from coincide.streams.nats import Subject
from coincide.streams.natslog import Block, Log

SCHEMA = StructType().add("value", BinaryType()).add("subject", StringType()).add("sequence", LongType())
SCHEMA.add("published", TimestampType())
ARROW = pa.schema(
    [("value", pa.binary()), ("subject", pa.string()), ("sequence", pa.int64()), ("published", pa.timestamp("us", "UTC"))]
)
OPTIONS = (*COMMON, "startingOffsets", "failOnDataLoss")
Offset = dict[str, int]


@dataclass
class Range(InputPartition):  # type: ignore[misc]
    """Messages after one number, up to another."""

    after: int
    last: int


class NatsFormat(DataSource):  # type: ignore[misc]
    @classmethod
    def name(cls) -> str:
        return "nats"

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        _Ranges(options)  # what is wrong with them is told at once

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> NatsReader:
        check_schema("nats", schema, SCHEMA)
        return NatsReader(self.options)

    def streamReader(self, schema: StructType) -> NatsStreamReader:
        check_schema("nats", schema, SCHEMA)
        return NatsStreamReader(self.options)


class _Ranges:
    """How messages between two numbers are read by tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options("nats", options, OPTIONS)
        self.address = Subject(given.url)
        if self.address.stream is None:
            raise CoincideError(f"'{given.url}' names no stream: only what JetStream keeps can be read again after a failure")
        if self.address.durable is not None:
            raise CoincideError(f"'{given.url}': Spark keeps its place in its checkpoint; a durable consumer is not needed")
        self.start = given.of("startingOffsets", "earliest")
        if self.start not in ("earliest", "latest") and not self.start.isdecimal():
            raise CoincideError(f"startingOffsets must be earliest, latest or a number, not '{self.start}'")
        self.most = given.number("maxOffsetsPerTrigger")
        self.tasks = given.number("minPartitions") or 1
        self.losses_fail = given.flag("failOnDataLoss", True)
        self._log: Log | None = None

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = Log(self.address)
            self._log.check()
        return self._log

    def first(self) -> int:
        """The number before that of the first message to be read."""
        begin, end = self.log.bounds()
        if self.start == "latest":
            return end
        return max(begin, 1 if self.start == "earliest" else int(self.start)) - 1

    def ranges(self, after: int, last: int) -> list[Range]:
        if last <= after:
            return []
        size = -(-(last - after) // self.tasks)
        return [Range(begin, min(begin + size, last)) for begin in range(after, last, size)]

    def read(self, part: Range) -> Iterator[pa.RecordBatch]:
        log = Log(self.address, at_once=False)
        try:
            for block in log.between(part.after, part.last):
                yield _rows(block)
            self._check_losses(part.after, log.bounds()[0])
        finally:
            log.close()

    def _check_losses(self, after: int, begin: int) -> None:
        if self.losses_fail and begin > after + 1:
            raise CoincideError(
                f"the stream '{self.address.stream}' begins with number {begin} by now, but {after + 1} was to be read: messages "
                "were removed before they were read; with failOnDataLoss=false that does not matter"
            )


class NatsReader(_Ranges, DataSourceReader):  # type: ignore[misc]
    """All that is there."""

    def partitions(self) -> list[Range]:
        after, last = self.first(), self.log.bounds()[1]
        self.log.close()
        self._log = None  # this object goes to the tasks
        return self.ranges(after, last) or [Range(last, last)]


class NatsStreamReader(_Ranges, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What is there, micro-batch by micro-batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._target: int | None = None

    def initialOffset(self) -> Offset:
        return {"sequence": self.first()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.most is None else ReadMaxRows(self.most)

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

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()


def _rows(block: Block) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(block, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW)
