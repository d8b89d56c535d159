"""Event by event: the driver that interpreters with timers share.

An interpreter says what one event does (`on_event`) and what one of its timers does (`on_timer`); this says in which order
they come, and gives every detection and timer its place."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from coincide.detection.base import Clock, Pending
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event, Place, Value, caused, detection, timer_place
from coincide.model.stamp import OrderKey


@dataclass(order=True)
class Timer:
    """A timer that was set: it fires at its place, unless it is cancelled. `payload` is the interpreter's own."""

    place: Place
    payload: Any = field(compare=False)
    recurring: bool = field(default=False, compare=False)
    cancelled: bool = field(default=False, compare=False)

    @property
    def due(self) -> int:
        due: int = self.place[0]
        return due


@dataclass
class Timers:
    """Timers by place. Part of an interpreter's state; cancelled ones are passed over when their turn comes."""

    heap: list[Timer] = field(default_factory=list)

    def first(self) -> Timer | None:
        while self.heap and self.heap[0].cancelled:
            heapq.heappop(self.heap)
        return self.heap[0] if self.heap else None

    def add(self, timer: Timer) -> Timer:
        heapq.heappush(self.heap, timer)
        return timer

    def pop(self) -> Timer:
        return heapq.heappop(self.heap)

    def live(self) -> list[Timer]:
        """Those not cancelled, by place: what a snapshot keeps."""
        return sorted(timer for timer in self.heap if not timer.cancelled)

    def pending(self) -> Pending | None:
        first = self.first()
        if first is None:
            return None
        return Pending(first.due, any(not (t.recurring or t.cancelled) for t in self.heap))


class Cause:
    """The event or timer that is being processed: everything that it brings about gets its place here."""

    def __init__(self, place: Place, timers: Timers, made: list[Event]) -> None:
        self.place = place
        self.timers = timers
        self.made = made
        self._count: dict[int, int] = {}

    @property
    def now(self) -> int:
        """The clock: hi of the event, or when the timer is due."""
        now: int = self.place[0]
        return now

    def emit(
        self,
        definition: int,
        type: str,
        stamp: tuple[int, int],
        attributes: dict[str, Value],
        origin: tuple[OrderKey, ...],
        source: str | None = None,
        hidden: bool = False,
    ) -> Event:
        """A detection of the definition with this number (`Detector.order`); null attributes are left out."""
        place = self.next_place(definition)
        values: dict[str, Value] = {name: value for name, value in attributes.items() if value is not None}
        event = detection(type, stamp, values, origin, place, source, hidden=hidden)
        self.made.append(event)
        return event

    def next_place(self, definition: int) -> Place:
        """Where the definition's next detection stands."""
        return caused(self.place, definition, self._next(definition))

    def set_timer(self, definition: int, due: int, payload: Any, recurring: bool = False) -> Timer:
        place = timer_place(due, self.place, definition, self._next(definition), recurring)
        return self.timers.add(Timer(place, payload, recurring))

    def _next(self, definition: int) -> int:
        count = self._count.get(definition, 0)
        self._count[definition] = count + 1
        return count


def step_eventwise(
    batch: EventBatch,
    clock: Clock,
    timers: Timers,
    on_event: Callable[[Event, Cause], None],
    on_timer: Callable[[Timer, Cause], None],
) -> EventBatch:
    """Events and timers in order of their places; then the timers that are due before the clock's bound."""
    made: list[Event] = []

    def fire(timer: Timer) -> None:
        timers.pop()
        on_timer(timer, Cause(_firing(timer.place, clock), timers, made))

    for event in batch.events:
        place = event.place
        if clock.arrival is None:
            while (timer := timers.first()) is not None and timer.place <= place:
                fire(timer)
        on_event(event, Cause(place, timers, made))
    while (timer := timers.first()) is not None and timer.due < clock.bound:
        fire(timer)
    if not made:
        return EMPTY
    made.sort(key=_place)
    return EventBatch(made)


_place = attrgetter("place")


def _firing(place: Place, clock: Clock) -> Place:
    """Where a timer fires: at its place, or, where events are consumed as they arrive, not before the clock."""
    return place if clock.arrival is None else (max(place[0], clock.arrival), *place[1:])
