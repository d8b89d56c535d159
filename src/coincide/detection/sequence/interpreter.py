"""Queries event by event, as sections 5 to 7 say it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

from coincide.detection.base import Clock
from coincide.detection.eventwise import Cause, Timer, Timers, step_eventwise
from coincide.detection.keys import Key
from coincide.detection.sequence.output import Output
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import KeyState, Pending, Piped, State, Trace, Waiting, fresh_key, trace_of
from coincide.detection.snapshots import NEVER
from coincide.graphs import largest_matching
from coincide.lang.eql.definition import JOIN, SAMPLE
from coincide.model.batch import EventBatch
from coincide.model.event import Event

AT_THE_END = 3
"""In the places of what is made when the input ends: behind every event and timer."""

MANY = 1000
"""So many keys are kept before any is looked at again: time may have passed it by."""


class Interpreter:
    """Steps one query."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.output = Output(program)
        kind = program.query.kind
        self._advance = self._sample if kind == SAMPLE else self._join if kind == JOIN else self._sequence

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        def on_event(event: Event, cause: Cause) -> None:
            matched = self.program.matched(event)
            if matched:
                self.advance(state, event, matched, cause)

        return state, self.ended(state, step_eventwise(batch, clock, state.timers, on_event, self.timer_of(state)), clock)

    def advance(self, state: State, event: Event, matched: int, cause: Cause) -> None:
        """The event is the items that `matched` has bits for."""
        self._advance(state, event, matched, cause)
        self._forget(state, event.hi)

    def ended(self, state: Piped, made: EventBatch, clock: Clock) -> EventBatch:
        if not clock.closing or not any(state.kept):
            return made
        cause = Cause((clock.bound - 1, AT_THE_END, (0, 0, self.program.order, 0), 0), Timers(), list(made.events))
        self.output.ended(state, cause)
        return EventBatch(sorted(cause.made, key=lambda event: event.place))

    def _forget(self, state: State, now: int) -> None:
        """Keys of a rule with `maxspan` whose last event is longer ago than that: section 10."""
        maxspan = self.program.query.maxspan
        if maxspan is None or len(state.keys) < max(MANY, 2 * state.swept):
            return
        gone = [key for key, own in state.keys.items() if own.touched + maxspan < now and not own.waiting]
        for key in gone:
            del state.keys[key]
        state.swept = len(state.keys)

    def _own(self, state: State, key: Key) -> KeyState:
        own = state.keys.get(key)
        if own is None:
            own = state.keys[key] = fresh_key(self.program)
        return own

    def _keys(self, event: Event, matched: int, item: int) -> list[Key]:
        return self.program.keys[item](event) if matched >> item & 1 else []

    # Sequences: section 5

    def _sequence(self, state: State, event: Event, matched: int, cause: Cause) -> None:
        program, last = self.program, len(self.program.stages) - 1
        self._note_missing(state, event, matched)
        for stage in range(last, -1, -1):
            for key in self._keys(event, matched, program.stages[stage]):
                pending = self._started(state, key, event) if stage == 0 else self._continued(state, key, event, stage - 1)
                if pending is None:
                    continue
                if stage == last:
                    self._complete(state, key, pending, cause)
                else:
                    own = self._own(state, key)
                    own.slots[stage] = pending
                    own.touched = event.hi
        if program.until is not None:
            for key in self._keys(event, matched, program.until):
                self._drop(state, key)

    def _started(self, state: State, key: Key, event: Event) -> Pending:
        lower = event.hi
        if self.program.leading:
            own = state.keys.get(key)
            latest, before = (NEVER, NEVER) if own is None else own.leads
            lower = latest if latest < event.hi else before
        return Pending(trace_of(event, self.program), event.hi, event.hi, lower)

    def _continued(self, state: State, key: Key, event: Event, stage: int) -> Pending | None:
        own = state.keys.get(key)
        pending = None if own is None else own.slots[stage]
        if own is None or pending is None:
            return None
        own.slots[stage] = None
        if own.is_empty:
            del state.keys[key]
        maxspan = self.program.query.maxspan
        if maxspan is not None and event.hi - pending.first > maxspan:
            return None
        spoilt = pending.spoilt or (pending.gap is not None and pending.gap < event.hi)
        trace = pending.trace.joined(trace_of(event, self.program))
        return Pending(trace, pending.first, event.hi, pending.lower, None, spoilt)

    def _drop(self, state: State, key: Key) -> None:
        own = state.keys.get(key)
        if own is not None:
            own.slots = [None] * len(own.slots)
            if own.is_empty:
                del state.keys[key]

    # Missing items: section 6

    def _note_missing(self, state: State, event: Event, matched: int) -> None:
        program = self.program
        for item, stage in program.gaps:
            for key in self._keys(event, matched, item):
                own = state.keys.get(key)
                pending = None if own is None else own.slots[stage]
                if own is not None and pending is not None and event.hi > pending.last:
                    gap = event.hi if pending.gap is None else min(pending.gap, event.hi)
                    own.slots[stage] = replace(pending, gap=gap)
        for item in program.trailing:
            for key in self._keys(event, matched, item):
                self._cancel(state, key, event.hi)
        for item in program.leading:
            for key in self._keys(event, matched, item):
                own = self._own(state, key)
                own.touched = event.hi
                latest, before = own.leads
                if event.hi > latest:
                    own.leads = (event.hi, latest)
                elif before < event.hi < latest:
                    own.leads = (latest, event.hi)

    def _cancel(self, state: State, key: Key, now: int) -> None:
        own = state.keys.get(key)
        if own is None:
            return
        for waiting in own.waiting:
            waiting.timer.cancelled = now > waiting.pending.last
        own.waiting = [waiting for waiting in own.waiting if not waiting.timer.cancelled]
        if own.is_empty:
            del state.keys[key]

    def _complete(self, state: State, key: Key, pending: Pending, cause: Cause) -> None:
        if pending.spoilt:
            return
        program, maxspan = self.program, self.program.query.maxspan or 0
        due = pending.lower + maxspan
        if program.trailing and due > pending.last:
            own = self._own(state, key)
            own.touched = pending.last
            timer = cause.set_timer(program.order, due, None)
            own.waiting.append(Waiting(pending, timer))
            timer.payload = (key, own.waiting[-1])
        elif program.trailing or not program.leading or pending.last > due:
            self.output.detected(state, key, pending.trace, cause, pending.trace.hi)

    def timer_of(self, state: State) -> Callable[[Timer, Cause], None]:
        def on_timer(timer: Timer, cause: Cause) -> None:
            key, waiting = timer.payload
            own = state.keys[key]
            own.waiting.remove(waiting)
            if own.is_empty:
                del state.keys[key]
            self.output.detected(state, key, waiting.pending.trace, cause, timer.due)

        return on_timer

    # Samples and joins: section 7

    def _touched(self, event: Event, matched: int) -> Iterator[tuple[int, Key]]:
        """Items that the event can serve, and under which keys."""
        for item in range(len(self.program.query.items)):
            for key in self._keys(event, matched, item):
                yield item, key

    def _sample(self, state: State, event: Event, matched: int, cause: Cause) -> None:
        trace = trace_of(event, self.program)
        concerned: dict[Key, None] = {}
        for item, key in self._touched(event, matched):
            own = self._own(state, key)
            if not own.closed and len(own.taken[item]) < len(own.taken):
                own.taken[item].append((own.count, trace))
                concerned[key] = None
        for key in concerned:
            own = state.keys[key]
            own.count += 1
            chosen = _chosen([[number for number, _ in item] for item in own.taken])
            if chosen is not None:
                traces = {number: trace for item in own.taken for number, trace in item}
                own.closed, own.taken = True, [[] for _ in own.taken]
                self._detect(state, key, [traces[number] for number in sorted(chosen)], cause)

    def _join(self, state: State, event: Event, matched: int, cause: Cause) -> None:
        trace = trace_of(event, self.program)
        full: dict[Key, None] = {}
        touched: dict[Key, None] = {}
        for item, key in self._touched(event, matched):
            own = self._own(state, key)
            touched[key] = None
            if not own.taken[item]:
                own.taken[item] = [(own.count, trace)]
                if all(own.taken):
                    full[key] = None
        for key in touched:
            state.keys[key].count += 1
        for key in full:
            taken = dict(item[0] for item in state.keys.pop(key).taken)
            self._detect(state, key, [taken[number] for number in sorted(taken)], cause)
        if self.program.until is not None:
            for key in self._keys(event, matched, self.program.until):
                state.keys.pop(key, None)

    def _detect(self, state: State, key: Key, traces: list[Trace], cause: Cause) -> None:
        """Of these events, which stand in the order in which they were seen."""
        whole = reduce(Trace.joined, traces)
        self.output.detected(state, key, whole, cause, whole.hi)


def _chosen(candidates: list[list[int]]) -> list[int] | None:
    """An event for each item, each its own: item by item the earliest with which the rest can still be filled."""
    if not _can_fill(candidates):
        return None
    chosen: list[int] = []
    for item, own in enumerate(candidates):
        rest = candidates[item + 1 :]
        chosen.append(next(n for n in own if n not in chosen and _can_fill(_without(rest, {*chosen, n}))))
    return chosen


def _without(candidates: list[list[int]], taken: set[int]) -> list[list[int]]:
    return [[number for number in item if number not in taken] for item in candidates]


def _can_fill(candidates: list[list[int]]) -> bool:
    """Is there an event of its own for each item?"""
    return len(largest_matching(dict(enumerate(candidates)))) == len(candidates)
