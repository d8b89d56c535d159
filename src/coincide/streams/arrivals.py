"""What several sources give, in the order in which it comes. Each is read by a thread, and waits where the run is slower."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import NamedTuple, Protocol

from coincide.streams.base import Delivery, Position, Source

AHEAD = 8
"""Deliveries that may wait to be dealt with."""

MOST = 65_536
"""Events that are dealt with in one step."""


class Arrival(NamedTuple):
    """A delivery, the number of its source, and when it came, by the wall clock of the arrivals."""

    source: int
    delivery: Delivery
    came: float = 0.0


class Arrivals(Protocol):
    """What the loop of a live run reads from."""

    def next(self, timeout: float | None) -> list[Arrival] | None:
        """What has come, after at most so many seconds; None when nothing more will."""

    def more(self) -> bool:
        """Is there something that was not given out yet, though nobody would have to wait for it?"""

    def now(self) -> float:
        """The wall clock, in seconds from any beginning."""

    def stop(self) -> None:
        """`next` is to give None soon. May be called at any time, by a handler of signals too."""


class Threads:
    """Arrivals of sources that are read now. After the first, what comes within the `latency` (seconds) is taken with it: many
    events at a time cost less."""

    def __init__(self, sources: Sequence[Source], positions: Sequence[Position], latency: float = 0.0) -> None:
        self._queue: SimpleQueue[Arrival | BaseException | None] = SimpleQueue()  # one that handlers of signals may use
        self._room = Semaphore(AHEAD * len(sources))
        self._latency = latency
        self._open = len(sources)
        self._stopped = False
        self._sources = sources
        for source in sources:
            source.latency, source.behind = latency, self._is_behind
        for number, (source, position) in enumerate(zip(sources, positions, strict=True)):
            Thread(target=self._read, args=(number, source, position), name=source.url, daemon=True).start()

    def now(self) -> float:
        return time.monotonic()

    def more(self) -> bool:
        return self._is_behind() or any(source.more() for source in self._sources)

    def stop(self) -> None:
        self._stopped = True
        self._queue.put(None)
        for source in self._sources:
            source.close()

    def next(self, timeout: float | None) -> list[Arrival] | None:
        if not self._open or self._stopped:
            return None
        found: list[Arrival] = []
        try:
            self._take(found, timeout)
            gathered = bool(found) and self._sources[found[0].source].gathers
            end = self.now() + (0.0 if gathered else self._latency)
            while self._open and not self._stopped and sum(len(a.delivery.batch) for a in found) < MOST:
                self._take(found, max(0.0, end - self.now()))
        except Empty:
            pass
        return found if found or self._open else None

    def _is_behind(self) -> bool:
        return not self._queue.empty()

    def _take(self, found: list[Arrival], timeout: float | None) -> None:
        item = self._queue.get(timeout != 0.0, timeout)
        if item is None:
            self._open -= 1
        elif isinstance(item, BaseException):
            raise item
        else:
            self._room.release()
            found.append(item)

    def _read(self, number: int, source: Source, position: Position) -> None:
        try:
            for delivery in source.deliveries(position):
                self._room.acquire()
                self._queue.put(Arrival(number, delivery, self.now()))
                if source.closed.is_set():
                    break
            self._queue.put(None)
        except BaseException as error:  # the run is told, in its own thread
            self._queue.put(error)
