"""The loop of a live run: events come, time passes, detections leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from coincide.engines.live import Live
from coincide.model.batch import EventBatch
from coincide.streams.arrivals import Arrival, Arrivals
from coincide.streams.base import Position

LONGEST = 1.0
"""Seconds after which the loop looks around even if nothing comes: for signals, and checkpoints that are due."""

CLOCKS = ("event", "wall")

SECOND = 1_000_000


class Clock:
    """The time of a live run in microseconds: that of the latest event and, by the wall, what has passed since it came."""

    def __init__(self, by_the_wall: bool, now: Callable[[], float]) -> None:
        self.by_the_wall = by_the_wall
        self._now = now
        self._mark: int | None = None
        self._came = 0.0

    def note(self, mark: int | None) -> None:
        if mark is not None and (self._mark is None or mark > self._mark):
            self._mark, self._came = mark, self._now()

    def time(self) -> int | None:
        if self._mark is None or not self.by_the_wall:
            return self._mark
        return self._mark + round((self._now() - self._came) * SECOND)


def _nothing(*_: object) -> None:
    """Nobody looks."""


class LiveLoop:
    """Runs until the arrivals end. `positions` tells, for each source, how far it has been dealt with: its position, and the
    number of records."""

    def __init__(self, live: Live, clock: str, now: Callable[[], float]) -> None:
        self.live = live
        self.clock = Clock(clock == "wall", now)
        self.clock.note(live.mark)
        self.positions: dict[int, tuple[Position, int]] = {}

    def detections(
        self, arrivals: Arrivals, watch: Callable[[Arrival], object] = _nothing, after_turn: Callable[[], object] = _nothing
    ) -> Iterator[EventBatch]:
        """What is detected while events come. The end of the input is the caller's affair. `watch` is shown what is read; between
        two turns everything that was read has been dealt with, and what it made has been given out."""
        while (arrived := arrivals.next(self.patience())) is not None:
            for arrival in arrived:
                watch(arrival)
            yield from self.turn(arrived)
            after_turn()

    def turn(self, arrived: Sequence[Arrival]) -> Iterator[EventBatch]:
        """What has come, and the time that has passed."""
        for source, (batch, position, records), _ in arrived:
            yield from self.live.arrive(batch)
            self.positions[source] = position, records
        self.clock.note(self.live.mark)
        if self.clock.by_the_wall and (time := self.clock.time()) is not None:
            yield from self.live.pass_time(time)

    def patience(self) -> float:
        """Seconds until there is something to do even if nothing comes."""
        if not self.clock.by_the_wall or (wakes := self.live.wakes_at()) is None or (time := self.clock.time()) is None:
            return LONGEST
        return min(LONGEST, max(0.0, (wakes - time) / SECOND))
