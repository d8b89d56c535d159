"""The broker of a network on NATS: a stream of JetStream for everything that happens, another for states.

A thread has the connection; nodes call it from theirs. What breaks is mended there: readers begin again after the last message
that they gave, and what was to be published is published again under the same keys."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from statistics import median
from threading import Event as Flag
from threading import Thread
from typing import Any, TypeVar

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import APIError, NotFoundError

from coincide.errors import CoincideError
from coincide.network.broker import Message, token
from coincide.streams.nats import FAILURES, Subject, connected
from coincide.streams.natswire import MESSAGE_ID

log = logging.getLogger("coincide.network")

T = TypeVar("T")

SILENCE = 2.0
"""Seconds without a message, not even of the clock, after which a reader asks anew."""
TOGETHER = 256
"""Messages that are on their way to the broker at a time."""
PART = 512 * 1024
"""Bytes of a state in one message."""
ANSWER = 3.0
"""Seconds in which the broker has to answer."""
PAUSE = 0.1
ROOM = 10_000
"""Messages that may wait to be published before publishers have to wait."""
AHEAD = 8 * 2**20
"""Bytes that a reader takes before they are wanted."""
REMEMBERED = 5
"""Ways to another node that are measured, of which the middle one counts."""
KEYS_KEPT = 600.0
"""Seconds for which the broker knows keys."""


class NatsBroker:
    """A connection. `retention` is for how many seconds the broker keeps what has happened; None: for ever. Where the URL is that
    of a leaf node, `domain` is the domain of JetStream at the hub."""

    def __init__(self, url: str, network: str = "coincide", retention: float | None = None, domain: str | None = None) -> None:
        self.url, self.domain = url, domain
        self.address = Subject(f"{url.rstrip('/')}/{network}")
        self.network = network
        self.arrived = Flag()
        self._retention = retention
        self._outgoing: deque[tuple[str, bytes, str]] = deque()
        self._readers: set[NatsReader] = set()
        self._slots: dict[str, int] = {}
        self._ways: dict[str, deque[float]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="broker", daemon=True)
        self._thread.start()
        self._more = asyncio.Event()
        self._client: Client = self._call(self._connect(), 2 * ANSWER)
        asyncio.run_coroutine_threadsafe(self._send(), self._loop)

    @property
    def states(self) -> str:
        return f"{self.network}-state"

    def wait(self, seconds: float) -> None:
        """Until something comes, so long at most."""
        self.arrived.wait(seconds)
        self.arrived.clear()

    def flush(self, seconds: float = ANSWER) -> bool:
        """Has all come through that was published?"""
        end = time.monotonic() + seconds
        while self._outgoing and time.monotonic() < end:
            time.sleep(0.005)
        return not self._outgoing

    def make_room(self) -> None:
        """Waits while too much waits to be published."""
        while len(self._outgoing) > ROOM:
            time.sleep(0.005)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.flush()
        with suppress(*FAILURES):
            self._call(self._hang_up(), ANSWER)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ANSWER)
        self._loop.close()

    async def _hang_up(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await self._client.close()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def round_trip(self) -> float:
        """Milliseconds to the broker and back."""
        began = time.perf_counter()
        self._call(self._client.flush(1), ANSWER)
        return (time.perf_counter() - began) * 1000

    # Who is where.

    def answer(self, name: str) -> None:
        """Others may measure the way to this node."""
        self._call(self._client.subscribe(self._ping(name), cb=_echo))

    def measure(self, names: Iterable[str]) -> None:
        """The ways to other nodes, without waiting for them."""
        for name in names:
            asyncio.run_coroutine_threadsafe(self._measure(name), self._loop)

    def latency(self, name: str) -> float | None:
        """Milliseconds from here to another node, by way of the broker; None: nobody has answered yet."""
        found = self._ways.get(name)
        return round(median(found) / 2, 3) if found else None

    def _ping(self, name: str) -> str:
        return f"{self.network}-ping.{token(name)}"

    async def _measure(self, name: str) -> None:
        began = time.perf_counter()
        with suppress(*FAILURES, NatsError):
            await self._client.request(self._ping(name), timeout=1.0)
            self._ways.setdefault(name, deque(maxlen=REMEMBERED)).append((time.perf_counter() - began) * 1000)

    # What nodes ask.

    def publish(self, subject: str, data: bytes, key: str = "") -> None:
        self._outgoing.append((subject, data, key))
        self._loop.call_soon_threadsafe(self._more.set)

    def open(self, subjects: Sequence[str], after: int) -> NatsReader:
        reader = NatsReader(self, list(subjects), after)
        self._readers.add(reader)
        self._loop.call_soon_threadsafe(reader.begin)
        return reader

    def last(self, subject: str) -> Message | None:
        return self._call(self._last(self.network, subject))

    def end(self) -> int:
        async def ask() -> int:
            return int((await self.stream().stream_info(self.network)).state.last_seq)

        return self._call(ask())

    def store(self, name: str, data: bytes) -> None:
        """Its parts first, then what says that they are there: whatever happens in between, the one before is whole."""
        slot = self._slots[name] = 1 - self._slots.get(name, 1)
        base = f"{self.states}.{token(name)}"
        parts = [data[at : at + PART] for at in range(0, len(data), PART)] or [b""]
        for number, part in enumerate(parts):
            self.publish(f"{base}.{slot}.{number}", part)
        head = [slot, len(parts), blake2b(data, digest_size=16).hexdigest()]
        self.publish(f"{base}.head", msgspec.json.encode(head))

    def load(self, name: str) -> bytes | None:
        base = f"{self.states}.{token(name)}"
        head = self._call(self._last(self.states, f"{base}.head"))
        if head is None:
            return None
        slot, count, digest = msgspec.json.decode(head.data, type=tuple[int, int, str])
        self._slots[name] = slot
        parts = [self._call(self._last(self.states, f"{base}.{slot}.{number}")) for number in range(count)]
        data = b"".join(part.data for part in parts if part is not None)
        if blake2b(data, digest_size=16).hexdigest() != digest:
            raise ConnectionError("a state is being written")
        return data

    # The connection's thread.

    def _call(self, work: Coroutine[Any, Any, T], seconds: float = ANSWER) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except CoincideError:
            raise
        except (TimeoutError, NatsError) as error:
            future.cancel()
            raise ConnectionError(str(error) or "the broker does not answer") from error

    def stream(self) -> JetStreamContext:
        return self._client.jetstream(domain=self.domain)

    async def _connect(self) -> Client:
        client = await connected(self.address)
        self._client = client
        stream = self.stream()
        events = StreamConfig(
            name=self.network, subjects=[f"{self.network}.>"], max_age=self._retention, duplicate_window=self._keys_kept()
        )
        states = StreamConfig(name=self.states, subjects=[f"{self.states}.>"], max_msgs_per_subject=1)
        for config in (events, states):
            try:
                await stream.stream_info(str(config.name))
            except NotFoundError:
                try:
                    await stream.add_stream(config)
                except APIError as error:  # somebody else has made it meanwhile
                    log.debug("stream '%s': %s", config.name, error)
        return client

    def _keys_kept(self) -> float:
        return KEYS_KEPT if self._retention is None else min(KEYS_KEPT, self._retention)

    async def _last(self, stream: str, subject: str) -> Message | None:
        try:
            found = await self.stream().get_last_msg(stream, subject)
        except NotFoundError:
            return None
        return Message(int(found.seq or 0), 0, subject, found.data or b"")

    async def _send(self) -> None:
        """In order; what is not acknowledged is sent again, with what follows it."""
        while True:
            if not self._outgoing:
                self._more.clear()
                if not self._outgoing:
                    await self._more.wait()
                continue
            batch = [self._outgoing[n] for n in range(min(TOGETHER, len(self._outgoing)))]
            results = await asyncio.gather(*(self._sent(*each) for each in batch), return_exceptions=True)
            done = 0
            for each, result in zip(batch, results, strict=True):
                if isinstance(result, BaseException) and not _hopeless(result):
                    break
                if isinstance(result, BaseException):
                    log.warning("'%s' is not taken: %s", each[0], result)
                done += 1
            for _ in range(done):
                self._outgoing.popleft()
            if done < len(batch):
                await asyncio.sleep(PAUSE)

    async def _sent(self, subject: str, data: bytes, key: str) -> None:
        headers = {MESSAGE_ID: key} if key else None
        await self.stream().publish(subject, data, timeout=ANSWER, headers=headers)


async def _echo(message: Msg) -> None:
    with suppress(*FAILURES, NatsError):
        await message.respond(b"")


def _hopeless(error: BaseException) -> bool:
    """What the broker refuses now it will refuse again."""
    from nats.errors import MaxPayloadError

    return isinstance(error, MaxPayloadError) or (isinstance(error, APIError) and 400 <= (error.code or 0) < 500)


class NatsReader:
    """A consumer that forgets nothing because it remembers nothing: it is made anew after the last message that came. So it can
    also be given up while what has come is more than is wanted. `caught_up`: all that there was has come."""

    def __init__(self, broker: NatsBroker, subjects: list[str], after: int) -> None:
        self.broker = broker
        self.subjects = subjects
        self.position = after
        self._came: deque[Message] = deque()
        self._size = 0  # bytes that have come, and that were taken
        self._taken = 0
        self.caught_up = False
        self._closed = False
        self._expected = 1
        self._heard = 0.0
        self._subscription: Any = None
        self._consumer = self._inbox = ""
        self._task: asyncio.Task[None] | None = None

    def take(self) -> list[Message]:
        found = []
        while self._came:
            found.append(self._came.popleft())
        self._taken += sum(len(message.data) for message in found)
        return found

    @property
    def waiting(self) -> int:
        """Bytes that have come and were not taken."""
        return self._size - self._taken

    @property
    def resting(self) -> bool:
        """Has it given up its consumer?"""
        return not self._consumer and self.waiting > AHEAD

    def close(self) -> None:
        self._closed = True
        self.broker._readers.discard(self)
        self.broker._loop.call_soon_threadsafe(self._end)

    def begin(self) -> None:
        self._task = asyncio.ensure_future(self._watch())

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        try:
            while not self._closed:
                if self.waiting > AHEAD:
                    await self._hang_up()
                    self._heard = 0.0
                elif time.monotonic() - self._heard > SILENCE:
                    await self._ask()
                await asyncio.sleep(PAUSE)
        finally:
            if not self.broker._client.is_closed:
                await self._hang_up()

    async def _ask(self) -> None:
        try:
            await self._hang_up()
            inbox, self._expected = self.broker._client.new_inbox(), 1

            async def receive(message: Msg) -> None:
                if self._inbox == inbox:  # what an earlier consumer sent may still come
                    self._receive(message)

            self._inbox = inbox
            self._subscription = await self.broker._client.subscribe(inbox, cb=receive, pending_bytes_limit=-1)
            config = ConsumerConfig(
                deliver_subject=inbox,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self.position + 1,
                ack_policy=AckPolicy.NONE,
                filter_subjects=self.subjects,
                inactive_threshold=30,
                mem_storage=True,
            )
            made = await self.broker.stream().add_consumer(self.broker.network, config)
            self._consumer = made.name
            self.caught_up = made.num_pending == 0
        except (*FAILURES, APIError) as error:
            log.debug("reading %s: %s", self.subjects, error)
            return
        self._heard = time.monotonic()

    async def _hang_up(self) -> None:
        subscription, self._subscription = self._subscription, None
        consumer, self._consumer = self._consumer, ""
        with suppress(*FAILURES, APIError):
            if subscription is not None:
                await subscription.unsubscribe()
            if consumer:
                await asyncio.wait_for(self.broker.stream().delete_consumer(self.broker.network, consumer), 0.5)

    def _receive(self, message: Msg) -> None:
        parts = message.reply.split(".")
        if len(parts) < 9 or self._closed or self.waiting > AHEAD:
            return
        at = 4 if len(parts) == 9 else 6  # newer servers have two parts more before the stream
        number, delivered, nanoseconds = int(parts[at + 1]), int(parts[at + 2]), int(parts[at + 3])
        if delivered != self._expected:
            self._heard = 0.0  # one is missing: ask again from where it was
            return
        self._expected += 1
        self._heard = time.monotonic()
        if number > self.position:
            self.position = number
            self._size += len(message.data)
            self._came.append(Message(number, nanoseconds // 1000, message.subject, message.data))
            self.broker.arrived.set()
        self.caught_up = parts[at + 4] == "0"  # last: who sees it set finds all that came
