"""The interpreter's state as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from coincide.detection.automaton.encoding import restore_instance
from coincide.detection.automaton.interpreter import Interpreter
from coincide.detection.automaton.layout import KIND, SHAPES
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.relations import (
    Configuration,
    aliases_of,
    configurations_of,
    failures_of,
    keys_of,
    notes_of,
    now_of,
    parameters_of,
    stored,
)
from coincide.detection.automaton.state import DetectorState, Instance, Match, Run, RunTimer
from coincide.detection.columns.codec import Relations, Rows
from coincide.detection.columns.store import NOTHING, picked
from coincide.detection.columns.tables import Shape
from coincide.detection.eventsets import FREE, Assignment
from coincide.detection.eventwise import Cause, Timer
from coincide.detection.keys import Key
from coincide.detection.snapshots import damaged, timer_place_of
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import table_of

KEPT = frozenset({"type", "id", "source", "space"})
"""Fields of events in runs that a snapshot has, whatever the `with` clause reads."""
EARLY = -(1 << 62)


def stored_fields(program: Program) -> frozenset[str]:
    return KEPT | program.read_later


# From objects.


def relations_of(program: Program, state: DetectorState) -> Relations:
    return _Writer(program, state).relations()


class _Writer:
    """Rows by their shapes. Timers have the places that they have; all runs with the same events stand at one node."""

    def __init__(self, program: Program, state: DetectorState) -> None:
        self.program = program
        self.state = state
        self.parameters, self.aliases = parameters_of(program), aliases_of(program)
        self.rows: dict[str, list[tuple[int, ...]]] = {shape.name: [] for shape in SHAPES}
        self.configurations: dict[Configuration, int] = {}
        self._nodes: dict[tuple[int, Place, frozenset[str]], int] = {}
        runs = [run for *_, run in self._runs()]
        events = {event.place: event for run in runs for event in run.match.events}
        self._sequence = {place: number for number, place in enumerate(sorted(events))}
        real = [events[place] for place in self._sequence if not _is_time(events[place])]
        self._events = {event.place: number for number, event in enumerate(real)}
        self.events = picked(table_of(real), np.arange(len(real)), stored_fields(program)) if real else NOTHING
        self._set_timers(runs, [event for event in events.values() if _is_time(event)])

    def _runs(self) -> Iterator[tuple[Assignment, int, Run]]:
        for assignment, instance in self.state.instances.items():
            for automaton, states in enumerate(instance.runs):
                yield from ((assignment, automaton, run) for runs in states.values() for run in runs.values())

    def _set_timers(self, runs: Iterable[Run], fired: Iterable[Event]) -> None:
        """In the order of setting, which at one due time is that of places."""
        names = {timing.timer: number for number, timing in enumerate(self.program.timings)}
        found = {timer.place: (timer.due, timer.timing) for run in runs for timer in run.timers}
        found |= {event.place: (event.hi, names[event.type]) for event in fired}
        self._timers = {place: number for number, place in enumerate(sorted(found))}
        self.rows["timers"] = [(*found[place], -1, -1, 0) for place in self._timers]
        self.rows["places"] = [(number,) for number in self._timers.values()]

    def relations(self) -> Relations:
        keys = {assignment: number for number, assignment in enumerate(self.state.instances)}
        for assignment, instance in self.state.instances.items():
            starts = [(automaton, start) for automaton, ended in enumerate(instance.ended) for start in sorted(ended)]
            self.rows["ended"] += [(keys[assignment], *start) for start in starts]
        for number, (assignment, automaton, run) in enumerate(self._runs()):
            self._run(number, keys[assignment], automaton, run)
        self.rows["configurations"] = [(automaton,) for automaton, *_ in self.configurations]
        values: dict[str, list[Any]] = {
            "keys": [self._key(assignment) for assignment in keys],
            "configurations": list(map(stored, self.configurations)),
            "places": list(self._timers),
        }
        rows = {shape.name: self._rows(shape, values.get(shape.name)) for shape in SHAPES}
        notes = notes_of(self.state.failures, EARLY, len(self._events))
        return Relations(KIND, rows, np.arange(len(self._events)), self.events, notes)

    def _key(self, assignment: Assignment) -> Key:
        values = dict(assignment)
        return tuple(values.get(parameter) for parameter in self.parameters)

    def _run(self, number: int, key: int, automaton: int, run: Run) -> None:
        named: dict[Place, set[str]] = {}
        for alias, place in run.match.aliases:
            named.setdefault(place, set()).add(alias)
        node = -1
        for event in run.match.events:
            node = self._node(node, event, frozenset(named.get(event.place, ())))
        used = sorted(self.parameters.index(parameter) for parameter, _ in run.match.bindings)
        configuration = automaton, run.choices, run.state, tuple(used)
        timers = {timer.timing: self._timers[timer.place] for timer in run.timers}
        held = (timers.get(timing, -1) for timing in range(len(self.program.timings)))
        self.rows["runs"].append((key, self.configurations.setdefault(configuration, len(self.configurations)), node, *held))
        if run.entry is not None:
            self.rows["entries"].append((number, run.entry))

    def _node(self, parent: int, event: Event, aliases: frozenset[str]) -> int:
        nodes = self.rows["nodes"]
        known = self._nodes.setdefault((parent, event.place, aliases), len(nodes))
        if known == len(nodes):
            of = (-1, self._timers[event.place]) if _is_time(event) else (self._events[event.place], -1)
            nodes.append((parent, *of, self._sequence[event.place]))
            self.rows["named"] += [(known, self.aliases.index(alias)) for alias in sorted(aliases)]
        return known

    def _rows(self, shape: Shape, values: list[Any] | None) -> Rows:
        parts = len(self.program.timings) if shape.parts else 0
        names = [name for name, *_ in shape.written(parts)]
        found, size = self.rows[shape.name], len(values) if values is not None else len(self.rows[shape.name])
        columns = dict(zip(names, np.array(found, np.int64).reshape(-1, len(names)).T, strict=True)) if names else {}
        return Rows(shape, np.arange(size), columns, size, parts, values=values)


def _is_time(event: Event) -> bool:
    """A time event of the detector itself: at a timer's place, and no detection."""
    return event.place[1] == 1 and not event.is_detection


