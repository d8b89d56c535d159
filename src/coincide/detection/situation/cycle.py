"""Situations that feed one another: what they detect is their own input again, before anything later is looked at."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from coincide.detection.base import Clock
from coincide.detection.eventwise import Cause, Timer, Timers
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Place


def step_cyclic(
    batch: EventBatch,
    clock: Clock,
    timers: Timers,
    on_event: Callable[[Event, Cause], None],
    on_timer: Callable[[Timer, Cause], None],
    fed_back: frozenset[str],
) -> EventBatch:
    """As `step_eventwise`, but detections of the types `fed_back` are processed at their places, too."""
    rows = deque(batch.events)
    own: list[tuple[Place, Event]] = []
    made: list[Event] = []

    def work(cause: Cause, act: Callable[[Cause], None]) -> None:
        before = len(made)
        act(cause)
        for event in made[before:]:
            if event.type in fed_back:
                heapq.heappush(own, (event.place, event))

    while True:
        event_place = _first(rows, own)
        timer = timers.first()
        if timer is not None and (timer.place < event_place if event_place is not None else timer.due < clock.bound):
            timers.pop()
            work(Cause(timer.place, timers, made), lambda cause, timer=timer: on_timer(timer, cause))  # type: ignore[misc]
        elif event_place is None:
            break
        else:
            event = heapq.heappop(own)[1] if own and own[0][0] == event_place else rows.popleft()
            work(Cause(event_place, timers, made), lambda cause, event=event: on_event(event, cause))  # type: ignore[misc]
    made.sort(key=lambda d: d.place)
    return EventBatch(made)


def _first(rows: deque[Event], own: list[tuple[Place, Event]]) -> Place | None:
    if not own:
        return rows[0].place if rows else None
    return min(own[0][0], rows[0].place) if rows else own[0][0]
