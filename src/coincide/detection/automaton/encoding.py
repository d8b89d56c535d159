"""States as earlier releases have written them, object by object. Events stand in one table; runs refer to them by number."""

from __future__ import annotations

from typing import Any

import msgspec

from coincide.detection.automaton.construction import Automaton
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import DetectorState, Instance, Match, Run, RunTimer
from coincide.detection.eventsets import FREE, Assignment
from coincide.detection.eventwise import Timer
from coincide.detection.snapshots import check_stamp, damaged, decoded, item, items, key_of, place_of, timer_place_of
from coincide.model.bounds import Count, Instant
from coincide.model.event import Event, StoredValue, Value
from coincide.model.space import Space
from coincide.model.stamp import order_key

VERSION = 1


class EventPart(msgspec.Struct, array_like=True):
    type: str
    lo: Instant
    hi: Instant
    id: str | None
    attributes: dict[str, StoredValue]
    origin: list[tuple[Instant, Instant, str]]  # hi, lo, id: of the keys of the total order, which may be numbers of any size
    source: str | None
    space: Space | None
    place: Any


class RunPart(msgspec.Struct, array_like=True):
    """Events are numbers of the table."""

    choices: list[tuple[int, int]]
    state: list[list[tuple[bool, int]]]
    prev: Instant | None
    entry: Instant | None
    events: list[int]
    bindings: list[tuple[str, StoredValue]]
    aliases: list[tuple[str, int]]
    timers: list[tuple[int, Instant, Any]]  # timing, due, place


class DetectorPart(msgspec.Struct, array_like=True):
    version: int
    events: list[EventPart]
    timers: list[tuple[Any, int, Instant]]  # place, timing, due
    instances: list[tuple[list[tuple[str, StoredValue]], list[list[int]], list[list[RunPart]]]]
    failures: list[tuple[int, int, Count]]


def decode(program: Program, data: bytes) -> DetectorState:
    return _Reader(program, decoded(data, DetectorPart, VERSION)).read()


class _Reader:
    """Whatever the part refers to is one of the program's, or of the part's own."""

    def __init__(self, program: Program, part: DetectorPart) -> None:
        self.program = program
        self.part = part
        self.events = [_read_event(written) for written in part.events]
        self.state = DetectorState({})

    def read(self) -> DetectorState:
        state = self.state
        for raw, timing, due in self.part.timers:
            place = timer_place_of(raw)
            item(self.program.timings, timing)
            if place in state.pending:
                damaged("two timers have one place")
            state.pending[place] = state.timers.add(Timer(place, (timing, due)))
        for values, ended, runs in self.part.instances:
            self._instance(_assignment(self.program, values), ended, runs)
        if FREE not in state.instances:
            state.instances[FREE] = Instance.fresh(len(self.program.automata))
        for number, start, count in self.part.failures:
            item(item(self.program.automata, number).starts, start)
            state.failures[number, start] = count
        return state

    def _instance(self, assignment: Assignment, ended: list[list[int]], runs: list[list[RunPart]]) -> None:
        if assignment in self.state.instances:
            damaged("two instances have one assignment")
        found: list[list[Run]] = []
        for automaton, numbers, some in zip(self.program.automata, ended, runs, strict=True):
            items(automaton.starts, numbers)
            found.append([self._run(automaton, raw) for raw in some])
        restore_instance(self.state, assignment, ended, found)

    def _run(self, automaton: Automaton, raw: RunPart) -> Run:
        match = self._match(raw)
        state = frozenset(frozenset(group) for group in raw.state)
        positions = [item(automaton.positions, number) for group in state for _, number in group]
        if not positions or not all(state) or raw.prev is None:
            damaged("a run is at no place")
        for number, side in raw.choices:
            item(item(automaton.forks, number).parts, side)
        timers = tuple(self._timer(*written) for written in raw.timers)
        timings = [timer.timing for timer in timers]
        if len(set(timings)) < len(timings) or not automaton.timers_in_domain(state).issuperset(timings):
            damaged("a run has a timer of another one")
        return Run(frozenset(raw.choices), state, raw.prev, raw.entry, match, timers)

    def _match(self, raw: RunPart) -> Match:
        events = tuple(items(self.events, raw.events))
        places = [event.place for event in events]
        if not events or places != sorted(set(places)):
            damaged("the events of a run are not in order")
        named = frozenset((alias, item(self.events, number).place) for alias, number in raw.aliases)
        if not all(alias in self.program.aliases and place in places for alias, place in named):
            damaged("an alias is not one of its rule")
        return Match(events, _assignment(self.program, raw.bindings), named)

    def _timer(self, timing: int, due: int, raw: Any) -> RunTimer:
        place = timer_place_of(raw)
        known = self.state.pending.get(place)
        if known is None or known.payload != (timing, due):
            damaged("a run waits for a timer that is not set")
        return RunTimer(timing, due, place)


def restore_instance(state: DetectorState, assignment: Assignment, ended: list[list[int]], runs: list[list[Run]]) -> None:
    state.instances[assignment] = Instance([set(some) for some in ended], [{} for _ in runs])
    for pair in assignment:
        state.by_value.setdefault(pair, set()).add(assignment)
    for automaton, some in enumerate(runs):
        for run in some:
            state.add(assignment, automaton, run)


def _read_event(raw: EventPart) -> Event:
    check_stamp(raw.lo, raw.hi)
    origin = tuple(order_key(lo, hi, identifier) for hi, lo, identifier in raw.origin)
    return Event(raw.type, raw.lo, raw.hi, raw.id, raw.attributes, origin, raw.source, raw.space, place_of(raw.place))


def _assignment(program: Program, values: list[tuple[str, Value]]) -> Assignment:
    """Each parameter of the rule has one value at most."""
    parameters = [parameter for parameter, _ in values]
    if len(set(parameters)) < len(parameters) or not set(program.definition.parameters).issuperset(parameters):
        damaged("a parameter is not one of its rule")
    return frozenset(zip(parameters, key_of([value for _, value in values], len(values)), strict=True))
