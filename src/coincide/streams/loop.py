"""The loop of a live run: events come, time passes, detections leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from coincide.engines.live import Live
from coincide.model.batch import EventBatch
from coincide.streams.arrivals import Arrival, Arrivals
from coincide.streams.base import Position
from coincide.streams.future import FarFuture

LONGEST = 1.0
"""Seconds after which the loop looks around even if nothing comes: for signals, and checkpoints that are due."""

SOON = 0.005
"""Seconds after which it looks again where there is more that comes at once."""

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

    def __init__(self, live: Live, clock: str, now: Callable[[], float], future: FarFuture | None = None) -> None:
        self.live = live
        self._future = future
        self.clock = Clock(clock == "wall", now)
        self.clock.note(live.mark)
        self._held = False  # has time not passed, because there was more to come?
        self.positions: dict[int, tuple[Position, int]] = {}

    def detections(
        self, arrivals: Arrivals, watch: Callable[[Arrival], object] = _nothing, after_turn: Callable[[], object] = _nothing
    ) -> Iterator[EventBatch]:
        """What is detected while events come. The end of the input is the caller's affair. `watch` is shown what is read; between
        two turns everything that was read has been dealt with, and what it made has been given out."""
        while (arrived := arrivals.next(self.patience())) is not None:
            for arrival in arrived:
                watch(arrival)
            yield from self.turn(arrived, arrivals.more)
            after_turn()

    def turn(self, arrived: Sequence[Arrival], more: Callable[[], bool] = lambda: False) -> Iterator[EventBatch]:
        """What has come, and the time that has passed. Where there is more to come at once, time does not pass by the wall: a run
        that is behind must not take what it has not read for absent."""
        for source, (batch, position, records), _ in arrived:
            yield from self.live.arrive(batch if self._future is None else self._future.believed(source, batch, self.live.mark))
            self.positions[source] = position, records
        self.clock.note(self.live.mark)
        self._held = self.clock.by_the_wall and more()
        if self.clock.by_the_wall and not self._held and (time := self.clock.time()) is not None:
            yield from self.live.pass_time(time)

    def patience(self) -> float:
        """Seconds until there is something to do even if nothing comes."""
        if self._held:
            return SOON
        if not self.clock.by_the_wall or (wakes := self.live.wakes_at()) is None or (time := self.clock.time()) is None:
            return LONGEST
        return min(LONGEST, max(0.0, (wakes - time) / SECOND))
