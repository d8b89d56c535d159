"""Automata, event by event: reads like the specification's sections 3.4 to 3.8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coincide.detection.automaton.attributes import json_text
from coincide.detection.automaton.construction import Automaton, Outcome, State, Transitions
from coincide.detection.automaton.parameters import concerned, forget_idle
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import DetectorState, Holder, Match, Run, RunTimer
from coincide.detection.eventsets import FREE, Assignment, Reading, timer_reading
from coincide.detection.eventwise import Cause, Timer
from coincide.model.event import Event, Place, Value, item_end, united_origin

Sides = list[tuple[list[Match], list[Match]]]
"""For each `||` node of an automaton, what its sides detect on the event."""


class Interpreter:
    """One detector. `on_event` and `on_timer` say what the driver's next event or timer does to the state."""

    def __init__(self, program: Program, state: DetectorState) -> None:
        self.program = program
        self.state = state

    def on_event(self, event: Event, cause: Cause) -> None:
        program = self.program
        if not program.reads(event):
            return
        reading = program.leaves.read(event)
        if reading.held:
            assignments = concerned(self.state, reading, program.uniform)
            self._consume(Step(program, self.state, reading, cause), assignments)
            if program.uniform:
                forget_idle(self.state, assignments)

    def on_item(self, events: Sequence[Event], cause: Cause) -> None:
        """An item with what sides that run elsewhere have made of it: taken at once (Opera's distribution, section 3)."""
        program = self.program
        readings = [reading for e in events if program.reads(e) and (reading := program.leaves.read(e)).held]
        if readings:
            found = [concerned(self.state, reading, program.uniform) for reading in readings]
            assignments = list(dict.fromkeys(assignment for some in found for assignment in some))
            self._consume(Step(program, self.state, readings[0], cause, companions=readings[1:]), assignments)
            if program.uniform:
                forget_idle(self.state, assignments)

    def on_timer(self, timer: Timer, cause: Cause) -> None:
        """A time event is one event for all runs that share the timer, and for no others."""
        timing, due = timer.payload
        name = self.program.timings[timing].timer
        event = Event(name, due, due, None, {}, (), place=cause.place)
        own = dict(self.state.holders.get(timer.place, {}))
        assignments = list(dict.fromkeys(holder[0] for holder in own))
        self._consume(Step(self.program, self.state, timer_reading(event, timing), cause, own, timer.place), assignments)

    def _consume(self, step: Step, assignments: list[Assignment]) -> None:
        for assignment in assignments:
            for match in step.automaton(self.program.root, assignment):
                step.collect(match)
        step.emit()
        step.set_timers()
        self.state.cancel_released()


@dataclass(frozen=True)
class Taken:
    """A transition that is made: at a position (or to a node's form that awaits its other side), with what it adds."""

    position: int
    match: Match
    awaiting: int | None = None
    entry: int | None = None


