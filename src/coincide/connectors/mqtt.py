"""Spark's format `mqtt`: messages of a topic, streaming.

    register(spark)
    spark.readStream.format("mqtt").option("spool", "DIR").load("mqtt://HOST:PORT/TOPIC?client=NAME")

MQTT gives a message once and has no offsets. So the driver writes what comes into a spool, a folder on a disk of its own that
outlives it, and acknowledges it then: offsets are places in the spool, and micro-batches carry their messages to the tasks. The
broker keeps what comes while nobody listens, for the session of the client's name. What was in the spool already when it was sent
again, since the acknowledgement was lost, is known by its packet identifier and contents, and left out."""

from __future__ import annotations

import fcntl
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StringType, StructType, TimestampType

from coincide.connectors.options import COMMON, Options, check_schema
from coincide.errors import CoincideError
from coincide.streams.base import Reading
from coincide.streams.mqtt import MqttSource, digest_of
from coincide.streams.spool import Spool

SCHEMA = StructType().add("value", BinaryType()).add("topic", StringType()).add("received", TimestampType())
ARROW = pa.schema([("value", pa.binary()), ("topic", pa.string()), ("received", pa.timestamp("us", "UTC"))])
REMEMBERED = 65_535
"""Messages at the end of the spool that may be sent again: there are no more packet identifiers."""
QUIET = 1.0
"""Seconds without a message after which all that was waiting is taken to be there (`availableNow`)."""
LEFT = 30.0
"""Seconds in which a run that was killed must have let go of the spool."""
Offset = dict[str, int]


class Kept(msgspec.Struct, array_like=True):
    """A message in the spool: a line of JSON. `received` is in microseconds."""

    number: int
    topic: str
    payload: str
    received: int


@dataclass
class Lines(InputPartition):  # type: ignore[misc]
    """Messages that are on their way to a task."""

    lines: bytes


class MqttFormat(DataSource):  # type: ignore[misc]
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        MqttStreamReader(options)  # what is wrong with them is told at once

    @classmethod
    def name(cls) -> str:
        return "mqtt"

    def schema(self) -> StructType:
        return SCHEMA

    def streamReader(self, schema: StructType) -> MqttStreamReader:
        check_schema("mqtt", schema, SCHEMA)
        return MqttStreamReader(self.options)


class MqttStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options("mqtt", options, (*COMMON, "spool"))
        self.url = given.url
        if not MqttSource(self.url, Reading()).repeatable:
            raise CoincideError(f"'{self.url}': ?client=NAME is needed: by that name the broker keeps what nobody has taken yet")
        self.folder = given.of("spool", "")
        if not self.folder:
            raise CoincideError("format 'mqtt': .option(\"spool\", …) names a folder of the driver's in which messages are kept")
        self.most = given.number("maxOffsetsPerTrigger")
        self.tasks = given.number("minPartitions") or 1
        self._target: int | None = None
        self._intake: Intake | None = None

    @property
    def intake(self) -> Intake:
        if self._intake is None:
            self._intake = Intake(self.url, Path(self.folder))
        self._intake.check()
        return self._intake

    def initialOffset(self) -> Offset:
        return {"place": self.intake.spool.start}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.most is None else ReadMaxRows(self.most)

    def prepareForTriggerAvailableNow(self) -> None:
        self.intake.wait_for_quiet()
        self._target = self.intake.end

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        place, end = start["place"], self.intake.end
        if not self.intake.spool.start <= place <= end:
            raise CoincideError(f"'{self.folder}' is not the spool that belongs to the checkpoint: it has no place {place}")
        end = end if self._target is None else max(place, min(end, self._target))
        if not isinstance(limit, ReadMaxRows):
            return {"place": end}
        left = limit.max_rows
        while place < end and left:
            lines = self._between(place, end).splitlines(keepends=True)[:left]
            place, left = place + sum(map(len, lines)), left - len(lines)
        return {"place": place}

    def partitions(self, start: Offset, end: Offset) -> list[Lines]:
        place, last = start["place"], end["place"]
        lines: list[bytes] = []
        while place < last:
            block = self._between(place, last)
            lines += block.splitlines(keepends=True)
            place += len(block)
        size = max(1, -(-len(lines) // self.tasks))
        return [Lines(b"".join(lines[begin : begin + size])) for begin in range(0, len(lines), size)]

    def read(self, part: Lines) -> Iterator[pa.RecordBatch]:
        kept = msgspec.json.Decoder(Kept).decode_lines(part.lines)
        columns = [[b64decode(m.payload) for m in kept], [m.topic for m in kept], [m.received for m in kept]]
        yield pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)], schema=ARROW)

    def commit(self, end: Offset) -> None:
        self.intake.spool.forget(end["place"])

    def stop(self) -> None:
        if self._intake is not None:
            self._intake.close()

    def _between(self, place: int, last: int) -> bytes:
        """Whole lines, some at least."""
        spool = self.intake.spool
        if not (block := spool.read(place) if spool.start <= place < spool.end else b""):
            raise CoincideError(f"'{self.folder}' has no place {place}: it is not the spool that belongs to the checkpoint")
        return block[: last - place]


class Intake:
    """From the broker into the spool, in a thread of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)
        self.spool = Spool(folder, safe=True)
        self.end = self.spool.end
        self._came = time.monotonic()
        self._failure: BaseException | None = None
        self._source = MqttSource(url, Reading())
        self._source.awaits_checkpoints = True
        self._thread = Thread(target=self._take, args=(self._remembered(),), daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def wait_for_quiet(self) -> None:
        while not self._source.subscribed.wait(0.05):
            self.check()
        self._came = time.monotonic()
        while time.monotonic() - self._came < QUIET:
            self.check()
            time.sleep(0.05)

    def close(self) -> None:
        self._source.close()
        self._thread.join()
        self.spool.close()
        os.close(self._lock)

    def _take(self, position: Any) -> None:
        encode = msgspec.json.Encoder().encode
        try:
            for messages in self._source.messages(position):
                now = time.time_ns() // 1000
                kept = (Kept(m.mid, m.topic, b64encode(m.payload).decode(), now) for m in messages)
                self.spool.append(b"".join(encode(each) + b"\n" for each in kept))
                self.end, self._came = self.spool.end, time.monotonic()
                self._source.acknowledge(self._source.position())
        except BaseException as error:
            self._failure = error

    def _remembered(self) -> Any:
        """Messages that the broker may not know to be here, by their identifiers; None: there never were any."""
        place, found = self.spool.start, []
        while place < self.spool.end:
            block = self.spool.read(place)
            found += msgspec.json.Decoder(Kept).decode_lines(block)
            place += len(block)
        if not self.spool.end:
            return None
        return [[m.number, digest_of(m.topic, b64decode(m.payload))] for m in found[-REMEMBERED:]]


def _locked(folder: Path) -> int:
    """The spool is one run's: of one that was killed, the process that reads the broker may take a moment to notice."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    end = time.monotonic() + LEFT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(file)
                raise CoincideError(f"the spool '{folder}' is in use by another run") from None
            time.sleep(0.1)
