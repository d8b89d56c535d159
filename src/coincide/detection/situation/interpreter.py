"""Situations, event by event. The methods are those of section 4 of the specification, under the same names."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.detection.base import Clock
from coincide.detection.eventwise import Cause, Timer, step_eventwise
from coincide.detection.situation.cycle import step_cyclic
from coincide.detection.situation.lifespans import Closed, Lifespans, holds
from coincide.detection.situation.program import Group, Readers, SituationProgram
from coincide.detection.situation.scope import NOT_ENDED, Ending, Selection, View
from coincide.detection.situation.select import Decision, total
from coincide.detection.situation.state import (
    Delayed,
    Expire,
    Key,
    Lifespan,
    Partition,
    Passed,
    SituationState,
    Tick,
    key_value,
    partition_in,
)
from coincide.errors import Diagnostic, RunError
from coincide.model.batch import EventBatch
from coincide.model.compound import single
from coincide.model.event import Event, Value, caused, is_recurring, united_origin

LONGEST_CHAIN = 1000  # AMIT-51


class Interpreter:
    """Steps a group of situations; `state` is what changes."""

    def __init__(self, group: Group) -> None:
        self.group = group
        names = frozenset(s.name for s in group.situations)
        self.fed_back = names & frozenset(group.readers)  # on a cycle: what it detects, it reads
        self.cyclic = frozenset().union(*(s.resolved.cyclic for s in group.situations))

    def step(self, state: SituationState, batch: EventBatch, clock: Clock) -> tuple[SituationState, EventBatch]:
        run = _Run(self.group, state, self.cyclic)
        run.start(batch, clock)
        try:
            if self.fed_back:
                return state, step_cyclic(batch, clock, state.timers, run.process, run.fire, self.fed_back)
            return state, step_eventwise(batch, clock, state.timers, run.process, run.fire)
        except RunError as error:
            run.tell(error)
            raise


class _Run:
    """The interpreter over one state."""

    def __init__(self, group: Group, state: SituationState, cyclic: frozenset[str]) -> None:
        self.group = group
        self.state = state
        self.lifespans = Lifespans(state)
        self.cyclic = cyclic
        self.cause: Cause | None = None  # what is being processed

    def tell(self, error: RunError) -> None:
        """Tell an error what was detected before: up to its place, else up to the last detection of its cause."""
        if self.cause is not None:
            made = sorted(self.cause.made, key=lambda d: d.place)
            here = [d.place for d in made if d.place > self.cause.place]
            error.place = error.place or ((*here[-1], 0) if here else caused(self.cause.place, -1, 0))
            error.detections = EventBatch(made)

    def start(self, batch: EventBatch, clock: Clock) -> None:
        """Startup comes just before the first external event, at its time (decision 16); under changed rules, now."""
        if not self.state.fresh or clock.start is None:
            return
        now = clock.start if not self.state.late else min([e.hi for e in batch.events[:1]] + [clock.bound])
        cause = Cause((now, 0, -1, 0), self.state.timers, [])
        for lifespan in self.group.lifespans:
            fresh = all(s.number in self.state.fresh for s in lifespan.situations)
            if lifespan.definition.startup and fresh:
                self.lifespans.open(lifespan, (), cause)
        for situation in self.group.situations:
            if situation.number in self.state.fresh:
                for spans in self.state.open[situation.lifespan].values():
                    for span in spans:
                        self.begin(situation, span, cause)
        self.state.fresh.clear()

    def process(self, event: Event, cause: Cause) -> None:
        self.cause = cause
        readers = self.group.readers.get(event.type)
        if readers is None:
            return
        event = fitted(event, readers)
        recurring = is_recurring(cause.place) or (event.is_detection and event.type in self.cyclic)
        closed: dict[int, list[Closed]] = {}
        opened: dict[int, Lifespan] = {}
        for lifespan in readers.lifespans:
            closed[lifespan.number] = self.lifespans.terminate(lifespan, event)
            span = self.lifespans.initiate(lifespan, event, cause, recurring)
            if span is not None:
                opened[lifespan.number] = span
        for situation in readers.situations:
            for ended in closed.get(situation.lifespan, ()):
                self.end(situation, ended, cause)
            span = opened.get(situation.lifespan)
            if event.type in situation.operands_of:
                self.collect(situation, event, cause, span, recurring)
            if span is not None:
                self.begin(situation, span, cause)

    # Lifespans

    def begin(self, situation: SituationProgram, span: Lifespan, cause: Cause) -> None:
        """Set the first timer of an operator that ticks."""
        next_tick = situation.behaviour.next_tick
        due = None if next_tick is None else next_tick(situation, cause.now)
        if due is not None:
            recurring = situation.operator.repeat == "always" and (situation.pattern is None or situation.pattern.recurring)
            recurring = recurring or self._caused_by_recurring(cause, span)
            tick = cause.set_timer(situation.order, due, Tick(span, situation.number), recurring)
            span.contents[situation.number].tick = tick

    def _caused_by_recurring(self, cause: Cause, span: Lifespan) -> bool:
        if is_recurring(cause.place):
            return True
        event = span.event
        return event is not None and event.is_detection and event.type in self.cyclic

    def end(self, situation: SituationProgram, closed: Closed, cause: Cause) -> None:
        if closed.termination == "discard":
            return
        span, ending = closed.lifespan, closed.ending
        content = span.contents[situation.number]
        for delayed in content.delayed:
            self.report(situation, span, delayed.key, delayed.selection, cause, ending)
        if situation.operator.mode != "deferred":
            return
        for key in sorted(content.partitions, key=_order_of_key):
            found = self._decide(situation, span, key, cause, ending)
            while found and situation.behaviour.repeated:
                found = self._decide(situation, span, key, cause, ending)

    def _decide(self, situation: SituationProgram, span: Lifespan, key: Key, cause: Cause, ending: Ending) -> list[Selection]:
        partition = span.contents[situation.number].partitions[key]
        counter = self.state.situations[situation.number]
        found = Decision(situation, span, key, partition, cause.now, ending, counter).detect()
        for selection in found:
            self.report(situation, span, key, selection, cause, ending)
        return found

    # Candidates

    def collect(self, situation: SituationProgram, event: Event, cause: Cause, opened: Lifespan | None, recurring: bool) -> None:
        key = situation.global_key(event)
        spans = None if key is None else self.state.open[situation.lifespan].get(key)
        if not spans:
            return
        counter = self.state.situations[situation.number]
        local = situation.local_key(event)
        operands = situation.operands_of[event.type]
        chosen = [n for n in operands if holds(situation.operands[n].threshold, event, counter)]
        if local is None or not (chosen or situation.behaviour.counts):
            return
        for span in list(spans):
            if span is not opened:
                partition = partition_in(situation, span.contents[situation.number], local)
                if chosen:
                    self._enter(situation, span, local, partition, chosen, event, cause, recurring)

    def _enter(
        self,
        situation: SituationProgram,
        span: Lifespan,
        key: Key,
        partition: Partition,
        chosen: Sequence[int],
        event: Event,
        cause: Cause,
        recurring: bool,
    ) -> None:
        if situation.behaviour.delays:
            self.start_after(situation, span, key, partition, chosen[0], event, cause, recurring)
            return
        if partition.done:
            return
        counter = self.state.situations[situation.number]
        entered = False
        for number in chosen:
            candidates = partition.candidates[number]
            if holds(situation.operands[number].override, event, counter):
                candidates.clear()
            if not situation.operands[number].is_new(event, candidates):
                continue
            entered = True
            counter["candidates"] += 1
            if not (candidates and number in situation.flag_operands):
                candidates.append(event)
        if entered and situation.operator.mode != "deferred":
            decision = Decision(situation, span, key, partition, cause.now, NOT_ENDED, counter, event)
            for selection in decision.detect():
                self.signal(situation, span, key, selection, cause)

    def start_after(
        self,
        situation: SituationProgram,
        span: Lifespan,
        key: Key,
        partition: Partition,
        operand: int,
        event: Event,
        cause: Cause,
        recurring: bool,
    ) -> None:
        partition.timers = [t for t in partition.timers if not t.cancelled]
        pending = [t for t in partition.timers if t.due > event.hi]
        correlate = situation.operator.correlate
        if pending and correlate == "ignore":
            return
        if correlate == "replace":
            for timer in pending:
                timer.cancelled = True
        action = Passed(span, situation.number, key, ((operand, event),))
        timer = cause.set_timer(situation.order, event.hi + situation.operator.interval, action, recurring)
        partition.timers.append(timer)
        self.state.situations[situation.number]["candidates"] += 1

    # Timers

    def fire(self, timer: Timer, cause: Cause) -> None:
        self.cause = cause
        action = timer.payload
        timer.cancelled = True  # it has fired; whoever holds it sees that it is over
        if isinstance(action, Expire):
            self._expire(action.lifespan, cause)
        elif isinstance(action, Tick):
            self._tick(self.group.situations[action.situation], action.lifespan, cause)
        else:
            situation = self.group.situations[action.situation]
            self._prune(action)
            self.signal(situation, action.lifespan, action.key, action.selection, cause)

    def _expire(self, span: Lifespan, cause: Cause) -> None:
        self.lifespans.close(span)
        lifespan = self.group.lifespans[span.definition]
        expiration = lifespan.definition.expiration
        assert expiration is not None
        for situation in lifespan.situations:
            self.end(situation, Closed(span, expiration.termination, NOT_ENDED), cause)

    def _tick(self, situation: SituationProgram, span: Lifespan, cause: Cause) -> None:
        self.signal(situation, span, (), (), cause)
        if situation.operator.repeat == "always":
            self.begin(situation, span, cause)

    def _prune(self, action: Passed) -> None:
        """A partition of `after` that waits for nothing need not be kept."""
        content = action.lifespan.contents[action.situation]
        partition = content.partitions[action.key]
        partition.timers = [t for t in partition.timers if not t.cancelled]
        if action.key and not partition.timers:
            del content.partitions[action.key]

    # Detections

    def signal(self, situation: SituationProgram, span: Lifespan, key: Key, selection: Selection, cause: Cause) -> None:
        if situation.operator.mode == "delayed":
            span.contents[situation.number].delayed.append(Delayed(key, selection))
        else:
            self.report(situation, span, key, selection, cause, NOT_ENDED)

    def report(
        self,
        situation: SituationProgram,
        span: Lifespan,
        key: Key,
        selection: Selection,
        cause: Cause,
        ending: Ending,
    ) -> None:
        if cause.place[3] >= LONGEST_CHAIN:
            message = f"a chain of more than {LONGEST_CHAIN} detections ends in situation '{situation.name}'"
            error = RunError(Diagnostic(message, situation.detector.span))
            error.place = cause.next_place(situation.order)
            raise error
        latest: list[Event | None] = [None] * len(situation.operands)
        for operand, event in selection:
            latest[operand] = event
        view = View(span, key, latest, cause.now, ending, selection, total(situation, selection))
        attributes = {name: evaluate(view) for name, evaluate in situation.attributes}
        counter = self.state.situations[situation.number]
        counter["detections"] += 1
        counter["accesses"] += situation.attribute_cost
        origin = united_origin(event for _, event in selection)
        internal = situation.resolved.situation.internal  # AMIT-50: fed to others, not reported
        cause.emit(situation.order, situation.name, (cause.now, cause.now), attributes, origin, hidden=internal)


def fitted(event: Event, readers: Readers) -> Event:
    """AMIT-3: a value that does not fit its declared type is null; what nobody reads is left out."""
    values = event.attributes
    attributes: dict[str, Value] = {
        name: v
        for name, kind in readers.attributes
        if (own := type(v := single(values.get(name)))) is kind or (own is int and kind is float)
    }
    if len(attributes) == len(values):
        return event
    return Event(event.type, event.lo, event.hi, event.id, attributes, event.origin, event.source, event.space, event.place)


def _order_of_key(key: Key) -> tuple[object, ...]:
    return tuple(key_value(part) for part in key)