class Step:
    """All that one event does to one detector."""

    def __init__(
        self,
        program: Program,
        state: DetectorState,
        reading: Reading,
        cause: Cause,
        own: Mapping[Holder, Run] | None = None,
        fired: Place = (),
        companions: Sequence[Reading] = (),
    ) -> None:
        self.program = program
        self.state = state
        self.reading = reading
        self.event = reading.event
        self.cause = cause
        self.own = own  # of a time event: the runs that see it
        self.fired = fired  # the place of the timer that it is of
        self.companions = companions  # what sides that run elsewhere have made of the event
        self.found: dict[tuple[tuple[Place, ...], str], tuple[Match, dict[str, Value]]] = {}
        self.entered: list[tuple[int, Assignment, Run]] = []

    def automaton(self, automaton: Automaton, assignment: Assignment) -> list[Match]:
        """Consume the event; the automaton's detections, equal ones once. The sides of its nodes take it first."""
        sides = [(self._side(left, assignment), self._side(right, assignment)) for left, right in automaton.sides]
        sight = Sight(automaton, self.program, self.reading, assignment, sides)
        found: dict[object, Match] = {}
        self._starts(sight, found)
        for run in self._runs(sight):
            self._run(sight, run, found)
        return list(found.values())

    def _side(self, automaton: Automaton, assignment: Assignment) -> list[Match]:
        found = self.automaton(automaton, assignment)
        if self.companions and len(automaton.positions) == 1 and not automaton.sides:  # an atom: it may stand for one elsewhere
            for reading in self.companions:
                found += Step(self.program, self.state, reading, self.cause).automaton(automaton, assignment)
        return found

    def _starts(self, sight: Sight, found: dict[object, Match]) -> None:
        """A group that makes a transition stays: the fresh instance. A failure is final, but for `restart`."""
        ended = self.state.instances[sight.assignment].ended[sight.automaton.number]
        for number, start in enumerate(sight.automaton.starts):
            if number in ended or not sight.concerns(start.state):
                continue
            run = self.program.start_runs[sight.automaton.number][number]
            taken = list(sight.taken(run, self.own is None))
            for transition in taken:
                self._advance(sight, run, transition, found)
            (group,) = start.state
            if not taken and not self.program.restart and self.own is None and sight.fails(group, None):
                ended.add(number)
                self.program.report_end(self.state.failures, sight.automaton, number, self.event)

    def _runs(self, sight: Sight) -> list[Run]:
        """Those that the event, or what the sides make of it, may concern."""
        number, assignment = sight.automaton.number, sight.assignment
        by_state = self.state.instances[assignment].runs[number]
        if self.own is None or any(left or right for left, right in sight.sides):
            awaiting = ((state, runs.values()) for state, runs in by_state.items() if sight.concerns(state))
            return [run for state, runs in awaiting for run in sight.followed(state, runs)]
        return [run for holder, run in self.own.items() if holder[:2] == (assignment, number)]

    def _run(self, sight: Sight, run: Run, found: dict[object, Match]) -> None:
        sees = self.own is None or any(timer.place == self.fired for timer in run.timers)
        taken = list(sight.taken(run, sees))
        if taken:
            self.state.remove(sight.assignment, sight.automaton.number, run)
            for transition in taken:
                self._advance(sight, run, transition, found)
        elif sees:
            self._fail(sight, run)

    def _fail(self, sight: Sight, run: Run) -> None:
        """Groups fail by themselves; timers that no group left has in its domain are dropped, and the event itself."""
        left = frozenset(group for group in run.state if not sight.fails(group, run.prev))
        if left == run.state and self.own is None:
            return
        self.state.remove(sight.assignment, sight.automaton.number, run)
        if left:
            timers = self._timers_kept(sight.automaton, run, left)
            remaining = run.at(left, timers)
            self.state.add(sight.assignment, sight.automaton.number, remaining)

    def _timers_kept(self, automaton: Automaton, run: Run, state: State) -> list[RunTimer]:
        domain = automaton.timers_in_domain(state)
        return [timer for timer in run.timers if timer.timing in domain and timer.place != self.fired]

    def _advance(self, sight: Sight, run: Run, taken: Taken, found: dict[object, Match]) -> None:
        match = run.match.joined(taken.match)
        prev = taken.match.hi if run.prev is None else max(run.prev, taken.match.hi)
        for outcome in _outcomes(sight.automaton, run, taken):
            if outcome.accept:
                found[match.key] = match
            if outcome.state:
                timers = self._timers_entering(sight.automaton, run, outcome)
                entered = Run(outcome.choices, outcome.state, prev, taken.entry, match, tuple(timers))
                self.entered.append((sight.automaton.number, sight.assignment, entered))

    def _timers_entering(self, automaton: Automaton, run: Run, outcome: Outcome) -> Iterator[RunTimer]:
        for timer in self._timers_kept(automaton, run, outcome.state):
            if timer.timing not in outcome.sets:
                yield timer
        for timing in outcome.sets:
            yield RunTimer(timing, self.program.timings[timing].time.due(item_end(self.event)))

    # Detections and timers, in the order of section 3.5 and 3.8.

    def collect(self, match: Match) -> None:
        attributes = self.program.attributes.of(match)
        if attributes is not None:
            self.found[self._identity(match), json_text(attributes)] = match, attributes

    def _identity(self, match: Match) -> tuple[Place, ...]:
        """The events of a match. What sides have made elsewhere stands for the events that it was made of."""
        if not self.program.sides:
            return match.places
        events = (((1, *key) for key in event.origin) if event.origin else [(0, *event.place)] for event in match.events)
        return tuple(sorted({part for parts in events for part in parts}))

    def emit(self) -> None:
        """Equal events and attributes are one detection."""
        for key in sorted(self.found):
            match, attributes = self.found[key]
            self.cause.emit(self.program.order, self.program.name, (match.lo, match.hi), attributes, united_origin(match.events))

    def set_timers(self) -> None:
        """Runs with the same events share a timer. Order of setting: automaton, events, place in the text."""
        wanted = {
            (automaton, run.match.places, timer.timing): timer
            for automaton, _, run in self.entered
            for timer in run.timers
            if not timer.place
        }
        places: dict[object, Place] = {}
        for key in sorted(wanted):
            timer = self.cause.set_timer(self.program.order, wanted[key].due, (wanted[key].timing, wanted[key].due))
            places[key] = timer.place
            self.state.pending[timer.place] = timer
        for automaton, assignment, run in self.entered:
            timers = [
                timer if timer.place else RunTimer(timer.timing, timer.due, places[automaton, run.match.places, timer.timing])
                for timer in run.timers
            ]
            self.state.add(assignment, automaton, run.at(run.state, timers))


