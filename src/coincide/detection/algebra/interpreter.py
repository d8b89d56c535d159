"""The algebra, instant by instant (ECCO-39): all events of an instant are taken together, definitions are evaluated in
dependency order, each expression bottom-up, each operator once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from coincide.detection.algebra.intake import Copies, Stamping
from coincide.detection.algebra.nodes.base import Instant, Keys
from coincide.detection.algebra.occurrence import Occurrence, of_detection, of_event
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.space.zones import ZoneIndex, zone_index
from coincide.detection.algebra.state import Copy, PlanState
from coincide.detection.base import Clock, Pending
from coincide.detection.eventwise import Cause, Timer, step_eventwise
from coincide.detection.keys import Key
from coincide.lang.ecco.link import Setting
from coincide.model.batch import EventBatch
from coincide.model.event import Event, instant_place
from coincide.source import room_for_recursion

INSTANT, WAKE = "instant", "wake"
Arrivals = dict[str, list[Occurrence]]


@dataclass(frozen=True, eq=False)
class Interpreter:
    """Steps the definitions of a plan, which stand in dependency order."""

    programs: tuple[Program, ...]
    setting: Setting
    order: int  # for the places of timers
    foreign: frozenset[str]

    @cached_property
    def stamping(self) -> Stamping:
        return Stamping(self.setting.stamps)

    @cached_property
    def duplicates(self) -> Copies:
        return Copies(self.setting.duplicates)

    @cached_property
    def types(self) -> frozenset[str]:
        return frozenset().union(*(p.types for p in self.programs))

    @cached_property
    def reads_any(self) -> bool:
        return any(p.reads_any for p in self.programs)

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for number, program in enumerate(self.programs):
            for name in program.types:
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def _zones(self) -> Mapping[str, ZoneIndex]:
        return {name: zone_index(name, [(n, self.programs[n]) for n in numbers]) for name, numbers in self._readers.items()}

    @cached_property
    def _omnivores(self) -> Sequence[int]:
        return [number for number, program in enumerate(self.programs) if program.reads_any]

    def concerned_by_name(self, name: str) -> Sequence[int]:
        return self._readers.get(name, ())

    def concerned(self, arrivals: Mapping[str, Sequence[Occurrence]]) -> Iterator[int]:
        """Definitions that look at what has arrived; `any` and NULL look at events of every type."""
        if arrivals:
            yield from self._omnivores
        for name, occurrences in arrivals.items():
            index = self._zones.get(name)
            if index is not None:
                for occurrence in occurrences:
                    yield from index.concerned(occurrence)

    @property
    def restamps(self) -> bool:
        return bool(self.setting.stamps)

    def step(self, state: PlanState, batch: EventBatch, clock: Clock) -> tuple[PlanState, EventBatch]:
        with room_for_recursion():  # a long chain is as many steps deep
            return _Run(self, state, clock).step(batch)

    def pending(self, state: PlanState) -> Pending | None:
        first = state.timers.first()
        if first is None:
            return None
        due = first.payload[1] if state.ended else first.due
        return Pending(due, bool(state.waiting) or self._waits(state))

    def _waits(self, state: PlanState) -> bool:
        return any(
            node.waits(own, state.latest)
            for program, copies in zip(self.programs, state.copies, strict=True)
            for copy in copies.values()
            for node, own in zip(program.nodes, copy.states, strict=True)
        )


@dataclass(eq=False)
class _Run:
    """One step of the plan."""

    interpreter: Interpreter
    state: PlanState
    clock: Clock

    def step(self, batch: EventBatch) -> tuple[PlanState, EventBatch]:
        state = self.state
        if state.start is None and self.clock.start is not None and not self.interpreter.restamps:
            self._begin(self.clock.start, Cause((self.clock.start, 0, 0, 0), state.timers, []))
        state.ended = state.ended or self.clock.end is not None
        if self.clock.latest is not None and not self.interpreter.restamps:
            state.latest = max(state.latest, self.clock.latest)
        made = step_eventwise(batch, self.clock, state.timers, self.on_event, self.on_timer)
        if state.ended and self.interpreter.restamps:
            made = self._rest(made)
        return state, made

    def _rest(self, made: EventBatch) -> EventBatch:
        """At the end of input no stamp can come late any more. Without `until`, the clock stops at the last new stamp."""
        state, found = self.state, list(made.events)
        plain = self.clock.end is not None and self.clock.bound == self.clock.end + 1
        limit = state.latest if plain else max(state.latest, self.clock.bound - 1)
        while (timer := state.timers.first()) is not None and timer.payload[1] <= limit:
            state.timers.pop()
            self.on_timer(timer, Cause(timer.place, state.timers, found))
        return EventBatch(sorted(found, key=lambda event: event.place))

    # Events wait for the timer of their instant.

    def on_event(self, event: Event, cause: Cause) -> None:
        interpreter = self.interpreter
        if event.is_detection:
            if event.type in interpreter.foreign:
                self._wait(event, max(event.hi, cause.now - interpreter.stamping.lag), cause)
            return
        shown = interpreter.stamping.stamped(event)
        if shown is None:
            return
        self.state.latest = max(self.state.latest, shown.hi)
        # Under new stamps, the first event of any type is the start of observation only once all are in order.
        if interpreter.reads_any or interpreter.restamps or event.type in interpreter.types:
            self._wait(shown, shown.hi if interpreter.restamps else cause.now, cause)

    def _wait(self, event: Event, instant: int, cause: Cause) -> None:
        state = self.state
        if instant not in state.waiting:
            state.waiting[instant] = []
            self._set_timer((INSTANT, instant), cause)
        state.waiting[instant].append(event)

    def _set_timer(self, payload: tuple[str, int], cause: Cause) -> None:
        interpreter, due = self.interpreter, payload[1] + self.interpreter.stamping.lag
        if self.clock.arrival is None:
            cause.timers.add(Timer(instant_place(due, cause.place, interpreter.order), payload))
        else:  # each event is a round of its own
            cause.set_timer(interpreter.order, due, payload)

    def on_timer(self, timer: Timer, cause: Cause) -> None:
        kind, now = timer.payload
        if kind == WAKE and (now in self.state.waiting or now not in self.state.wakes):
            return  # the events of the instant have a timer of their own, set by the first of them
        self._evaluate(now, cause)

    # Evaluation.

    def _begin(self, start: int, cause: Cause) -> None:
        """The start of observation: that of keys comes with their first event."""
        self.state.start = start
        for number, program in enumerate(self.interpreter.programs):
            if not program.keys and () not in self.state.copies[number]:
                self._copy(number, (), start, start - 1, cause)  # a window may end at the start

    def _copy(self, number: int, key: Key, start: int, now: int, cause: Cause) -> Copy:
        program = self.interpreter.programs[number]
        copy = self.state.copies[number][key] = Copy([node.fresh() for node in program.nodes], start)
        instant = self._instant(number, key, copy, now, {}, cause)
        for node in program.nodes:
            node.begin(instant)
        return copy

    def _evaluate(self, now: int, cause: Cause) -> None:
        state = self.state
        if state.start is None:
            self._begin(now, cause)
        arrivals = self._arrivals(state.waiting.pop(now, []), now)
        woken: dict[int, set[Key]] = {}
        for number, key in state.wakes.pop(now, ()):
            woken.setdefault(number, set()).add(key)
        agenda = sorted({*woken, *self.interpreter.concerned(arrivals)})
        while agenda:  # a heap: a definition stands after those that it refers to
            number = heappop(agenda)
            program = self.interpreter.programs[number]
            made = self._detections(number, program, arrivals, woken.get(number, set()), now, cause)
            if not made:
                continue
            arrivals.setdefault(program.name, []).extend(made)
            for reader in self.interpreter.concerned_by_name(program.name):
                if reader not in agenda:
                    heappush(agenda, reader)

    def _detections(
        self, number: int, program: Program, arrivals: Arrivals, woken: set[Key], now: int, cause: Cause
    ) -> list[Occurrence]:
        """New detections of a definition; given out, if it is a detector of this plan."""
        serials = self.state.serials
        found = self._found(number, program, arrivals, woken, now, cause)
        made = program.detections(found, serials.get(program.name, 0))
        serials[program.name] = serials.get(program.name, 0) + len(made)
        if program.order is not None:
            for d in made:
                source = d.source if program.tells_source else None
                cause.emit(program.order, program.name, (d.lo, d.hi), d.attributes, d.origin, source)
        return made

    def _arrivals(self, events: Sequence[Event], now: int) -> Arrivals:
        """By type, after duplicates; copies that were replaced leave all states."""
        state, duplicates = self.state, self.interpreter.duplicates
        external = sorted((e for e in events if not e.is_detection), key=lambda e: e.origin)
        if duplicates.rules:
            external, replaced = duplicates.first_copies(external, state.seen)
            duplicates.forget(state.seen, now)
            if replaced:
                self._discard(replaced)
        arrivals: Arrivals = {}
        for event in external:
            arrivals.setdefault(event.type, []).append(of_event(event))
        for event in events:
            if event.is_detection:
                number = state.serials[event.type] = state.serials.get(event.type, 0) + 1
                arrivals.setdefault(event.type, []).append(of_detection(event, number))
        return arrivals

    def _discard(self, keys: Keys) -> None:
        for program, copies in zip(self.interpreter.programs, self.state.copies, strict=True):
            for copy in copies.values():
                for node, own in zip(program.nodes, copy.states, strict=True):
                    node.discard(own, keys)

    def _found(
        self, number: int, program: Program, arrivals: Arrivals, woken: set[Key], now: int, cause: Cause
    ) -> Mapping[Key, Sequence[Occurrence]]:
        """What the definition's expression makes now, by key."""
        by_key: dict[Key, Arrivals] = {key: {} for key in woken}
        for occurrence in _relevant(program, arrivals):
            key = program.key_of(occurrence)
            if key is not None:
                own = by_key.setdefault(key, {})
                own.setdefault(occurrence.type or "", []).append(occurrence)
        found: dict[Key, Sequence[Occurrence]] = {}
        for key, own in by_key.items():
            copy = self.state.copies[number].get(key) or self._copy(number, key, now, now, cause)
            found[key] = program.root.advance(self._instant(number, key, copy, now, own, cause))
        return found

    def _instant(self, number: int, key: Key, copy: Copy, now: int, arrivals: Arrivals, cause: Cause) -> Instant:
        def wake(due: int) -> None:
            if due <= now:
                return
            asked = self.state.wakes.get(due)
            if asked is None:
                asked = self.state.wakes[due] = set()
                self._set_timer((WAKE, due), cause)
            asked.add((number, key))

        program = self.interpreter.programs[number]
        seen = [o for own in arrivals.values() for o in own if o.primitives] if program.reads_any else []
        seen.sort(key=lambda o: o.order)
        end = self.state.latest if self.clock.endless else None
        return Instant(now, copy.states, arrivals, seen, wake, copy.start, bool(arrivals), bool(program.keys), end)


def _relevant(program: Program, arrivals: Mapping[str, Iterable[Occurrence]]) -> Iterable[Occurrence]:
    """What the definition refers to; `any` and NULL see every primitive event."""
    for name, occurrences in arrivals.items():
        if name in program.types:
            yield from occurrences
        elif program.reads_any:
            yield from (o for o in occurrences if o.primitives)
