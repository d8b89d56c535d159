"""NATS, core and JetStream: `nats://HOST:PORT/SUBJECT`, with `?stream=NAME` that of a stream.

Credentials are in the environment: NATS_CREDS (a file), NATS_TOKEN, or NATS_USER and NATS_PASSWORD; NATS_CA is a file for TLS."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Event
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from coincide.errors import CoincideError
from coincide.model.batch import EMPTY
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import Address, BackOff, secret, unreachable
from coincide.streams.natswire import MESSAGE_ID, Wire, framed, pending, reply_of, sequence

log = logging.getLogger("coincide")

FETCHED = 1_000
ASKED = 10_000
"""Messages that are asked for at a time."""
EXPECTED = (100, 404, 408)
"""What a server says when there is nothing, or a request is over."""
WAIT = 0.25
"""Seconds that a request for messages waits, and so the longest that `close` takes."""
PAUSE = 0.001
"""Seconds between two looks whether the run can take more."""
PATIENCE = 5.0
"""Seconds in which a server has to answer at first."""
GREETINGS = 3
"""How often a server that resets the connection while it is greeted is greeted again."""
FAILURES = (NatsError, OSError, asyncio.TimeoutError)


class Subject:
    """What a URL says: where the server is, a subject there, and of a stream its name."""

    def __init__(self, url: str) -> None:
        address = Address.of(url, ["stream", "durable"], "NATS_USER and NATS_PASSWORD")
        self.server = address.server
        self.place = address.host, address.port or 4222
        self.name = address.path.strip("/").replace("/", ".")
        self.stream, self.durable = address.options.get("stream"), address.options.get("durable")
        if not self.name:
            raise CoincideError(f"'{self.server}' names no subject: nats://HOST:PORT/SUBJECT")


def given_credentials() -> dict[str, str]:
    """Credentials, as the environment gives them."""
    found = {
        "user_credentials": os.environ.get("NATS_CREDS"),
        "token": secret("NATS_TOKEN"),
        "user": os.environ.get("NATS_USER"),
        "password": secret("NATS_PASSWORD"),
    }
    return {name: value for name, value in found.items() if value is not None}


def authorities() -> ssl.SSLContext | None:
    return ssl.create_default_context(cafile=ca) if (ca := os.environ.get("NATS_CA")) else None


async def connected(address: Subject) -> Client:
    """A connection that mends itself. The first attempt must succeed: a wrong address should be told."""
    given: dict[str, Any] = {**given_credentials(), **({} if (tls := authorities()) is None else {"tls": tls})}
    failures: list[Exception] = []

    async def note(error: Exception) -> None:
        if isinstance(error, NatsError) or not failures:  # what the server says tells more than that it has hung up
            failures[:] = [error]

    try:
        await _reached(address)
        work = nats.connect(address.server, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=note, **given)
        return await asyncio.wait_for(work, PATIENCE)
    except FAILURES as error:
        raise _unreachable(address, failures[0] if failures else error) from error


def _unreachable(address: Subject, error: Exception) -> CoincideError:
    return unreachable(address.server, str(error).removeprefix("nats: "))


async def _reached(address: Subject) -> None:
    """The client would try again and again."""
    _, writer = await asyncio.wait_for(asyncio.open_connection(*address.place), PATIENCE)
    writer.close()


def wired(address: Subject) -> Wire:
    """A server that does not know us can close the connection before its reason has come: it is asked again."""
    for _ in range(GREETINGS):
        with suppress(ConnectionResetError):
            return Wire(*address.place, given_credentials(), authorities(), PATIENCE)
    return Wire(*address.place, given_credentials(), authorities(), PATIENCE)


class NatsSource(Source):
    """A subject. Of a stream (JetStream) a position is a sequence number, and nothing is missed; what is published to a subject
    of core NATS while nobody listens is gone. A `durable` consumer is acknowledged after checkpoints, for streams that keep
    only what is not; others need none."""

    clock = "wall"
    gathers = True

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.address = Subject(url)
        self.repeatable = self.address.stream is not None
        self._wire: Wire | None = None
        self._unacknowledged: list[tuple[int, bytes]] = []
        self._left = False  # does the server have more, or we ourselves?

    def more(self) -> bool:
        wire = self._wire
        return wire is not None and (self._left or wire.has_more())

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        """From one connection after another: what breaks is made again, after pauses that grow."""
        last, pauses, begun = int(position or 0), BackOff(), False
        while not self.closed.is_set():
            try:
                for delivery in self._of_stream(last) if self.address.stream else self._of_core():
                    pauses.reset()
                    begun, last = True, delivery.position or 0
                    if len(delivery.batch):
                        yield delivery
            except (CoincideError, *FAILURES) as error:
                if not begun:
                    raise error if isinstance(error, CoincideError) else _unreachable(self.address, error) from error
                log.warning("'%s': %s; connecting again", self.url, error)
                pauses.wait(self.closed)
            finally:
                self._hang_up()

    def _connect(self, subject: str | None = None) -> Wire:
        self._wire = wire = wired(self.address)
        wire.subscribe(subject or wire.inbox)
        return wire

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire, self._left = None, False

    def _of_core(self) -> Iterator[Delivery]:
        """The server drops who does not keep up, and the connection is made again: memory stays what it is."""
        wire = self._connect(self.address.name)
        yield self.delivery(EMPTY, None)
        while not self.closed.is_set():
            self._left = wire.read(WAIT)
            if messages := self._gathered(wire):
                yield self.delivery(self.events(messages, self.address.name), None)
            self._left = False

    def _of_stream(self, last: int) -> Iterator[Delivery]:
        consumer = asyncio.run(self._consumer(last))
        wire, asked = self._connect(), 0
        yield self.delivery(EMPTY, last)
        ask = f"$JS.API.CONSUMER.MSG.NEXT.{self.address.stream}.{consumer}"
        while not self.closed.is_set():
            if asked <= ASKED // 2:
                wire.publish(ask, b'{"batch":%d,"expires":30000000000}' % ASKED, wire.inbox)
                asked += ASKED
            came = wire.read(WAIT)
            self._left = self._left or came
            messages = self._gathered(wire)
            asked -= len(messages)
            for status in wire.statuses:
                if status.code not in EXPECTED:
                    raise ConnectionError(f"no messages any more ({status.text})")
                asked -= status.left
            wire.statuses.clear()
            if not messages:
                self._left = False
                continue
            last = sequence(wire.last)
            if self.address.durable:
                self._unacknowledged.append((last, reply_of(wire.last)))
            yield self.delivery(self.events(messages, self.address.name), last)
            self._left = pending(wire.last) > 0

    def _gathered(self, wire: Wire) -> list[bytes]:
        """What has come, and what comes within the latency, or while the run has something else to do: many at a time cost
        less."""
        if wire.payloads:
            end = time.monotonic() + self.latency
            while len(wire.payloads) < ASKED and ((left := end - time.monotonic()) > 0 or self._may_go_on()):
                wire.read(max(left, PAUSE))
        return wire.taken()

    def _may_go_on(self) -> bool:
        return self.behind() and not self.closed.is_set()

    async def _consumer(self, last: int) -> str:
        """The name of one that begins after the last message that was dealt with."""
        address = self.address
        client = await connected(address)
        stream = client.jetstream()
        try:
            if address.durable is not None:  # what it gave out and nobody dealt with would come again only after a while
                last = last or await _acknowledged(stream, address.stream, address.durable)
                await _forget(stream, address.stream, address.durable)
            start: dict[str, Any] = {"deliver_policy": DeliverPolicy.ALL}
            if last:
                start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": last + 1}
            start["filter_subject"] = address.name
            if address.durable is None:
                config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=60, **start)
            else:
                config = ConsumerConfig(durable_name=address.durable, ack_policy=AckPolicy.ALL, max_ack_pending=-1, **start)
            return str((await stream.add_consumer(str(address.stream), config)).name)
        except NotFoundError as error:
            raise CoincideError(f"'{self.url}': there is no stream '{address.stream}'") from error
        finally:
            await client.close()

    def acknowledge(self, position: Position) -> None:
        done = [reply for last, reply in self._unacknowledged if last <= position]
        self._unacknowledged = [entry for entry in self._unacknowledged if entry[0] > position]
        if done and self._wire is not None:
            with suppress(OSError):  # then it is acknowledged with the next
                self._wire.publish(done[-1].decode(), b"+ACK")


async def _acknowledged(stream: Any, name: str | None, durable: str) -> int:
    """The last message up to which a consumer has seen all acknowledged; 0: none, or there is no such consumer."""
    try:
        floor = (await stream.consumer_info(name, durable)).ack_floor
    except NotFoundError:
        return 0
    return 0 if floor is None else int(floor.stream_seq)


async def _forget(stream: Any, name: str | None, durable: str) -> None:
    with suppress(NotFoundError):
        await stream.delete_consumer(name, durable)


class NatsSink(Sink):
    """A subject, in which `{type}` stands for the detection's type. Of a stream (JetStream) each detection is there once: its
    key is the message's id, and after a restart those since the checkpoint are looked up, however long ago that was."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.address = Subject(url)
        self.once = self.address.stream is not None
        self._there: set[str] = set()
        self._last = 0
        self._wire: Wire | None = None
        self._closed = Event()

    def open(self, position: Position) -> None:
        asyncio.run(self._look(position))
        self._connected()

    def write(self, made: Sequence[Made]) -> None:
        fresh = [each for each in made if each.key not in self._there] if self._there else made
        self._there.difference_update([each.key for each in made] if self._there else ())  # each comes again once
        for begin in range(0, len(fresh), FETCHED):
            self._come_through(fresh[begin : begin + FETCHED])

    def commit(self) -> Position:
        return self._last if self.once else None

    def close(self) -> None:
        self._closed.set()
        self._hang_up()

    def _come_through(self, made: Sequence[Made]) -> None:
        """Until all are acknowledged; what is published again has the same id, and is dropped by the server."""
        pauses = BackOff()
        while True:
            try:
                self._publish(self._connected(), made)
                return
            except OSError as error:
                self._hang_up()
                if pauses.wait(self._closed):
                    raise unreachable(self.address.server, error) from error
                log.warning("'%s': %s; connecting again", self.url, error)

    def _connected(self) -> Wire:
        if self._wire is None:
            self._wire = wired(self.address)
            self._wire.subscribe(self._wire.inbox)
        return self._wire

    def _hang_up(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def _publish(self, wire: Wire, made: Sequence[Made]) -> None:
        if not self.once:
            wire.send(b"".join(framed(self._subject(each), each.line.rstrip(b"\n")) for each in made))
            wire.flush(PATIENCE)
            return
        frames = (framed(self._subject(each), each.line.rstrip(b"\n"), wire.inbox, each.key) for each in made)
        wire.send(b"".join(frames))
        acknowledged = 0
        while acknowledged < len(made):
            if not wire.read(PATIENCE):
                raise ConnectionError("the server does not acknowledge")
            answers = [json.loads(answer) for answer in wire.taken()]
            if wire.statuses or any(answer.get("stream") != self.address.stream for answer in answers):
                self._refuse(answers)
            self._last = max([self._last, *(answer["seq"] for answer in answers)])
            acknowledged += len(answers)

    def _refuse(self, answers: Sequence[dict[str, Any]]) -> None:
        errors = [answer["error"] for answer in answers if "error" in answer]
        if errors and errors[0].get("code", 0) >= 500:  # it may be better soon
            raise ConnectionError(errors[0].get("description", "the server cannot keep it"))
        said = f": {errors[0].get('description')}" if errors else ""
        raise CoincideError(f"'{self.url}': the stream '{self.address.stream}' does not take detections{said}")

    def _subject(self, made: Made) -> str:
        return self.address.name.replace("{type}", made.type)

    async def _look(self, position: Position) -> None:
        """Where the stream ends, and what it holds already of what will be made again."""
        client = await connected(self.address)
        try:
            if self.once:
                stream = client.jetstream()
                self._last = position if position is not None else await self._end(stream)
                self._there = await self._written_after(stream, self._last)
        finally:
            await client.close()

    async def _end(self, stream: Any) -> int:
        try:
            state = (await stream.stream_info(str(self.address.stream))).state
        except NotFoundError as error:
            raise CoincideError(f"'{self.url}': there is no stream '{self.address.stream}'") from error
        return int(state.last_seq)

    async def _written_after(self, stream: Any, position: int) -> set[str]:
        """Keys of what the stream holds after a position."""
        start = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=position + 1, ack_policy=AckPolicy.NONE
        )
        subject = self.address.name.replace("{type}", "*")
        pull = await stream.pull_subscribe(subject, stream=self.address.stream, config=start)
        left = (await pull.consumer_info()).num_pending or 0
        found: set[str] = set()
        while left > 0:
            messages = await pull.fetch(min(FETCHED, left), timeout=5)
            left -= len(messages)
            found.update(message.headers[MESSAGE_ID] for message in messages if message.headers and MESSAGE_ID in message.headers)
        await pull.unsubscribe()
        return found
