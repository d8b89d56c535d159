"""Stability policies (Opera, section 4): which of the records that have arrived are consumed, in which order, and when.

A stage stands between arrivals and whatever consumes events. It is told of arrivals in their order, and tells the
consumer what to consume at which clock. All times are microseconds."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, Protocol

import msgspec

from coincide.model.event import HEARTBEAT, Event

OBSERVED = 100  # delays that are remembered of each source
NEVER = -(2**63)


class Consumer(Protocol):
    """What stands behind a stage: a graph of detectors."""

    def due(self) -> int | None:
        """When its next timer is due."""

    def finite(self) -> bool:
        """Is any pending timer not a recurring one?"""

    def consume(self, event: Event, clock: int) -> None: ...

    def fire(self, due: int, clock: int) -> None:
        """Let the timers due at `due` (and none later) fire."""


class StageState(msgspec.Struct, array_like=True):
    """All that a stage remembers, as it is written. `last` is a place in the total order, of whatever length."""

    clock: int = NEVER
    refused: int = 0
    marks: dict[str, int] = msgspec.field(default_factory=dict)
    heard: list[str] = msgspec.field(default_factory=list)
    arrived: int = 0
    last: tuple[Any, ...] = ()
    buffer: list[tuple[int, Event]] = msgspec.field(default_factory=list)
    delays: dict[str, list[int]] = msgspec.field(default_factory=dict)


class Stage(Protocol):
    """An input stage. `late` are the events, since it was made or restored, that were never consumed because they came too
    late; `refused` counts them from the beginning."""

    late: list[Event]
    refused: int

    def arrive(self, record: Event) -> None: ...

    def finish(self, until: float | None = None) -> None: ...

    def state(self) -> StageState: ...

    def restore(self, state: StageState) -> None: ...


def arrival_of(record: Event) -> int:
    return record.hi if record.arrival is None else record.arrival


class BestEffort:
    """Everything is consumed on arrival, and timers go by the arrival clock (decision D-20): nothing waits."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.clock = NEVER
        self.late: list[Event] = []
        self.refused = 0

    def state(self) -> StageState:
        return StageState(self.clock)

    def restore(self, state: StageState) -> None:
        self.clock = state.clock

    def arrive(self, record: Event) -> None:
        arrival = max(self.clock, arrival_of(record))
        self._fire(arrival - 1)
        self.clock = arrival
        if record.type != HEARTBEAT:
            self.consumer.consume(record, self.clock)

    def finish(self, until: float | None = None) -> None:
        self._fire(max(self.clock, until if until is not None else NEVER))

    def _fire(self, last: float) -> None:
        while (due := self.consumer.due()) is not None and due <= last and (last != inf or self.consumer.finite()):
            self.clock = max(self.clock, due)
            self.consumer.fire(due, self.clock)


@dataclass
class Guaranteed:
    """An item (an event, or a timer) is consumed once every known source has passed its time, so in total order.

    `declared` are the sources that a rule file names; without them, those heard so far are the known ones."""

    consumer: Consumer
    declared: tuple[str, ...] = ()
    clock: int = NEVER
    marks: dict[str, int] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)
    buffer: list[tuple[tuple[object, ...], int, Event]] = field(default_factory=list)
    arrived: int = 0
    last: tuple[object, ...] = ()  # place in the total order of the last item consumed
    late: list[Event] = field(default_factory=list)
    refused: int = 0

    def state(self) -> StageState:
        buffer = [(number, event) for _, number, event in self.buffer]
        return StageState(self.clock, self.refused, self.marks, sorted(self.heard), self.arrived, self.last, buffer)

    def restore(self, state: StageState) -> None:
        self.clock, self.refused, self.marks, self.heard = state.clock, state.refused, dict(state.marks), set(state.heard)
        self.arrived, self.last = state.arrived, state.last
        self.buffer = [(event.origin[0], number, event) for number, event in state.buffer]  # a heap was written, one is read

    def arrive(self, record: Event) -> None:
        arrival = max(self.clock, arrival_of(record))
        self._pass_time(arrival)
        self.clock = arrival
        source = record.source or ""
        if record.type != HEARTBEAT or source:
            self.heard.add(source)
        self._observe(source, arrival_of(record) - record.hi)
        self._receive(record, source)
        self.marks[source] = max(self.marks.get(source, record.hi), record.hi)
        while (item := self._next()) is not None and self.stable(item[0], self.clock):
            self._take(*item)

    def _receive(self, record: Event, source: str) -> None:
        """An event that breaks its source's order is late even if it could still be put in place (decision D-25)."""
        if record.type == HEARTBEAT:
            return
        place = record.origin[0]
        if record.hi < self.marks.get(source, NEVER) or place < self.last:
            self.late.append(record)
            self.refused += 1
        else:
            self._keep(record)

    def _keep(self, record: Event) -> None:
        heapq.heappush(self.buffer, (record.origin[0], self.arrived, record))
        self.arrived += 1

    @property
    def known(self) -> Collection[str]:
        return self.declared or self.heard

    def stable(self, time: int, clock: int) -> bool:
        return all(self.marks.get(source, NEVER) > time for source in self.known)

    def _next(self) -> tuple[int, Event | None] | None:
        """The next item: the first event of the buffer, or a timer due before its hi."""
        due = self.consumer.due()
        if self.buffer and (due is None or due >= self.buffer[0][2].hi):
            return self.buffer[0][2].hi, self.buffer[0][2]
        return None if due is None else (due, None)

    def _take(self, time: int, event: Event | None) -> None:
        if event is None:
            self.last = (time, inf)  # after every event with hi up to this
            self.consumer.fire(time, self.clock)
        else:
            self.last = heapq.heappop(self.buffer)[0]
            self.consumer.consume(event, self.clock)

    def finish(self, until: float | None = None) -> None:
        """What is not stable stays unconsumed; `until` declares all sources silent through that time."""
        while until is not None and (item := self._next()) is not None and item[0] <= until:
            if until == inf and not self.buffer and not self.consumer.finite():
                return
            self.clock = max(self.clock, item[0])
            self._take(*item)

    # What the probabilistic policy does besides.

    def _observe(self, source: str, delay: int) -> None:
        pass

    def _pass_time(self, arrival: int) -> None:
        pass