def _outcomes(automaton: Automaton, run: Run, taken: Taken) -> list[Outcome]:
    if taken.awaiting is None:
        return automaton.outcomes(taken.position, run.choices)
    choices, state = automaton.waiting(taken.awaiting, run.choices)
    return [Outcome(choices, state, False, ())]


class Sight:
    """What an event, and what the sides made of it, is to the positions of one automaton under one assignment."""

    def __init__(self, automaton: Automaton, program: Program, reading: Reading, assignment: Assignment, sides: Sides) -> None:
        self.automaton = automaton
        self.program = program
        self.reading = reading
        self.event = reading.event
        self.assignment = assignment
        self.sides = sides
        self._matches: dict[int, Match | None] = {}
        self._domains: dict[int, bool] = {}

    def concerns(self, state: State) -> bool:
        return any(self.in_domain(p) or self._one_side(p) for p, _ in self.automaton.awaited(state).positions)

    def in_domain(self, number: int) -> bool:
        if number not in self._domains:
            position = self.automaton.positions[number]
            if self.reading.timing is not None:
                inside = self.reading.timing in position.timers
            else:
                inside = any(holds(self.reading.held, self.assignment) is not None for holds in position.domain)
            self._domains[number] = inside
        return self._domains[number]

    def match(self, number: int) -> Match | None:
        """The event as what the position's atom adds to a match; None if it does not match."""
        if number not in self._matches:
            self._matches[number] = self._match(number) if self.in_domain(number) else None
        return self._matches[number]

    def _match(self, number: int) -> Match | None:
        held = [
            (item, used)
            for item in self.automaton.positions[number].items
            if (used := item.holds(self.reading.held, self.assignment)) is not None
        ]
        if not held:
            return None
        bindings = FREE.union(*(used for _, used in held))
        aliases = {(item.alias, self.event.place) for item, _ in held if item.alias in self.program.aliases and item.alias}
        return Match((self.event,), bindings, frozenset(aliases))

    def _one_side(self, number: int) -> bool:
        """Is the position a node for which a side that it awaits has detected?"""
        awaits = self.automaton.positions[number].awaits
        if awaits is None:
            return False
        left, right = self.sides[self.automaton.positions[number].node]
        return bool((left and awaits != "right") or (right and awaits != "left"))

    def _follows(self, prev: int | None) -> bool:
        return prev is None or self.reading.timing is not None or prev < self.event.lo

    def followed(self, state: State, runs: Iterable[Run]) -> Iterable[Run]:
        """Those that the event may follow: where all is strong, it does nothing to the others (of its own instant, say)."""
        positions, own = self.automaton.awaited(state).positions, self.automaton.positions
        if self.reading.timing is not None or any(weak or own[number].awaits is not None for number, weak in positions):
            return runs
        lo = self.event.lo
        return [run for run in runs if run.prev is None or run.prev < lo]

    def taken(self, run: Run, sees: bool) -> Iterator[Taken]:
        """The transitions that the event (if the run sees it) or the sides' detections allow."""
        for number, weak in self.automaton.awaited(run.state).positions:
            if self.automaton.positions[number].awaits is not None:
                yield from self._node(number, None if weak else run.prev, run.entry)
            elif sees and (weak or self._follows(run.prev)) and (match := self.match(number)) is not None:
                yield Taken(number, match)

    def _node(self, number: int, bound: int | None, entry: int | None) -> Iterator[Taken]:
        """Section 3.6. What does not lie wholly after the bound does not count."""
        position = self.automaton.positions[number]
        left, right = self.sides[position.node]
        if position.awaits != "both":
            for match in _counting(right if position.awaits == "right" else left, entry):
                yield Taken(number, match)
            return
        lefts, rights = _counting(left, bound), _counting(right, bound)
        if lefts and rights:
            yield from (Taken(number, one.joined(other)) for one in lefts for other in rights)
        awaiting_right, awaiting_left = position.partner_missing
        if not rights:
            yield from (Taken(number, match, awaiting_right, bound) for match in lefts)
        if not lefts:
            yield from (Taken(number, match, awaiting_left, bound) for match in rights)

    def fails(self, group: Transitions, prev: int | None) -> bool:
        """No position of the group takes the event, it is in the group's domain, and it counts as following."""
        if any(self._one_side(p) or self.match(p) is not None for _, p in group):
            return False
        weak = any(not strong for strong, _ in group)
        return any(self.in_domain(p) for _, p in group) and (weak or self._follows(prev))


def _counting(matches: list[Match], bound: int | None) -> list[Match]:
    return [match for match in matches if bound is None or bound < match.lo]
