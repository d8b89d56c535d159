"""Kafka: `kafka://HOST:PORT[,HOST:PORT…]/TOPIC`, `kafkas://` with TLS.

Credentials are in the environment: KAFKA_USER and KAFKA_PASSWORD (or KAFKA_PASSWORD_FILE), KAFKA_MECHANISM (PLAIN unless it says
otherwise); KAFKA_CA, KAFKA_CERT and KAFKA_KEY name files for TLS. KAFKA_CONFIG names a file of properties of librdkafka."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from coincide.adapters.files import readable
from coincide.errors import CoincideError, Diagnostic
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import PATIENCE, WAIT, Address, log, secret, unreachable

FETCHED = 10_000
"""Messages that are taken at a time."""
WAITING = 100_000
"""Messages of partitions that are ahead which may wait for the others."""
LOOK = 30.0
"""Seconds between two looks whether the topic has more partitions."""
GONE = KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE
"""What is said of an offset that is not there (any more)."""

Message = Any
"""Of the client; releases differ in what they say about its type."""


class Topic:
    """Where a URL leads to."""

    def __init__(self, url: str, options: Sequence[str] = ()) -> None:
        parts = urlsplit(url)
        first, *others = parts.netloc.split(",")
        self.address = Address.of(parts._replace(netloc=first).geturl(), options, "KAFKA_USER and KAFKA_PASSWORD")
        self.name = self.address.path
        self._reached = False
        self.brokers = ",".join([f"{self.address.host}:{self.address.port or 9092}", *others])
        if not self.name:
            raise CoincideError(f"'{self.address.server}' names no topic: kafka://HOST:PORT/TOPIC")

    def settings(self, **own: Any) -> dict[str, Any]:
        user, secure = os.environ.get("KAFKA_USER"), self.address.scheme == "kafkas"
        said = {
            "security.protocol": ("sasl_" if user else "") + ("ssl" if secure else "plaintext"),
            "sasl.mechanism": os.environ.get("KAFKA_MECHANISM", "PLAIN") if user else None,
            "sasl.username": user,
            "sasl.password": secret("KAFKA_PASSWORD") if user else None,
            "ssl.ca.location": os.environ.get("KAFKA_CA"),
            "ssl.certificate.location": os.environ.get("KAFKA_CERT"),
            "ssl.key.location": os.environ.get("KAFKA_KEY"),
        }
        given = {name: value for name, value in said.items() if value is not None}
        named = {name.replace("_", "."): value for name, value in own.items()}
        return {"bootstrap.servers": self.brokers, "log_level": 2, "error_cb": self._on_error, **given, **_properties(), **named}

    def _on_error(self, error: Any) -> None:
        if self._reached and error.code() == KafkaError._ALL_BROKERS_DOWN:
            log.warning("'%s' cannot be reached at the moment; it is tried again", self.address.server)

    def partitions(self, client: Any) -> list[int]:
        """Raises CoincideError if there is no such topic, or nobody to ask."""
        try:
            found = client.list_topics(self.name, timeout=PATIENCE).topics[self.name]
        except KafkaException as error:
            raise unreachable(self.address.server, error.args[0].str()) from error
        self._reached = True
        if found.error is not None:
            raise CoincideError(f"'{self.address.server}': no topic '{self.name}': {found.error.str()}")
        return sorted(found.partitions)

    def offsets(self, client: Any, which: int) -> dict[int, int]:
        """Where the partitions begin (OFFSET_BEGINNING) or end (OFFSET_END). Raises CoincideError as above."""
        try:
            asked = self.at(dict.fromkeys(self.partitions(client), which))
            found = client.offsets_for_times(asked, timeout=PATIENCE)  # of all at once, unlike get_watermark_offsets
        except KafkaException as error:
            raise unreachable(self.address.server, error.args[0].str()) from error
        for part in found:
            if part.error is not None:
                raise unreachable(self.address.server, part.error.str())
        return {part.partition: part.offset for part in found}

    def at(self, offsets: dict[int, int]) -> list[TopicPartition]:
        return [TopicPartition(self.name, partition, offset) for partition, offset in offsets.items()]


def _properties() -> dict[str, str]:
    """Lines of the form `name=value`."""
    if (file := os.environ.get("KAFKA_CONFIG")) is None:
        return {}
    with readable(file), open(file, encoding="utf-8") as lines:
        entries = [line.strip().partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {name.strip(): value.strip() for name, _, value in entries}


def client_of(kind: Any, settings: dict[str, Any]) -> Any:
    try:
        return kind(settings)
    except KafkaException as error:
        raise CoincideError(f"Kafka's client does not take its settings: {error.args[0].str()}") from error


def is_final(error: Any) -> bool:
    """Is it one that the client does not get over by itself?"""
    return bool(error.fatal() or not (error.retriable() or error.code() < 0))


class KafkaSource(Source):
    """All partitions of a topic, from their beginnings, or from where the `group` was. A position tells the next offset of each.
    The group, if there is one, is told after checkpoints."""

    clock = "wall"

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.topic = Topic(url, ["group"])
        self.group = self.topic.address.options.get("group")
        self._consumer: Any = None
        self._closing = Lock()  # the thread that reads closes it, another one acknowledges
        self._left = False

    def more(self) -> bool:
        return self._left

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        settings = self.topic.settings(enable_auto_commit=False, enable_partition_eof=True, auto_offset_reset="error")
        self._consumer = client_of(Consumer, {**settings, "group.id": self.group or "coincide"})
        try:
            offsets = self._beginning(position)
            self._consumer.assign(self.topic.at(offsets))
            partitions = [*offsets]
            offsets = {partition: offset for partition, offset in offsets.items() if offset >= 0}
            for messages in self._in_step(partitions):
                for message in messages:
                    offsets[message.partition()] = message.offset() + 1
                position = [[partition, offset] for partition, offset in offsets.items()]
                yield self.delivery(self._events(messages), position)
                if not self.awaits_checkpoints:
                    self.acknowledge(position)
        finally:
            with self._closing:
                consumer, self._consumer = self._consumer, None
                consumer.close()

    def acknowledge(self, position: Position) -> None:
        with self._closing:
            if self.group is not None and self._consumer is not None:
                self._consumer.commit(offsets=self.topic.at(dict(position)), asynchronous=True)

    def _beginning(self, position: Position) -> dict[int, int]:
        begin = dict.fromkeys(self.topic.partitions(self._consumer), OFFSET_BEGINNING)
        if position is not None:
            return {**begin, **dict(position)}
        if self.group is None:
            return begin
        try:
            known = self._consumer.committed(self.topic.at(begin), timeout=PATIENCE)
        except KafkaException as error:
            raise unreachable(self.topic.address.server, error.args[0].str()) from error
        return {**begin, **{each.partition: each.offset for each in known if each.offset >= 0}}

    def _in_step(self, partitions: list[int]) -> Iterator[list[Message]]:
        """Messages, of all partitions in the order of their times."""
        step, looked = InStep(partitions), time.monotonic()
        while not self.closed.is_set():
            came = [each for each in (self._consumer.poll(WAIT),) if each is not None]
            came += self._consumer.consume(FETCHED, 0) if came else []
            for message in came:
                self._sort(message, step)
            self._left = bool(came) and step.has_more
            if ready := step.ready() if came else step.all():
                yield ready
            if time.monotonic() - looked > LOOK:
                looked = time.monotonic()
                self._join_new(step)

    def _sort(self, message: Message, step: InStep) -> None:
        if (error := message.error()) is None:
            step.add(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            step.ended(message.partition())
        elif error.code() in GONE:
            hint = "without its checkpoint the run begins with what is there"
            raise CoincideError(Diagnostic(f"'{self.url}': what came after the checkpoint is no longer there", hint=hint))
        elif is_final(error):
            raise CoincideError(f"'{self.url}': {error.str()}")

    def _join_new(self, step: InStep) -> None:
        try:
            new = [number for number in self.topic.partitions(self._consumer) if number not in step.partitions]
        except CoincideError:  # nobody to ask at the moment
            return
        self._consumer.incremental_assign(self.topic.at(dict.fromkeys(new, OFFSET_BEGINNING)))
        for partition in new:
            step.join(partition)

    def _events(self, messages: list[Message]) -> EventBatch:
        values = [value for message in messages if (value := message.value()) is not None]
        return self.events(values, self.topic.name)


class InStep:
    """Partitions are fetched in turns, and of a long backlog one would be far ahead of another, which then were late. So a
    message waits until no partition that has more can have an older one; but not for partitions from which nothing comes."""

    def __init__(self, partitions: Sequence[int]) -> None:
        self.partitions: dict[int, deque[Message]] = {number: deque() for number in partitions}
        self._more = {*partitions}
        self._count = 0

    @property
    def has_more(self) -> bool:
        """Has any partition not come to its end?"""
        return bool(self._more)

    def join(self, partition: int) -> None:
        self.partitions[partition] = deque()
        self._more.add(partition)

    def add(self, message: Message) -> None:
        self._more.add(message.partition())
        self.partitions[message.partition()].append(message)
        self._count += 1

    def ended(self, partition: int) -> None:
        self._more.discard(partition)

    def ready(self) -> list[Message]:
        behind = [self.partitions[number] for number in self._more]
        if self._count > WAITING or not behind:
            return self.all()
        if not all(behind):
            return []
        return self._messages_until(min(_time(messages[-1]) for messages in behind))

    def all(self) -> list[Message]:
        return self._messages_until(None)

    def _messages_until(self, until: int | None) -> list[Message]:
        found: list[Message] = []
        for messages in self.partitions.values():
            while messages and (until is None or _time(messages[0]) <= until):
                found.append(messages.popleft())
        self._count -= len(found)
        return sorted(found, key=_time)


def _time(message: Message) -> int:
    return int(message.timestamp()[1])


class KafkaSink(Sink):
    """A topic in which each detection is once: its key is that of the message, the producer is idempotent, and after a restart
    the messages since the checkpoint are looked up."""

    once = True
    keyed = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.topic = Topic(url)
        self._there: set[str] = set()
        self._ends: dict[int, int] = {}
        self._failed: list[KafkaError] = []

    def open(self, position: Position) -> None:
        forever = self.topic.settings(enable_idempotence=True, linger_ms=1, message_timeout_ms=0)
        self._producer: Any = client_of(Producer, forever)
        reading = self.topic.settings(enable_auto_commit=False, enable_partition_eof=True, auto_offset_reset="earliest")
        consumer = client_of(Consumer, {**reading, "group.id": "coincide"})
        try:
            now = self.topic.offsets(consumer, OFFSET_END)
            self._ends = {**now, **dict(position or ())}
            self._there = self._keys(consumer, now)
        finally:
            consumer.close()

    def write(self, made: Sequence[Made]) -> None:
        for each in made:
            if each.key in self._there:
                self._there.discard(each.key)  # each comes again once
            else:
                self._produce(each)
        while self._producer.flush(WAIT):
            self._check()
        self._check()

    def commit(self) -> Position:
        return [[partition, offset] for partition, offset in self._ends.items()]

    def close(self) -> None:
        self._producer.flush(PATIENCE)

    def _produce(self, each: Made) -> None:
        while True:
            try:
                headers = {"type": each.type.encode()}
                line = each.line.rstrip(b"\n")
                self._producer.produce(self.topic.name, line, each.key, headers=headers, on_delivery=self._on_delivery)
                return
            except BufferError:  # there is no room before some have come through
                self._producer.poll(WAIT)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
        else:
            self._ends[message.partition()] = max(self._ends.get(message.partition(), 0), message.offset() + 1)

    def _check(self) -> None:
        if self._failed:
            raise CoincideError(f"'{self.url}' does not take detections: {self._failed[0].str()}")

    def _keys(self, consumer: Any, now: dict[int, int]) -> set[str]:
        """Of what was written since the checkpoint, as far as it is still there. The last of it may be nothing that is given
        out, such as the end of somebody's transaction: then the end of the partition is told."""
        left = {partition: end for partition, end in now.items() if self._ends[partition] < end}
        found: set[str] = set()
        if left:
            consumer.assign(self.topic.at({partition: self._ends[partition] for partition in left}))
        while left:
            for message in consumer.consume(FETCHED, WAIT):
                if (error := message.error()) is None:
                    found.add((message.key() or b"").decode("utf-8", "replace"))
                ended = error is not None and error.code() == KafkaError._PARTITION_EOF
                if ended or (error is None and message.offset() + 1 >= left.get(message.partition(), 0)):
                    left.pop(message.partition(), None)
        return found
