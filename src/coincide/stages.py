"""Stages that need no estimate: best effort, guaranteed, and the total order (ordering.py has the rest).

A stage stands between arrivals and whatever consumes events. It is told of arrivals in their order, and tells the
consumer what to consume at which clock. All times are microseconds.

What is stable need not be handed on at once: a stage gathers *runs* of events, with the steps of the clock at which they became
stable, and hands them on when it is asked to settle, or when the fate of a record depends on what has fired since."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from coincide.model.batch import EventBatch
from coincide.model.bounds import Began, Count, Word
from coincide.model.event import HEARTBEAT, Event, Place, order_of
from coincide.model.stamp import OrderKey

NEVER = -(2**63)

Moment = tuple[int, int]
"""A clock, and how many records had arrived by then (the end of input counts as one)."""
Moments = Callable[[int], Moment]
"""When an item of this time is consumed."""


class Consumer(Protocol):
    """What stands behind a stage: a graph of detectors."""

    @property
    def timed(self) -> bool:
        """Can it set timers?"""

    def due(self) -> int | None:
        """When its next timer is due."""

    def finite(self) -> bool:
        """Is any pending timer not a recurring one?"""

    def cross(self, last: float, moment: Moment) -> None:
        """Timers are to fire one after another until `last`. Raises RunError if that would never end."""

    def consume(self, batch: EventBatch, moments: Moments) -> None:
        """Events in total order, with the timers due before the last of them; or one event as it arrives."""

    def fire(self, due: int, moment: Moment) -> None:
        """Let the timers due at `due` (and none later) fire."""


class StageState(msgspec.Struct, array_like=True):
    """All that a stage remembers, as it is written. `last` is a place in the total order, of whatever length."""

    clock: Began = NEVER
    refused: Count = 0
    marks: dict[str, Began] = msgspec.field(default_factory=dict)
    heard: list[str] = msgspec.field(default_factory=list)
    arrived: Count = 0
    last: tuple[Any, ...] = ()
    buffer: list[tuple[Count, Event]] = msgspec.field(default_factory=list)
    delays: dict[str, list[int]] = msgspec.field(default_factory=dict)
    counted: Word = NEVER
    sufficient: Began = NEVER
    declared: list[str] | None = None  # earlier releases did not write it


class Stage(Protocol):
    """An input stage. What waits is in its `buffer`, the first at the front. `late` are the events, since it was made or
    restored, that were never consumed because they came too late; `refused` counts them from the beginning."""

    buffer: list[tuple[Place, int, Event]]
    late: list[Event]
    refused: int
    clock: int

    def arrive(self, record: Event) -> None: ...

    def settle(self) -> None:
        """Have everything consumed that is stable by now."""

    def pass_time(self, clock: int) -> None:
        """The clock has come to this instant without an arrival: have everything consumed that has waited for that."""

    def wakes_at(self) -> int | None:
        """The clock at which something that waits now will have waited long enough, if no more arrives; None: never."""

    def finish(self, until: float | None = None) -> None: ...

    def state(self) -> StageState: ...

    def restore(self, state: StageState) -> None: ...

    def has_left(self, state: StageState, due: int | None) -> bool:
        """Now that it is restored: does something wait, an event or the timer that is due next, that was stable when the state
        was written? A run leaves nothing so, whatever came."""


def arrival_of(record: Event) -> int:
    return record.hi if record.arrival is None else record.arrival


class BestEffort:
    """Everything is consumed on arrival, and timers go by the arrival clock (decision D-20): nothing waits."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.clock = NEVER
        self.number = 0
        self.buffer: list[tuple[Place, int, Event]] = []
        self.late: list[Event] = []
        self.refused = 0

    def state(self) -> StageState:
        return StageState(self.clock)

    def restore(self, state: StageState) -> None:
        self.clock = state.clock

    def has_left(self, state: StageState, due: int | None) -> bool:
        return due is not None and due < self.clock

    def arrive(self, record: Event) -> None:
        arrival = max(self.clock, arrival_of(record))
        if self.consumer.timed:
            self._fire(arrival - 1)
        self.clock = arrival
        self.number += 1
        if record.type != HEARTBEAT:
            self.consumer.consume(EventBatch([record]), self._now)
            if self.consumer.timed:  # an event that comes late sets timers in the past
                self._fire(arrival - 1)

    def settle(self) -> None:
        """Nothing waits."""

    def pass_time(self, clock: int) -> None:
        if self.consumer.timed:
            self._fire(clock - 1)
        self.clock = max(self.clock, clock)

    def wakes_at(self) -> int | None:
        due = self.consumer.due() if self.consumer.timed else None
        return None if due is None else due + 1

    def finish(self, until: float | None = None) -> None:
        self.number += 1
        self._fire(max(self.clock, until if until is not None else NEVER))

    def _now(self, time: int) -> Moment:
        return self.clock, self.number

    def _fire(self, last: float) -> None:
        self.consumer.cross(last, (self.clock, self.number))
        while (due := self.consumer.due()) is not None and due <= last and (last != inf or self.consumer.finite()):
            self.clock = max(self.clock, due)
            self.consumer.fire(due, (self.clock, self.number))


