"""NATS, core and JetStream: `nats://HOST:PORT/SUBJECT`, with `?stream=NAME` that of a stream.

Credentials are in the environment: NATS_CREDS (a file), NATS_TOKEN, or NATS_USER and NATS_PASSWORD; NATS_CA is a file for TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from coincide.adapters.jsonlines import events_of_messages
from coincide.errors import CoincideError, Diagnostic
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import secret

FETCHED = 1_000
"""Messages that are asked for at a time."""
WAIT = 0.25
"""Seconds that a request for messages waits, and so the longest that `close` takes."""
BACK_OFF = (0.05, 5.0)
"""Seconds before the first attempt to go on after a failure, and the most before a later one."""
PATIENCE = 5.0
"""Seconds in which a server has to answer at first."""
MESSAGE_ID = "Nats-Msg-Id"
FAILURES = (NatsError, OSError, asyncio.TimeoutError)

T = TypeVar("T")


@dataclass(frozen=True)
class Address:
    """What a URL says."""

    server: str
    subject: str
    stream: str | None
    durable: str | None

    @classmethod
    def of(cls, url: str) -> Address:
        parts = urlsplit(url)
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.username or parts.password:
            raise CoincideError(f"'{parts.hostname}': credentials belong into NATS_USER and NATS_PASSWORD, not into the URL")
        if unknown := sorted(options.keys() - {"stream", "durable"}):
            raise CoincideError(Diagnostic(f"'{url}': unknown option '{unknown[0]}'", hint="known: stream, durable"))
        subject = parts.path.strip("/").replace("/", ".")
        if not subject:
            raise CoincideError(f"'{url}' names no subject: nats://HOST:PORT/SUBJECT")
        return cls(f"nats://{parts.netloc or 'localhost'}", subject, options.get("stream"), options.get("durable"))


async def connected(address: Address) -> Client:
    """A connection that mends itself. The first attempt must succeed: a wrong address should be told."""
    said = {
        "user_credentials": os.environ.get("NATS_CREDS"),
        "token": secret("NATS_TOKEN"),
        "user": os.environ.get("NATS_USER"),
        "password": secret("NATS_PASSWORD"),
        "tls": ssl.create_default_context(cafile=ca) if (ca := os.environ.get("NATS_CA")) else None,
    }
    given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    failures: list[Exception] = []

    async def note(error: Exception) -> None:
        failures[:] = [error]

    try:
        await _reached(address)
        work = nats.connect(address.server, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=note, **given)
        return await asyncio.wait_for(work, PATIENCE)
    except FAILURES as error:
        told = failures[0] if failures else error
        raise CoincideError(
            f"cannot reach '{address.server}': {str(told).removeprefix('nats: ') or 'it does not answer'}"
        ) from error


async def _reached(address: Address) -> None:
    """The client would try again and again."""
    parts = urlsplit(address.server)
    _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, parts.port or 4222), PATIENCE)
    writer.close()


class NatsSource(Source):
    """A subject. Of a stream (JetStream) a position is a sequence number, and nothing is missed; what is published to a subject
    of core NATS while nobody listens is gone. A `durable` consumer is acknowledged after checkpoints, for streams that keep
    only what is not; others need none."""

    clock = "wall"

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.address = Address.of(url)
        self.repeatable = self.address.stream is not None
        self._unacknowledged: list[tuple[int, Any]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        self._loop = loop = asyncio.new_event_loop()
        client = loop.run_until_complete(connected(self.address))
        try:
            yield from self._of_stream(loop, client, position) if self.address.stream else self._of_core(loop, client)
        finally:
            loop.run_until_complete(client.close())
            loop.close()

    def _of_core(self, loop: asyncio.AbstractEventLoop, client: Client) -> Iterator[Delivery]:
        messages: list[bytes] = []
        some = asyncio.Event()

        async def take(message: Any) -> None:
            messages.append(message.data)
            some.set()

        async def gather() -> list[bytes]:
            try:
                await asyncio.wait_for(some.wait(), WAIT)
            except TimeoutError:
                return []
            some.clear()
            taken = messages[:]
            messages.clear()
            return taken

        loop.run_until_complete(client.subscribe(self.address.subject, cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1))
        while not self.closed.is_set():
            if taken := loop.run_until_complete(gather()):
                yield self.delivery(self._events(taken), None)

    def _of_stream(self, loop: asyncio.AbstractEventLoop, client: Client, position: Position) -> Iterator[Delivery]:
        last, pause, pull = int(position or 0), BACK_OFF[0], None
        while not self.closed.is_set():
            try:
                pull = pull or loop.run_until_complete(self._consumer(client, last))
                messages = loop.run_until_complete(pull.fetch(FETCHED, timeout=WAIT))
                pause = BACK_OFF[0]
            except TimeoutError:
                continue
            except NotFoundError as error:
                if not last and pull is None:
                    raise CoincideError(f"'{self.url}': there is no stream '{self.address.stream}'") from error
                pull = None
            except FAILURES:
                pull = None  # a consumer that nobody asks goes away; the server may be away, too
                self.closed.wait(pause)
                pause = min(2 * pause, BACK_OFF[1])
            else:
                fresh = messages
                if _sequence(messages[0]) <= last:  # after a connection was made again
                    fresh = [message for message in messages if _sequence(message) > last]
                if fresh:
                    last = _sequence(fresh[-1])
                    if self.address.durable:
                        self._unacknowledged.append((last, fresh[-1]))
                    yield self.delivery(self._events([message.data for message in fresh]), last)

    async def _consumer(self, client: Client, last: int) -> Any:
        """One that begins after the last message that was dealt with."""
        address, stream = self.address, client.jetstream()
        start: dict[str, Any] = {"deliver_policy": DeliverPolicy.ALL}
        if last:
            start = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": last + 1}
        if address.durable is None:
            config = ConsumerConfig(ack_policy=AckPolicy.NONE, inactive_threshold=60, **start)
        else:
            if last:  # what it gave out and nobody dealt with would come again only after a while
                await _forget(stream, address.stream, address.durable)
            config = ConsumerConfig(durable_name=address.durable, ack_policy=AckPolicy.ALL, max_ack_pending=-1, **start)
        return await stream.pull_subscribe(address.subject, address.durable, stream=address.stream, config=config)

    def acknowledge(self, position: Position) -> None:
        done = [message for last, message in self._unacknowledged if last <= position]
        self._unacknowledged = [entry for entry in self._unacknowledged if entry[0] > position]
        if done and self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(done[-1].ack(), self._loop)

    def _events(self, messages: list[bytes]) -> EventBatch:
        """A message is a record, or several, one a line."""
        return EventBatch(events_of_messages(messages, self.address.subject, self.reading.mapping, self.reading.intake))


def _sequence(message: Any) -> int:
    return int(message.metadata.sequence.stream)


async def _forget(stream: Any, name: str | None, durable: str) -> None:
    with suppress(NotFoundError):
        await stream.delete_consumer(name, durable)


class NatsSink(Sink):
    """A subject, in which `{type}` stands for the detection's type. Of a stream (JetStream) each detection is there once: its
    key is the message's id, and after a restart those since the checkpoint are looked up, however long ago that was."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.address = Address.of(url)
        self.once = self.address.stream is not None
        self._there: set[str] = set()
        self._last = 0
        self._loop = asyncio.new_event_loop()

    def open(self, position: Position) -> None:
        Thread(target=self._loop.run_forever, name=self.url, daemon=True).start()
        self._client: Client = self._do(connected(self.address))
        self._stream = self._client.jetstream()
        if self.once:
            self._last = position if position is not None else self._do(self._end())
            self._there = self._do(self._written_after(self._last))

    def write(self, made: Sequence[Made]) -> None:
        fresh = [each for each in made if each.key not in self._there] if self._there else made
        if fresh:
            self._do(self._to_stream(fresh) if self.once else self._to_core(fresh))

    def commit(self) -> Position:
        if not self.once:
            self._do(self._client.flush())
            return None
        self._there.clear()
        return self._last

    def close(self) -> None:
        self._do(self._client.drain())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _subject(self, made: Made) -> str:
        return self.address.subject.replace("{type}", made.type)

    async def _to_core(self, made: Sequence[Made]) -> None:
        for each in made:
            await self._client.publish(self._subject(each), each.line.rstrip(b"\n"))
        await self._client.flush()

    async def _to_stream(self, made: Sequence[Made]) -> None:
        """Until all are acknowledged; what is published again has the same id, and is dropped by the server."""
        pause = BACK_OFF[0]
        while made:
            answers = await asyncio.gather(*map(self._publish, made), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, NotFoundError) or (isinstance(answer, BaseException) and not isinstance(answer, FAILURES)):
                    raise answer
            self._last = max([self._last, *(answer for answer in answers if isinstance(answer, int))])
            made = [each for each, answer in zip(made, answers, strict=True) if isinstance(answer, BaseException)]
            if made:
                await asyncio.sleep(pause)
                pause = min(2 * pause, BACK_OFF[1])

    async def _publish(self, each: Made) -> int:
        headers = {MESSAGE_ID: each.key}
        data = each.line.rstrip(b"\n")
        answer = await self._stream.publish(self._subject(each), data, stream=self.address.stream, headers=headers)
        return answer.seq

    async def _end(self) -> int:
        try:
            state = (await self._stream.stream_info(str(self.address.stream))).state
        except NotFoundError as error:
            raise CoincideError(f"'{self.url}': there is no stream '{self.address.stream}'") from error
        return int(state.last_seq)

    async def _written_after(self, position: int) -> set[str]:
        """Keys of what the stream holds after a position."""
        start = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=position + 1, ack_policy=AckPolicy.NONE
        )
        subject = self.address.subject.replace("{type}", "*")
        pull = await self._stream.pull_subscribe(subject, stream=self.address.stream, config=start)
        left = (await pull.consumer_info()).num_pending or 0
        found: set[str] = set()
        while left > 0:
            messages = await pull.fetch(min(FETCHED, left), timeout=5)
            left -= len(messages)
            found.update(message.headers[MESSAGE_ID] for message in messages if message.headers and MESSAGE_ID in message.headers)
        await pull.unsubscribe()
        return found
