"""Stability policies (Opera, section 4): which of the records that have arrived are consumed, in which order, and when."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import msgspec

from coincide.model.event import Event
from coincide.stages import NEVER, BestEffort, Consumer, Delayed, Guaranteed, InOrder, Stage, StageState, arrival_of

OBSERVED = 100  # delays that are remembered of each source


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


NO_DELAYS = Delays()


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
    def _exact_threshold(self) -> tuple[int, int]:
        """The threshold as it was written: 0.1 is a tenth."""
        return Fraction(str(self.threshold)).as_integer_ratio()

    def stable(self, time: int, clock: int) -> bool:
        """The product of F of the specification, compared exactly."""
        heard = out_of = 1
        for source in self.known:
            if self.marks.get(source, NEVER) <= time:
                observed = self.delays.get(source, NO_DELAYS)
                heard *= observed.within(clock - time)
                out_of *= len(observed.recent) + 1
        return heard * self._exact_threshold[1] >= out_of * self._exact_threshold[0]

    def _is_passed(self, time: int) -> bool:
        """What becomes stable at this instant waits for its arrivals."""
        return self.clock != NEVER and self.stable(time, self.clock - 1)

    def arrive(self, record: Event) -> None:
        arrival = arrival_of(record)
        self._pass_time(arrival)
        self.delays.setdefault(record.source or "", Delays()).add(arrival - record.hi)
        super().arrive(record)

    def pass_time(self, clock: int) -> None:
        self._pass_time(clock)
        self.clock = max(self.clock, clock)
        self.settle()

    def wakes_at(self) -> int | None:
        if self.clock == NEVER or (item := self._next()) is None:
            return None
        observed = {item[0] + delay for source in self.known for delay in self.delays.get(source, NO_DELAYS).recent}
        instants = sorted(instant for instant in observed if instant >= self.clock)
        found = bisect_left(instants, True, key=lambda instant: self.stable(item[0], instant))
        return instants[found] + 1 if found < len(instants) else None

    def _pass_time(self, arrival: int) -> None:
        """Between two arrivals items become stable one after another; at one instant arrivals come first."""
        self.consumer.cross(arrival, (self.clock, self.number))
        while (item := self._next()) is not None and (instant := self._stable_at(item[0], arrival)) is not None:
            self.clock = instant
            self._take(*item)

    def _release(self, mark: int) -> None:
        self.consumer.cross(self.clock, (self.clock, self.number))
        while (item := self._next()) is not None and self.stable(item[0], self.clock):
            self._take(*item)

    def _next(self) -> tuple[int, Event | None] | None:
        """The next item: the first event of the buffer, or a timer due before its hi."""
        due = self.consumer.due() if self.consumer.timed else None
        if self.buffer and (due is None or due >= self.buffer[0][0][0]):
            return self.buffer[0][0][0], self.buffer[0][2]
        return None if due is None else (due, None)

    def _take(self, time: int, event: Event | None) -> None:
        """When a timer becomes stable depends on what is seen until then, so no run may go by it."""
        moment = self.clock, self.number
        if event is None:
            self._fire(lambda due: due == time, lambda _: moment)
            return
        self.run.append(heapq.heappop(self.buffer)[2])
        if self.consumer.timed:
            self._hand_on(lambda _: moment)
        elif not self.steps or time >= self.steps[-1][0]:
            self.steps.append((time + 1, *moment))

    def _stable_at(self, time: int, before: int) -> int | None:
        """The first instant at which it is; once stable, an item stays so."""
        if self.clock == NEVER or self.clock >= before or not self.stable(time, before - 1):
            return None
        observed = {time + delay for source in self.known for delay in self.delays.get(source, NO_DELAYS).recent}
        instants = [self.clock, *sorted(instant for instant in observed if self.clock < instant < before)]
        return instants[bisect_left(instants, True, key=lambda instant: self.stable(time, instant))]


@dataclass(frozen=True)
class PolicyKind:
    """What a policy is: how it is written, and the stage that it has."""

    name: str
    make: Callable[[Consumer, tuple[str, ...], float, int], Stage]  # of declared sources, a threshold, a delay
    written: bool = True  # or is it what runs have that name none?
    has_threshold: bool = False
    by_arrival: bool = False  # are events consumed as they come? Else detection waits for sources, or for all that is earlier
    takes_timed_singly: bool = False  # are events consumed one by one where timers count?
    divisible: bool = True  # would parts of an expression, detected apart, make what the whole does?


POLICIES: dict[str, PolicyKind] = {
    kind.name: kind
    for kind in (
        PolicyKind("best-effort", lambda consumer, *_: BestEffort(consumer), by_arrival=True),
        PolicyKind("guaranteed", lambda consumer, sources, *_: Guaranteed(consumer, sources)),
        PolicyKind(
            "probabilistic",
            lambda consumer, sources, threshold, _: Probabilistic(consumer, sources, threshold=threshold),
            has_threshold=True,
            takes_timed_singly=True,
            divisible=False,  # what is late for a part depends on what else it hears
        ),
        PolicyKind("in-order", lambda consumer, *_: InOrder(consumer), written=False),
        PolicyKind("delayed", lambda consumer, sources, threshold, delay: Delayed(consumer, delay=delay), written=False),
    )
}
"""All of them, by name."""


def written_policies() -> tuple[str, ...]:
    """Those that rules and commands may name."""
    return tuple(name for name, kind in POLICIES.items() if kind.written)


def stage(kind: str, consumer: Consumer, sources: Iterable[str] = (), threshold: float = 1.0, delay: int = 0) -> Stage:
    return POLICIES[kind].make(consumer, tuple(dict.fromkeys(sources)), threshold, delay)


def unheard_sources(kind: str) -> str:
    """The warning where no sources are declared; empty: the policy waits for none."""
    if POLICIES[kind].by_arrival or not POLICIES[kind].written:
        return ""
    return f"{kind} detection without 'sources': a source not yet heard cannot hold anything back"
