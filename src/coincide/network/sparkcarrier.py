"""A node that is a cluster: each of its detectors is a streaming query of Spark that reads the network's messages and makes what
the same detector makes anywhere (hosted.py). Its state is in Spark's store; the driver publishes what comes out, before the
micro-batch is committed. A micro-batch that is done again makes the same, under the same numbers."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from tempfile import mkdtemp
from threading import Thread
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle, StreamingQuery

from coincide.detection.snapshots import reading_state
from coincide.engines.spark.stateful import value_bytes
from coincide.network.broker import Message, Subjects, token
from coincide.network.carried import Announcer, Figures
from coincide.network.directory import Detector
from coincide.network.hosted import Hosted, Kept, Made, read_kept
from coincide.network.natsbroker import NatsBroker
from coincide.network.sparksource import FORMAT, NetworkSource

log = logging.getLogger("coincide.network")

ROWS = "kind string, number bigint, data binary"
TRIGGER = "1 second"
AGAIN = 3.0
"""Seconds after which a query that has failed is started again."""
TOKEN = 8
REMEMBERED = 16


class Measured(msgspec.Struct):
    """Of a detector, at the end of a micro-batch."""

    counts: dict[str, int]
    seconds: float
    delay: float | None
    size: int


@dataclass(frozen=True)
class Carried:
    """What a worker must know of a detector. `begins` is the state that it was taken up with."""

    entry: Detector
    feeders: Mapping[str, str]
    network: str
    begins: bytes | None

    def hosted(self, state: bytes | None) -> Hosted:
        made = Hosted(msgspec.structs.replace(self.entry), self.feeders, Subjects(self.network))
        data = state or self.begins
        if data is not None:
            with reading_state(f"the state of '{self.entry.name}'"):
                made.restore(read_kept(data))
        return made


LIVING: OrderedDict[bytes, Hosted] = OrderedDict()
"""Detectors of this process, by the token that was stored with their state: after a retry or a restart it is another one."""


class Processor(StatefulProcessor):  # type: ignore[misc]
    """Called once a micro-batch, with all messages of it."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("detector", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        messages = sorted(message for frame in rows for message in _messages(frame))
        began, stored = time.perf_counter(), value_bytes(self._state.get())
        hosted = LIVING.pop(stored[:TOKEN], None) if stored is not None else None
        hosted = hosted or self._carried.hosted(None if stored is None else stored[TOKEN:])
        found = list(advanced(hosted, messages))
        state, mark = hosted.snapshot(hosted.entry.placed - 1), os.urandom(TOKEN)
        self._state.update((mark + state,))
        LIVING[mark] = hosted
        while len(LIVING) > REMEMBERED:
            LIVING.popitem(last=False)
        delay = hosted.delay if hosted.number else None
        figures = Measured(hosted.counts, time.perf_counter() - began, delay, len(state))
        yield pd.DataFrame([*found, ("figures", 0, msgspec.json.encode(figures))], columns=["kind", "number", "data"])

    def close(self) -> None:
        pass


Row = tuple[str, int, bytes]


def advanced(hosted: Hosted, messages: list[Message]) -> Iterator[Row]:
    """What comes of some messages: detections, states that are asked for, how far it is."""
    subjects, waiting = hosted.subjects, list[Message]()
    for message in messages:
        if subjects.kind(message.subject) == "keep":
            hosted.receive(waiting)
            waiting = []
            yield "state", message.number, hosted.snapshot(int(message.data))
        else:
            waiting.append(message)
    hosted.receive(waiting)
    for made in hosted.taken():
        yield "detection", made.number, made.data
    if (progress := hosted.progress()) is not None:
        yield "progress", 0, progress


def _messages(frame: pd.DataFrame) -> Iterator[Message]:
    for number, at, subject, data in zip(frame["number"], frame["time"], frame["subject"], frame["data"], strict=True):
        yield Message(int(number), int(at), str(subject), bytes(data))


