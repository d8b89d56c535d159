"""What tests of live runs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.streams.arrivals import Arrival
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source


class Script:
    """Arrivals with a clock of their own: events, or seconds in which nothing comes."""

    def __init__(self, *steps: Event | float) -> None:
        self._steps = list(steps)
        self._time = 0.0
        self.waits: list[float | None] = []

    def now(self) -> float:
        return self._time

    def more(self) -> bool:
        return False

    def stop(self) -> None:
        self._steps.clear()

    def next(self, timeout: float | None) -> list[Arrival] | None:
        self.waits.append(timeout)
        if not self._steps:
            return None
        if isinstance(self._steps[0], Event):
            return [Arrival(0, Delivery(EventBatch([self._steps.pop(0)]), None, 0))]  # type: ignore[list-item]
        waited = min(self._steps[0], float("inf") if timeout is None else timeout)
        self._time += waited
        left = self._steps[0] - waited
        self._steps[:1] = [left] if left > 1e-9 else []
        return []


class Listed(Source):
    """Events that can be read again; a position is how many were read."""

    def __init__(self, events: Sequence[Event], end: int) -> None:
        super().__init__("listed", Reading())
        self._events, self._end = events, end

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        for number in range(position or 0, self._end):
            yield self.delivery(EventBatch([self._events[number]]), number + 1)


class Kept(Sink):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__("kept")
        self.lines: list[bytes] = []

    def write(self, made: Sequence[Made]) -> None:
        self.lines += [each.line for each in made]

    def close(self) -> None:
        """Nothing is open."""
