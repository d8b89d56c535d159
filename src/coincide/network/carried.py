"""How a node carries a detector: in its own process, or, if it is a cluster, elsewhere (sparkcarrier.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from coincide.network.broker import Broker, Message, Reader, Subjects
from coincide.network.directory import Detector
from coincide.network.hosted import Hosted, Kept, Made
from coincide.network.messages import MARK


@dataclass
class Figures:
    """What is measured of a detector: events that it has read by type, seconds of work, how late (ms) its last detection was, the
    bytes of its state when it was kept last."""

    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    delay: float | None = None
    size: int = 0


class Carrier(Protocol):
    """A detector that runs on behalf of a node."""

    entry: Detector
    figures: Figures
    is_read: bool
    """Does another detector wait for its heartbeats?"""

    def run(self) -> bool:
        """Does what there is to do, without waiting. Was there anything?"""

    def hand_over(self, placed: int) -> bool:
        """Keeps its state for whoever goes on with it; False: not yet. Raises OSError."""

    def close(self) -> None: ...


class Announcer:
    """Publishes what a detector makes, each detection once, however often it is made."""

    def __init__(self, broker: Broker, subjects: Subjects, entry: Detector) -> None:
        """Raises OSError."""
        self.broker = broker
        self.subject, self.heartbeats = subjects.detector(entry.name), subjects.progress(entry.name)
        self.since = entry.since
        self._published = _count(broker.last(self.subject), entry.since)

    def detections(self, made: Iterable[Made]) -> None:
        for each in made:
            if each.number > self._published:
                self.broker.publish(self.subject, each.data, f"{self.subject}-{self.since}-{each.number}")

    def progress(self, data: bytes | None) -> None:
        if data is not None:
            self.broker.publish(self.heartbeats, data)


def _count(last: Message | None, since: int) -> int:
    """How many of its detections the stream has; those of an earlier one of that name do not count, and what is not a detection
    tells nothing: then all are published again, and dropped by their numbers."""
    if last is None or last.number <= since:
        return 0
    try:
        return int(msgspec.json.decode(last.data)[MARK][0])
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, IndexError):
        return 0


UNREAD = 1.0
"""Seconds between two heartbeats of a detector that nobody reads."""


class Embedded:
    """In the node's own process. Its state is kept `every` so many seconds, if it has read anything since; `apart` are two
    heartbeats, if there is nothing new between them."""

    def __init__(
        self, hosted: Hosted, broker: Broker, subjects: Subjects, every: float, apart: float, now: Callable[[], float]
    ) -> None:
        """Raises OSError."""
        self.hosted, self.entry, self.is_read = hosted, hosted.entry, True
        self.figures = Figures(hosted.counts)
        self._broker, self._every, self._apart, self._now = broker, every, apart, now
        self._spoke_at = now()
        self._announcer = Announcer(broker, subjects, hosted.entry)
        self._reader: Reader = broker.open(hosted.wanted(), hosted.position)
        self._kept_at, self._kept_position = now(), 0

    def run(self) -> bool:
        messages = self._reader.take()
        if messages:
            began = time.perf_counter()
            self.hosted.receive(messages)
            self.figures.seconds += time.perf_counter() - began
            self.figures.delay = self.hosted.delay if self.hosted.number else None
            self._announcer.detections(self.hosted.taken())
        if self._now() - self._spoke_at >= (self._apart if self.is_read else max(self._apart, UNREAD)):
            self._spoke_at = self._now()
            self._announcer.progress(self.hosted.progress())
        if self._now() - self._kept_at >= self._every and self.hosted.position != self._kept_position:
            self._keep()
        return bool(messages)

    def _keep(self) -> None:
        try:
            self.hand_over(self.entry.placed - 1)
        except OSError:
            return  # the broker is away: later
        self._kept_at, self._kept_position = self._now(), self.hosted.position

    def hand_over(self, placed: int) -> bool:
        data = self.hosted.snapshot(placed)
        self.figures.size = len(data)
        self._broker.store(self.entry.name, data)
        return True

    def close(self) -> None:
        self._reader.close()


Carry = Callable[[Detector, Mapping[str, str], Kept | None], Carrier]
"""Takes up a detector: its feeders with the groups of copies that they are of, and the state from which it goes on."""
