"""The state as bytes: versioned, readable by every tier. Events stand in one table; runs refer to them by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from coincide.detection.automaton.program import Program
from coincide.detection.automaton.sets import Assignment
from coincide.detection.automaton.state import DetectorState, Instance, Match, Run, RunTimer
from coincide.detection.eventwise import Timer
from coincide.detection.keys import key_part, key_value
from coincide.model.event import Event, Place, Value
from coincide.model.space import Space
from coincide.model.stamp import order_key

VERSION = 1


def encode(program: Program, state: DetectorState) -> bytes:
    writer = _Writer(program)
    instances = [writer.instance(assignment, instance) for assignment, instance in state.instances.items()]
    timers = [[timer.place, *timer.payload] for timer in state.timers.live()]
    failures = [[*key, count] for key, count in state.failures.items()]
    return msgspec.msgpack.encode([VERSION, writer.events, timers, instances, failures])


class _Writer:
    def __init__(self, program: Program) -> None:
        self.read = program.read_later
        self.events: list[Any] = []
        self._numbers: dict[Place, int] = {}

    def instance(self, assignment: Assignment, instance: Instance) -> list[Any]:
        runs = [[self._run(run) for by_key in states.values() for run in by_key.values()] for states in instance.runs]
        return [_values(assignment), [sorted(ended) for ended in instance.ended], runs]

    def _run(self, run: Run) -> list[Any]:
        match = run.match
        state = sorted(sorted(group) for group in run.state)
        events = [self._event(event) for event in match.events]
        aliases = [[alias, self._numbers[place]] for alias, place in sorted(match.aliases)]
        timers = [[t.timing, t.due, t.place] for t in run.timers]
        return [sorted(run.choices), state, run.prev, run.entry, events, _values(match.bindings), aliases, timers]

    def _event(self, event: Event) -> int:
        if event.place not in self._numbers:
            self._numbers[event.place] = len(self.events)
            self.events.append(self._written(event))
        return self._numbers[event.place]

    def _written(self, event: Event) -> list[Any]:
        """Only the attributes that the `with` clause can still read."""
        attributes = {name: value for name, value in event.attributes.items() if name in self.read}
        origin = [[hi, lo, identifier] for hi, lo, _, _, identifier in event.origin]
        return [event.type, event.lo, event.hi, event.id, attributes, origin, event.source, event.space, event.place]


def decode(program: Program, data: bytes) -> DetectorState:
    version, *rest = msgspec.msgpack.decode(data)
    if version != VERSION:
        raise ValueError(f"state of version {version}; this release reads version {VERSION}")
    events, timers, instances, failures = rest
    table = [_read_event(raw) for raw in events]
    state = DetectorState({})
    for place, timing, due in timers:
        timer = state.timers.add(Timer(_frozen(place), (timing, due)))
        state.pending[timer.place] = timer
    for values, ended, runs in instances:
        restore_instance(state, _assignment(values), ended, [[_read_run(raw, table) for raw in some] for some in runs])
    state.failures = {(automaton, start): count for automaton, start, count in failures}
    return state


def restore_instance(state: DetectorState, assignment: Assignment, ended: list[list[int]], runs: list[list[Run]]) -> None:
    state.instances[assignment] = Instance([set(some) for some in ended], [{} for _ in runs])
    for pair in assignment:
        state.by_value.setdefault(pair, set()).add(assignment)
    for automaton, some in enumerate(runs):
        for run in some:
            state.add(assignment, automaton, run)


def _read_run(raw: list[Any], table: list[Event]) -> Run:
    choices, state, prev, entry, numbers, bindings, aliases, timers = raw
    events = tuple(table[number] for number in numbers)
    named = frozenset((alias, table[number].place) for alias, number in aliases)
    return Run(
        frozenset((number, side) for number, side in choices),
        frozenset(frozenset((strong, p) for strong, p in group) for group in state),
        prev,
        entry,
        Match(events, _assignment(bindings), named),
        tuple(RunTimer(timing, due, _frozen(place)) for timing, due, place in timers),
    )


def _read_event(raw: list[Any]) -> Event:
    kind, lo, hi, identifier, attributes, origin, source, space, place = raw
    keys = tuple(order_key(some_lo, some_hi, some_id) for some_hi, some_lo, some_id in origin)
    where = msgspec.convert(space, Space | None)
    return Event(kind, lo, hi, identifier, attributes, keys, source, where, _frozen(place))


def _values(assignment: Assignment) -> list[tuple[str, Value]]:
    return sorted((parameter, key_value(part)) for parameter, part in assignment)


def _assignment(values: Iterable[tuple[str, Value]]) -> Assignment:
    return frozenset((parameter, key_part(value)) for parameter, value in values)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