class Delays:
    """The last delays of a source: as they came, and by length."""

    def __init__(self, observed: Iterable[int] = ()) -> None:
        self.recent: deque[int] = deque()
        self._ordered: list[int] = []
        for delay in observed:
            self.add(delay)

    def add(self, delay: int) -> None:
        if len(self.recent) == OBSERVED:
            del self._ordered[bisect_left(self._ordered, self.recent.popleft())]
        self.recent.append(delay)
        insort(self._ordered, delay)

    def within(self, delay: int) -> int:
        """How many are not longer."""
        return bisect_right(self._ordered, delay)


@dataclass
class Probabilistic(Guaranteed):
    """As guaranteed, but an item is consumed as soon as nothing earlier comes with probability `threshold`, judged by the
    delays that were seen of each source. A threshold of 1 equals guaranteed."""

    threshold: float = 1.0
    delays: dict[str, Delays] = field(default_factory=dict)

    def state(self) -> StageState:
        delays = {source: list(observed.recent) for source, observed in self.delays.items()}
        return msgspec.structs.replace(super().state(), delays=delays)

    def restore(self, state: StageState) -> None:
        super().restore(state)
        self.delays = {source: Delays(observed) for source, observed in state.delays.items()}

    @cached_property
    def _wanted(self) -> Fraction:
        """The threshold as it was written: 0.1 is a tenth."""
        return Fraction(str(self.threshold))

    def stable(self, time: int, clock: int) -> bool:
        """The product of F of the specification, compared exactly."""
        heard = out_of = 1
        for source in self.known:
            if self.marks.get(source, NEVER) <= time:
                observed = self.delays.get(source, NO_DELAYS)
                heard *= observed.within(clock - time)
                out_of *= len(observed.recent) + 1
        return heard * self._wanted.denominator >= out_of * self._wanted.numerator

    def _observe(self, source: str, delay: int) -> None:
        self.delays.setdefault(source, Delays()).add(delay)

    def _pass_time(self, arrival: int) -> None:
        """Between two arrivals items become stable one after another; at one instant arrivals come first."""
        while (item := self._next()) is not None and (instant := self._stable_at(item[0], arrival)) is not None:
            self.clock = instant
            self._take(*item)

    def _stable_at(self, time: int, before: int) -> int | None:
        """The first instant at which it is; once stable, an item stays so."""
        if self.clock == NEVER or self.clock >= before:
            return None
        observed = {time + delay for source in self.known for delay in self.delays.get(source, NO_DELAYS).recent}
        instants = [self.clock, *sorted(instant for instant in observed if self.clock < instant < before)]
        first = bisect_left(instants, True, key=lambda instant: self.stable(time, instant))
        return instants[first] if first < len(instants) else None


NO_DELAYS = Delays()


@dataclass
class InOrder(Guaranteed):
    """No policy: the whole input is waited for and consumed in total order, so nothing is late."""

    def arrive(self, record: Event) -> None:
        self.clock = max(self.clock, arrival_of(record))
        self.marks[""] = max(self.marks.get("", record.hi), record.hi)
        if record.type != HEARTBEAT:
            self._keep(record)

    def finish(self, until: float | None = None) -> None:
        super().finish(max(self.marks.get("", NEVER), NEVER if until is None else until))


def stage(kind: str, consumer: Consumer, sources: Iterable[str] = (), threshold: float = 1.0) -> Stage:
    """The stage of a policy: best-effort, guaranteed or probabilistic; of none: in-order."""
    if kind == "best-effort":
        return BestEffort(consumer)
    if kind == "in-order":
        return InOrder(consumer)
    declared = tuple(dict.fromkeys(sources))
    return Guaranteed(consumer, declared) if kind == "guaranteed" else Probabilistic(consumer, declared, threshold=threshold)
