"""Events of a live run that are too far in the future: they are rejected, so that they do not move the clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from coincide.adapters.records import too_far_ahead
from coincide.engines.ahead import Guard
from coincide.expr.quantities import duration_text
from coincide.model.batch import EventBatch
from coincide.model.event import Event

Reject = Callable[[int, Event, str], object]
"""Told the number of the source, the event and the reason."""


def wall_clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


class FarFuture:
    def __init__(self, guard: Guard, reject: Reject, wall: Callable[[], int] = wall_clock) -> None:
        self._guard, self._reject, self._wall = guard, reject, wall
        self._reason = too_far_ahead(duration_text(guard.ahead))

    def believed(self, source: int, batch: EventBatch, mark: int | None) -> EventBatch:
        """What is not rejected. `mark` is how far the run has come."""
        if not len(batch):
            return batch
        limit = self._guard.limit_by_wall(self._wall(), _first(batch) if mark is None else mark)
        if _last(batch) <= limit:
            return batch
        for event in batch.events:
            if event.hi > limit:
                self._reject(source, event, self._reason)
        return EventBatch([event for event in batch.events if event.hi <= limit])


def _first(batch: EventBatch) -> int:
    return int(batch.table.hi[0]) if batch.has_table else batch.events[0].hi


def _last(batch: EventBatch) -> int:
    return int(batch.table.hi.max()) if batch.has_table else max(event.hi for event in batch.events)