class Cluster:
    """A session of Spark in the service of a node. `folder` is where checkpoints are: on a cluster, one that all machines see."""

    def __init__(self, session: SparkSession, broker: NatsBroker, folder: str | None = None, every: float = 5.0) -> None:
        self.session, self.broker, self.every = session, broker, every
        self.folder = folder or mkdtemp(prefix="coincide-node-")
        session.conf.set("spark.sql.shuffle.partitions", "1")  # a detector is one task
        session.dataSource.register(NetworkSource)

    def carry(self, entry: Detector, feeders: Mapping[str, str], state: Kept | None) -> SparkCarrier:
        return SparkCarrier(self, entry, feeders, state)

    def messages(self, subjects: list[str], after: int) -> DataFrame:
        options = {"url": self.broker.url, "network": self.broker.network, "subjects": json.dumps(subjects), "after": str(after)}
        if self.broker.domain is not None:
            options["domain"] = self.broker.domain
        return self.session.readStream.format(FORMAT).options(**options).load()


class SparkCarrier:
    """One detector, one query. What takes Spark long is done beside the node's turns."""

    def __init__(self, cluster: Cluster, entry: Detector, feeders: Mapping[str, str], state: Kept | None) -> None:
        """Raises OSError."""
        self.entry, self.figures, self.is_read = entry, Figures(), True
        self._cluster, self._broker = cluster, cluster.broker
        self._announcer = Announcer(cluster.broker, Subjects(cluster.broker.network), entry)
        begins = None if state is None else msgspec.msgpack.encode(state)
        self._carried = Carried(msgspec.structs.replace(entry), dict(feeders), cluster.broker.network, begins)
        self._checkpoint = f"{cluster.folder}/{cluster.broker.network}-{token(entry.name)}-{entry.placed}"
        self._query: StreamingQuery | None = None
        self._failed_at: float | None = None
        self._closed = False
        self._asked = self._handed = -1
        self._asked_at = time.monotonic()
        self._begin()

    def run(self) -> bool:
        query = self._query
        if query is not None and not query.isActive and not self._closed:
            self._query, self._failed_at = None, time.monotonic()
            log.warning("the query of %s has failed and is started again: %s", self.entry.name, query.exception())
        if self._failed_at is not None and time.monotonic() - self._failed_at > AGAIN:
            self._failed_at = None
            self._begin()
        if time.monotonic() - self._asked_at > self._cluster.every:
            self._ask(self.entry.placed - 1)
        return False

    def hand_over(self, placed: int) -> bool:
        if self._asked != placed:
            self._ask(placed)
        return self._handed == placed

    def close(self) -> None:
        """Spark takes its time to stop a query; nobody waits for that."""
        self._closed = True
        Thread(target=self._stop, daemon=True).start()

    def _ask(self, placed: int) -> None:
        """For its state. The request is a message of the stream like any other: the state is that of its place in it."""
        self._asked, self._asked_at = placed, time.monotonic()
        self._broker.publish(Subjects(self._broker.network).keeping(self.entry.name), str(placed).encode())

    # Beside the node.

    def _begin(self) -> None:
        Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        try:
            hosted = self._carried.hosted(None)
            wanted = [*hosted.wanted(), hosted.subjects.keeping(self.entry.name)]
            messages = self._cluster.messages(wanted, hosted.position).withColumn("detector", F.lit(self.entry.name))
            made = messages.groupBy("detector").transformWithStateInPandas(Processor(self._carried), ROWS, "Append", "None")
            writer = made.writeStream.foreachBatch(self._publish).option("checkpointLocation", self._checkpoint)
            self._query = writer.trigger(processingTime=TRIGGER).queryName(self._checkpoint.rpartition("/")[2]).start()
        except Exception as error:
            log.warning("the query of %s cannot be started: %s", self.entry.name, error)
            self._failed_at = time.monotonic()
        if self._closed:
            self._stop()

    def _stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    def _publish(self, frame: DataFrame, number: int) -> None:
        """Before a micro-batch is committed all that it made has come through."""
        rows = [(row.kind, row.number, bytes(row.data)) for row in frame.collect()]
        self._announcer.detections(Made(number, data) for kind, number, data in rows if kind == "detection")
        for kind, _, data in rows:
            if kind == "progress":
                self._announcer.progress(data)
            elif kind == "state":
                self._broker.store(self.entry.name, data)
            elif kind == "figures":
                self._measure(msgspec.json.decode(data, type=Measured))
        while not self._broker.flush():
            if self._closed:
                raise ConnectionError("the broker is away")
        for kind, _, data in rows:
            if kind == "state":
                self._handed = read_kept(data).placed

    def _measure(self, measured: Measured) -> None:
        seconds = self.figures.seconds + measured.seconds
        self.figures = Figures(measured.counts, seconds, measured.delay, measured.size)
