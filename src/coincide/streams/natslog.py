"""A stream of JetStream as a log: where it begins and ends, and what lies between two of its numbers, as often as it is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Event
from typing import Any, NamedTuple

from coincide.errors import CoincideError
from coincide.streams.connection import MENDED, BackOff, unreachable
from coincide.streams.nats import ASKED, FAILURES, PATIENCE, Subject, wired
from coincide.streams.natswire import Wire, published, sequence, subject_of

NOTHING_THERE = 404, 408
"""What a server says to a request for messages when there are no more."""
UNCHANGED = "limits"
"""The retention of streams that keep their messages whoever has read them."""


class Block(NamedTuple):
    """Messages in their order, as columns. `published` is in microseconds."""

    payloads: list[bytes]
    subjects: list[bytes]
    sequences: list[int]
    published: list[int]


class Log:
    """The messages of one subject (wildcards are allowed) in a stream. A connection is made when it is needed, and again when it
    breaks; if it must be there `at_once`, that the first cannot be made is an error."""

    def __init__(self, address: Subject, *, at_once: bool = True) -> None:
        self.address = address
        self._at_once = at_once
        self._wire: Wire | None = None

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def check(self) -> None:
        """Raises CoincideError for a stream that forgets what was read: it cannot be read again after a failure."""
        retention = self._state()["config"].get("retention", UNCHANGED)
        if retention != UNCHANGED:
            raise CoincideError(
                f"the stream '{self.address.stream}' keeps messages only until they are read (retention '{retention}'), so what "
                f"was being dealt with could not be read again; '{UNCHANGED}' is needed"
            )

    def bounds(self) -> tuple[int, int]:
        """The numbers of the first message that is there and of the last that ever was."""
        state = self._state()["state"]
        return int(state["first_seq"]), int(state["last_seq"])

    def next_after(self, last: int) -> int | None:
        """The number of the first message of the subject after another."""
        found = self._ask(f"STREAM.MSG.GET.{self.address.stream}", {"seq": last + 1, "next_by_subj": self.address.name})
        return int(found["message"]["seq"]) if "message" in found else None

    def between(self, after: int, last: int) -> Iterator[Block]:
        """All messages of the subject after one number, up to another: those that are there, of both."""
        while after < last:
            block = self._repeated(lambda after=after: self._block(after, last))  # type: ignore[misc]
            if not block.sequences:
                return
            after = block.sequences[-1]
            yield block

    def _state(self) -> Any:
        found = self._ask(f"STREAM.INFO.{self.address.stream}", {})
        if "error" in found:
            raise CoincideError(f"'{self.address.server}': there is no stream '{self.address.stream}'")
        return found

    def _ask(self, what: str, question: Mapping[str, object]) -> Any:
        return self._repeated(lambda: _answer(self._connected(), what, question))

    def _repeated(self, work: Callable[[], Any]) -> Any:
        """As often as connections break, for a while."""
        pauses, end = BackOff(self.address.server), time.monotonic() + MENDED
        while True:
            try:
                done = work()
                self._at_once = False
                return done
            except FAILURES as error:
                self.close()
                if self._at_once or time.monotonic() > end:
                    raise unreachable(self.address.server, error) from error
                pauses.wait(Event())

    def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = wired(self.address)
            self._wire.subscribe(self._wire.inbox)
        return self._wire

    def _block(self, after: int, last: int) -> Block:
        """By a consumer of its own, which is gone when it is read."""
        wire = self._connected()
        stream, start = self.address.stream, {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
        own = {"ack_policy": "none", "mem_storage": True, "inactive_threshold": 30_000_000_000, "num_replicas": 1}
        config = {**start, **own, "filter_subject": self.address.name}
        made = _answer(wire, f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config})
        if "error" in made:
            raise CoincideError(f"'{self.address.server}': {made['error'].get('description', 'no messages')}")
        block = _fetched(wire, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{made['name']}", last, min(ASKED, last - after))
        _answer(wire, f"CONSUMER.DELETE.{stream}.{made['name']}", {})
        return block


def _fetched(wire: Wire, ask: str, last: int, most: int) -> Block:
    """Up to so many messages; what has a higher number than the last is left out."""
    heads: list[bytes] = []
    wire.heads = heads
    payloads: list[bytes] = []
    wire.publish(ask, json.dumps({"batch": most, "no_wait": True}).encode(), wire.inbox)
    try:
        while len(payloads) < most and not wire.statuses:
            if not wire.read(PATIENCE):
                raise ConnectionError("the server does not answer")
            payloads += wire.taken()
    finally:
        wire.heads = None
    statuses, wire.statuses = wire.statuses, []
    for status in statuses:
        if status.code not in NOTHING_THERE:
            raise ConnectionError(f"no messages any more ({status.text})")
    numbers = [sequence(head) for head in heads]
    count = sum(number <= last for number in numbers)
    heads = heads[:count]
    return Block(payloads[:count], [*map(subject_of, heads)], numbers[:count], [published(head) // 1000 for head in heads])


def _answer(wire: Wire, what: str, question: Mapping[str, object]) -> Any:
    """What JetStream says to a question, one at a time."""
    wire.publish(f"$JS.API.{what}", json.dumps(question).encode(), wire.inbox)
    while not (answers := wire.taken()):
        if wire.statuses:
            wire.statuses.clear()
            raise CoincideError("the server has no JetStream")
        if not wire.read(PATIENCE):
            raise ConnectionError("the server does not answer")
    return json.loads(answers[-1])