@dataclass
class Guaranteed:
    """An item (an event, or a timer) is consumed once every known source has passed its time, so in total order.

    `declared` are the sources that a rule file names; without them, those heard so far are the known ones."""

    consumer: Consumer
    declared: tuple[str, ...] = ()
    clock: int = NEVER
    number: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)
    buffer: list[tuple[Place, int, Event]] = field(default_factory=list)
    arrived: int = 0
    last: tuple[Any, ...] = ()  # place in the total order of the last item consumed
    late: list[Event] = field(default_factory=list)
    refused: int = 0
    run: list[Event] = field(default_factory=list)  # stable and not handed on yet, in total order
    steps: list[tuple[float, int, int]] = field(default_factory=list)  # what is below became stable at that moment
    _passed: float = NEVER
    _waited_for: tuple[str, ...] | None = None

    def state(self) -> StageState:
        self.settle()
        buffer = [(number, event) for _, number, event in self.buffer]
        state = StageState(self.clock, self.refused, self.marks, sorted(self.heard), self.arrived, self.last, buffer)
        return msgspec.structs.replace(state, declared=list(self.declared))

    def has_left(self, state: StageState, due: int | None) -> bool:
        """Where other sources are waited for than before, more may be stable now."""
        first = min([key[0] for key, _, _ in self.buffer[:1]] + ([] if due is None else [due]), default=None)
        return first is not None and state.declared == list(self.declared) and self._is_passed(first)

    def _is_passed(self, time: int) -> bool:
        return all(self.marks.get(source, NEVER) > time for source in self.known)

    def restore(self, state: StageState) -> None:
        self.clock, self.refused, self.marks, self.heard = state.clock, state.refused, dict(state.marks), set(state.heard)
        self.arrived, self.last, self._waited_for = state.arrived, state.last, None
        self.buffer = [(order_of(event), number, event) for number, event in state.buffer]  # a heap was written, one is read

    def arrive(self, record: Event) -> None:
        self.number += 1
        self.clock = max(self.clock, arrival_of(record))
        source, time = record.source or "", record.hi
        if record.type != HEARTBEAT or source:
            self.heard.add(source)
        mark = self.marks.get(source, NEVER)
        if record.type != HEARTBEAT:
            order = order_of(record)
            time = order[0]
            self._receive(record, order, mark)
        self.marks[source] = max(mark, time)
        self._release(mark)

    def advance(self, marks: Mapping[str, int], heard: Iterable[str], clock: int, number: int) -> None:
        """So far it has come by arrivals that somebody else has dealt with (engines/arrivals.py)."""
        self.marks.update(marks)
        self.heard.update(heard)
        self.clock, self.number, self._waited_for = clock, number, None

    def _receive(self, record: Event, order: Place, mark: int) -> None:
        """An event that breaks its source's order is late even if it could still be put in place (decision D-25)."""
        if order[0] < mark or self._gone_by(order):
            self.late.append(record)
            self.refused += 1
        else:
            self._keep(record, order)

    def _gone_by(self, order: Place) -> bool:
        """Has an item been consumed that comes after it? Among what waits to be handed on, only the consumer knows its timers."""
        if self.steps and order[0] < self.steps[-1][0]:
            self.settle()
        return order < self.last

    def _keep(self, record: Event, order: Place) -> None:
        heapq.heappush(self.buffer, (order, self.arrived, record))
        self.arrived += 1

    @property
    def known(self) -> Collection[str]:
        return self.declared or self.heard

    def _release(self, mark: int) -> None:
        """All that every known source has passed is stable, timers too. A source whose mark was above that has not changed it."""
        if mark <= self._passed or self._waited_for is not self.declared:
            self._passed = min([self.marks.get(source, NEVER) for source in self.known], default=inf)
            self._waited_for = self.declared
        self._release_below(self._passed)

    def _release_below(self, low: float) -> None:
        if not self.steps or low > self.steps[-1][0]:
            self.steps.append((low, self.clock, self.number))
        while self.buffer and self.buffer[0][0][0] < low:
            self.run.append(heapq.heappop(self.buffer)[2])

    def settle(self) -> None:
        steps, self.steps = self.steps, []
        if steps:
            moments = stepwise(steps)
            self._hand_on(moments)
            self.fire_below(steps[-1][0], moments)

    def pass_time(self, clock: int) -> None:
        """Only what sources say makes anything stable."""
        self.clock = max(self.clock, clock)

    def wakes_at(self) -> int | None:
        return None

    def _hand_on(self, moments: Moments) -> None:
        run, self.run = self.run, []
        if run:
            self.last = order_of(run[-1])
            self.consumer.consume(EventBatch(run), moments)

    def fire_below(self, time: float, moments: Moments) -> None:
        self.consumer.cross(time, (self.clock, self.number))
        self._fire(lambda due: due < time, moments)

    def _fire(self, wanted: Callable[[int], bool], moments: Moments) -> None:
        """Timers after the last event, one by one: the last that fires makes events late."""
        while self.consumer.timed and (due := self.consumer.due()) is not None and wanted(due):
            self.last = (due, inf)  # after every event with hi up to this
            self.consumer.fire(due, moments(due))

    def finish(self, until: float | None = None) -> None:
        """What is not stable stays unconsumed; `until` declares all sources silent through that time."""
        self.settle()
        self.number += 1
        if until is None:
            return
        self.buffer.sort()
        count = bisect_right(self.buffer, until, key=lambda waiting: waiting[0][0])
        self.run, self.buffer = [event for _, _, event in self.buffer[:count]], self.buffer[count:]
        if self.run:
            before, self.clock = self.clock, max(self.clock, order_of(self.run[-1])[0])
            self._hand_on(lambda time: (max(before, time), self.number))
        self.consumer.cross(until, (self.clock, self.number))
        self._fire(lambda due: due <= until and (until != inf or self.consumer.finite()), self._passing)

    def _passing(self, time: int) -> Moment:
        self.clock = max(self.clock, time)
        return self.clock, self.number