# To objects.


def objects_of(program: Program, relations: Relations) -> DetectorState:
    """As the interpreter would hold it. Raises ValueError."""
    state = _Reader(program, relations).read()
    _expire(program, state, now_of(relations))
    return state


class _Reader:
    def __init__(self, program: Program, relations: Relations) -> None:
        self.program = program
        self.relations = relations
        self.state = DetectorState({})
        self.aliases, self.parameters = aliases_of(program), parameters_of(program)
        self.events = dict(zip(relations.refs.tolist(), relations.events.events(), strict=True))
        self.timers = self._by_number("timers")
        places = relations.rows["places"]
        given = zip(places.columns["timer"].tolist(), places.values or [], strict=True)
        self.places = {timer: timer_place_of(place) for timer, place in given}
        for timer in sorted(self.timers):  # what has set one comes before it
            self._set(timer)
        self.nodes = self._by_number("nodes")
        self.named: dict[int, list[str]] = {}
        for node, alias in zip(*(self._columns("named")), strict=True):
            self.named.setdefault(node, []).append(self.aliases[alias])
        self.matches: dict[int, Match] = {-1: Match(())}

    def _columns(self, name: str) -> list[list[int]]:
        return [column.tolist() for column in self.relations.rows[name].columns.values()]

    def _by_number(self, name: str) -> dict[int, tuple[int, ...]]:
        rows = zip(*self._columns(name), strict=True)
        return dict(zip(self.relations.rows[name].numbers.tolist(), rows, strict=True))

    def _set(self, timer: int) -> None:
        due, _, event, by, rank = self.timers[timer]
        if timer not in self.places:
            setter = self.events[event].place if event >= 0 else self.places[by]
            self.places[timer] = timer_place(due, setter, self.program.order, rank)

    def read(self) -> DetectorState:
        keys = dict(zip(self.relations.rows["keys"].numbers.tolist(), keys_of(self.program, self.relations), strict=True))
        instances: dict[int, tuple[list[list[int]], list[list[Run]]]] = {
            key: ([[] for _ in self.program.automata], [[] for _ in self.program.automata]) for key in keys
        }
        for key, automaton, start in zip(*self._columns("ended"), strict=True):
            instances[key][0][automaton].append(start)
        configurations = configurations_of(self.program, self.relations)
        entries = dict(zip(*self._columns("entries"), strict=True))
        for number, (key, configuration, node, *timers) in self._by_number("runs").items():
            found = configurations[configuration]
            assignment = self._assignment(keys[key], found[3])
            instances[key][1][found[0]].append(self._run(found, node, assignment, timers, entries.get(number)))
        for key, (ended, runs) in instances.items():
            assignment = self._assignment(keys[key], [n for n, value in enumerate(keys[key]) if value is not None])
            restore_instance(self.state, assignment, ended, runs)
        if FREE not in self.state.instances:
            self.state.instances[FREE] = Instance.fresh(len(self.program.automata))
        self.state.failures = failures_of(self.program, self.relations)
        return self.state

    def _assignment(self, key: Key, used: Iterable[int]) -> Assignment:
        found = frozenset((self.parameters[n], key[n]) for n in used)
        if any(value is None for _, value in found):
            damaged("a run has used a parameter without a value")
        return found

    def _run(self, configuration: Configuration, node: int, used: Assignment, timers: list[int], entry: int | None) -> Run:
        match = self._match(node)
        held = tuple(self._timer(timing, timer) for timing, timer in enumerate(timers) if timer >= 0)
        _, choices, state, _ = configuration
        return Run(choices, state, match.hi, entry, Match(match.events, used, match.aliases), held)

    def _match(self, node: int) -> Match:
        """The path to a node; others share its beginning, so what is found is kept."""
        missing = []
        while node not in self.matches:
            missing.append(node)
            node = self.nodes[node][0]
        for below in reversed(missing):
            match, (_, number, timer, _) = self.matches[node], self.nodes[below]
            event = self.events[number] if number >= 0 else self._time_event(timer)
            if match.events and match.events[-1].place >= event.place:
                damaged("the events of a run are not in order")
            named = {(alias, event.place) for alias in self.named.get(below, ())}
            self.matches[below] = Match((*match.events, event), FREE, match.aliases | named)
            node = below
        return self.matches[node]

    def _time_event(self, timer: int) -> Event:
        due, timing, *_ = self.timers[timer]
        return Event(self.program.timings[timing].timer, due, due, None, {}, (), place=self.places[timer])

    def _timer(self, timing: int, timer: int) -> RunTimer:
        place, due = self.places[timer], self.timers[timer][0]
        known = self.state.pending.get(place)
        if known is None:
            self.state.pending[place] = self.state.timers.add(Timer(place, (timing, due)))
        elif known.payload != (timing, due):
            damaged("two timers have one place")
        return RunTimer(timing, due, place)


def _expire(program: Program, state: DetectorState, now: int) -> None:
    """The kernel lets timers that can only fail a run wait until somebody meets it. Here they have fired."""
    interpreter = Interpreter(program, state)
    for timer in state.timers.live():
        if timer.due < now and not timer.cancelled:
            timer.cancelled = True
            interpreter.on_timer(timer, Cause(timer.place, state.timers, []))
