"""Live detection for asyncio: `async for detection in coincide.stream(rules, source)`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.records import BadRecord, event_of
from coincide.adapters.report import Intake
from coincide.adapters.write import KEY
from coincide.engines.choice import Duration, check_name, duration_microseconds
from coincide.engines.embedded import Engine
from coincide.engines.identity import Keys, digests_of
from coincide.engines.live import LiveEngine
from coincide.errors import InputError, warn
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, RuleSource, rulebook
from coincide.streams.arrivals import Arrival, Threads
from coincide.streams.base import Delivery, Reading
from coincide.streams.loop import CLOCKS, LiveLoop
from coincide.streams.registry import open_source

Record = Mapping[str, Any] | Event


async def stream(
    rules: Rulebook | RuleSource | Sequence[RuleSource],
    source: str | AsyncIterable[Record],
    *,
    delay: Duration = 0,
    clock: str | None = None,
    mapping: FieldMapping = DEFAULT,
    keys: bool = False,
) -> AsyncIterator[dict[str, Any]]:
    """Detections as they are made, of events as they come: from the URL of a source (`nats://…`, `kafka://…`, `tail:FILE`, `-`)
    or from anything that gives records to `async for`. They end when the source does; whoever leaves the loop closes the source.

    Events may come so much later than later ones as the `delay` (milliseconds, '5s', a timedelta) says. With the `clock` 'wall'
    time goes on when nothing comes, so that absence shows when it is due; it is the default of brokers, 'event' that of all
    others. A bad record is an InputError. With `keys` each detection has its key as `_key`."""
    book = rulebook(rules)
    given: _Arriving = _Url(source, mapping) if isinstance(source, str) else _Records(source, mapping)
    check_name("clock", clock or given.clock, CLOCKS)
    live = LiveEngine(Engine(book), duration_microseconds(delay))
    loop = LiveLoop(live, clock or given.clock, given.now)
    numbering = Keys(digests_of(book)) if keys else None
    try:
        while (arrived := await given.wait(loop.patience())) is not None:
            for batch in loop.turn(arrived, given.more):
                for made in _records(batch, numbering):
                    yield made
            live.latecomers()
        for batch in live.finish(None, closed=True):
            for made in _records(batch, numbering):
                yield made
    finally:
        await given.close()
        warn(live.late_warnings())


def _records(batch: EventBatch, keys: Keys | None) -> Iterator[dict[str, Any]]:
    records = map(record, batch.events)
    return records if keys is None else ({**r, KEY: key} for r, key in zip(records, keys.of(batch), strict=True))


class _Arriving(Protocol):
    clock: str

    def now(self) -> float: ...

    def more(self) -> bool: ...

    async def wait(self, timeout: float) -> list[Arrival] | None: ...

    async def close(self) -> None: ...


class _Url:
    """A source that threads read; what comes is waited for in another thread, too."""

    def __init__(self, url: str, mapping: FieldMapping) -> None:
        source = open_source(url, Reading(mapping, Intake(strict=True)))
        self.clock = source.clock
        self._threads = Threads([source], [None])

    def now(self) -> float:
        return self._threads.now()

    def more(self) -> bool:
        return self._threads.more()

    async def wait(self, timeout: float) -> list[Arrival] | None:
        return await asyncio.to_thread(self._threads.next, timeout)

    async def close(self) -> None:
        self._threads.stop()


class _Records:
    """Records that somebody else waits for. The next one is asked for once, however often time passes meanwhile."""

    clock = "event"

    def __init__(self, records: AsyncIterable[Record], mapping: FieldMapping) -> None:
        self._records = aiter(records)
        self._mapping = mapping
        self._count = 0
        self._asked: asyncio.Task[Record] | None = None

    def now(self) -> float:
        return time.monotonic()

    def more(self) -> bool:
        return False

    async def wait(self, timeout: float) -> list[Arrival] | None:
        if self._asked is None:
            self._asked = asyncio.ensure_future(self._next())
        done, _ = await asyncio.wait({self._asked}, timeout=timeout)
        if not done:
            return []
        asked, self._asked = self._asked, None
        try:
            return [Arrival(0, Delivery(EventBatch((self._event(asked.result()),)), None, self._count))]
        except StopAsyncIteration:
            return None

    async def _next(self) -> Record:
        return await anext(self._records)

    def _event(self, item: Record) -> Event:
        self._count += 1
        try:
            return item if isinstance(item, Event) else event_of(item, self._mapping, self._count)
        except BadRecord as bad:
            raise InputError(f"record {self._count}: {bad}") from bad

    async def close(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await self._asked