def stepwise(steps: list[tuple[float, int, int]]) -> Moments:
    """An item is consumed at the first step that passes its time."""

    def moment(time: int) -> Moment:
        _, clock, number = steps[min(bisect_right(steps, time, key=itemgetter(0)), len(steps) - 1)]
        return clock, number

    return moment


@dataclass
class InOrder(Guaranteed):
    """No policy: the whole input is waited for and consumed in total order, so nothing is late."""

    def _is_passed(self, time: int) -> bool:
        return False

    def arrive(self, record: Event) -> None:
        self.number += 1
        self.clock = max(self.clock, arrival_of(record))
        self.marks[""] = max(self.marks.get("", record.hi), record.hi)
        if record.type != HEARTBEAT:
            self.buffer.append((record.origin[0], self.arrived, record))  # sorted at the end
            self.arrived += 1

    def finish(self, until: float | None = None) -> None:
        super().finish(max(self.marks.get("", NEVER), NEVER if until is None else until))


@dataclass
class Delayed(InOrder):
    """The total order of a stream without end: events may come so much later than later ones, and no more."""

    delay: int = 0

    def arrive(self, record: Event) -> None:
        self.number += 1
        self.clock = max(self.clock, arrival_of(record))
        before = self.marks.get("", record.hi)
        if record.type != HEARTBEAT:
            self._receive(record, order_of(record), before - self.delay)
        self.marks[""] = max(before, record.hi)
        self._release_below(self.marks[""] - self.delay)

    def pass_time(self, clock: int) -> None:
        self.clock = max(self.clock, clock)
        self._release_below(clock - self.delay)
        self.settle()

    def wakes_at(self) -> int | None:
        due = self.consumer.due() if self.consumer.timed else None
        waiting = [instant for instant in (due, self.buffer[0][0][0] if self.buffer else None) if instant is not None]
        return min(waiting) + self.delay + 1 if waiting else None


