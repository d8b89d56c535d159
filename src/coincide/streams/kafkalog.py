"""A topic of Kafka as a log: where its partitions begin and end, and what lies between two offsets, as often as it is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError

from coincide.errors import CoincideError
from coincide.streams.connection import MENDED, WAIT, BackOff, unreachable
from coincide.streams.kafka import FETCHED, GONE, Message, Topic, client_of, is_final

AHEAD = 100_000
"""Messages that the client may hold before they are taken."""


class Block(NamedTuple):
    """Messages of one partition in their order, as columns. `times` are in milliseconds, if there are any."""

    values: list[bytes | None]
    keys: list[bytes | None]
    offsets: list[int]
    times: list[int | None]


class Log:
    """All partitions of a topic. The first time, that it cannot be reached is an error at once; later it is tried for a while."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._consumer = _consumer(topic, "error")
        self._reached = False

    def close(self) -> None:
        self._consumer.close()

    def begins(self) -> dict[int, int]:
        """The first offset of each partition that is there."""
        return self._offsets(OFFSET_BEGINNING)

    def ends(self) -> dict[int, int]:
        """The offset of each partition that comes next."""
        return self._offsets(OFFSET_END)

    def _offsets(self, which: int) -> dict[int, int]:
        pauses, end = BackOff(self.topic.address.server), time.monotonic() + MENDED
        while True:
            try:
                found = self.topic.offsets(self._consumer, which)
                self._reached = True
                return found
            except CoincideError:
                if not self._reached or time.monotonic() > end:
                    raise
                pauses.wait(Event())


def between(topic: Topic, partition: int, begin: int, end: int, *, losses_fail: bool) -> Iterator[Block]:
    """The messages of a partition from one offset up to another, without that: those that are there, of both."""
    if begin >= end:
        return
    consumer = _consumer(topic, "error" if losses_fail else "earliest", min(AHEAD, end - begin))
    try:
        consumer.assign(topic.at({partition: begin}))
        heard = time.monotonic()
        while begin < end:
            came = consumer.consume(min(FETCHED, end - begin), WAIT)
            if came:
                heard = time.monotonic()
            elif time.monotonic() - heard > MENDED:
                raise unreachable(topic.address.server, f"no message {begin} of partition {partition} of '{topic.name}' comes")
            if found := [each for each in came if each.error() is None and begin <= each.offset() < end]:
                yield _block(found)
            begin = max([begin, *(_next(topic, each, begin) for each in came)])
    finally:
        consumer.close()


def _consumer(topic: Topic, reset: str, ahead: int = AHEAD) -> Any:
    own = topic.settings(enable_auto_commit=False, enable_partition_eof=True, auto_offset_reset=reset, queued_min_messages=ahead)
    return client_of(Consumer, {**own, "group.id": "coincide"})


def _next(topic: Topic, came: Message, wanted: int) -> int:
    """The offset after a message, or that of the end: the last ones may be nothing that is given out."""
    if (error := came.error()) is None:
        return int(came.offset()) + 1
    if error.code() == KafkaError._PARTITION_EOF:
        return int(came.offset())
    if error.code() in GONE:
        raise CoincideError(
            f"the topic '{topic.name}' has no message {wanted} in partition {came.partition()} any more, which was to be read: "
            "messages were removed before they were read; with failOnDataLoss=false that does not matter"
        )
    if is_final(error):
        raise CoincideError(f"'{topic.address.server}': {error.str()}")
    return 0


def _block(messages: list[Message]) -> Block:
    times = [time if kind else None for kind, time in (each.timestamp() for each in messages)]
    return Block(
        [each.value() for each in messages], [each.key() for each in messages], [each.offset() for each in messages], times
    )