UNCOUNTED = 2**63 - 1


@dataclass
class Live(Delayed):
    """The total order of events while they come. Whether an event is late depends on the events before it, never on how the input
    is cut or on when anybody looks.

    An event waits until its instant has passed, as another of the same instant may stand before it. As long as ids count up
    (positions in the input do) none can, and it is consumed at once.

    The clock is that of the latest event; `pass_time` says that it has gone on since. That alone closes no instant: only what was
    consumed meanwhile, an event or a timer, makes earlier events late."""

    counted: int = NEVER  # the last id, while ids count up
    sufficient: int = NEVER  # the delay with which nothing had been late

    def state(self) -> StageState:
        return msgspec.structs.replace(super().state(), counted=self.counted, sufficient=self.sufficient)

    def restore(self, state: StageState) -> None:
        """Who did not count cannot tell whether the ids of what waits count up."""
        super().restore(state)
        uncounted = state.counted == NEVER and bool(state.buffer)
        self.counted, self.sufficient = UNCOUNTED if uncounted else state.counted, state.sufficient

    @property
    def mark(self) -> int | None:
        """The time of the latest event."""
        return self.marks.get("")

    def arrive(self, record: Event) -> None:
        self.number += 1
        before = self.marks.get("", record.hi)
        self.marks[""] = mark = max(before, record.hi)
        if record.type != HEARTBEAT:
            self._count(record.origin[0])
            self._receive(record, order_of(record), before - self.delay)
        self.clock = max(self.clock, mark)
        low = mark - self.delay
        self._release_below(low)
        while self.buffer and self.counted != UNCOUNTED and self.buffer[0][0][0] == low:
            self.run.append(heapq.heappop(self.buffer)[2])

    def flush(self) -> None:
        """The input is over: nothing has to be waited for."""
        self._release_below(UNCOUNTED)
        self.steps.clear()
        self._hand_on(self._passing)

    def _count(self, key: OrderKey) -> None:
        whole, number = key[2] == 0, key[3]
        self.counted = number if whole and self.counted < number < UNCOUNTED else UNCOUNTED

    def _receive(self, record: Event, order: Place, mark: int) -> None:
        refused = self.refused
        super()._receive(record, order, mark)
        if self.refused > refused:
            self.sufficient = max(self.sufficient, self.clock - record.hi)

    def _gone_by(self, order: Place) -> bool:
        gone = bool(self.run) and order < order_of(self.run[-1])
        return gone or super()._gone_by(order)
