"""Between the kernel's state and the interpreter's, which is the one that is encoded."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from coincide.detection.automaton.encoding import restore_instance
from coincide.detection.automaton.memory import Memory, empty_pools, fresh, settle, with_slots
from coincide.detection.automaton.moments import Moments
from coincide.detection.automaton.pools import NODE, NODES, QUEUED, RUN, RUNS, SEQUENCE, TIMER, TIMERS, Pools, relink
from coincide.detection.automaton.state import DetectorState, Match, Run, RunTimer
from coincide.detection.automaton.support import key
from coincide.detection.automaton.tables import Tables
from coincide.detection.eventsets import FREE, Assignment
from coincide.detection.eventwise import Timer
from coincide.detection.keys import Key
from coincide.model.event import Event, Place
from coincide.model.table import table_of

# To objects.


def interpreted(memory: Memory) -> DetectorState:
    """The same state as the interpreter would hold."""
    settle(memory, memory.tables.cells())
    reader = _Reader(memory)
    runs: dict[int, list[Run]] = defaultdict(list)
    for one in np.flatnonzero(memory.pools.runs["config"][: memory.pools.n[RUNS]] >= 0).tolist():
        runs[int(memory.pools.runs[one]["slot"])].append(reader.run(one))
    state = DetectorState.fresh(1)
    for place, timing, due in sorted(reader.timers.values()):
        state.pending[place] = state.timers.add(Timer(place, (timing, due)))
    for slot in memory.keys.values():
        ended = int(memory.pools.slots[slot]["ended"])
        if runs[slot] or ended:
            starts = [start for start in range(ended.bit_length()) if ended >> start & 1]
            restore_instance(state, reader.assignment(slot), [starts], [runs[slot]])
    state.failures = dict(memory.failures)
    return state


class _Reader:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.moments = Moments(memory, memory.store.chunks)
        self.keys = self.moments.keys()
        self.parameters = [parameter for _, parameter in key(memory.tables.program)]
        self.timers: dict[int, tuple[Place, int, int]] = {}
        self._events = self.moments.events(memory.pools.nodes["event"][: memory.pools.n[NODES]])
        self._matches: dict[int, Match] = {-1: Match(())}

    def assignment(self, slot: int) -> Assignment:
        return frozenset(zip(self.parameters, self.keys[slot], strict=True))

    def run(self, one: int) -> Run:
        runs, nodes = self.memory.pools.runs, self.memory.pools.nodes
        choices, state = self.memory.tables.configurations[int(runs[one]["config"])]
        node = int(runs[one]["node"])
        match = self._match(node)
        bindings = self.assignment(int(runs[one]["slot"])) if runs[one]["bound"] else FREE
        timers = tuple(self._timer(t, timer) for t, timer in enumerate(self.memory.pools.held[one].tolist()) if timer >= 0)
        return Run(choices, state, int(nodes[node]["hi"]), None, Match(match.events, bindings, match.aliases), timers)

    def _match(self, node: int) -> Match:
        """The path to a node; others share its beginning, so what is found is kept."""
        nodes, missing = self.memory.pools.nodes, []
        while node not in self._matches:
            missing.append(node)
            node = int(nodes[node]["parent"])
        for below in reversed(missing):
            match, event, bits = self._matches[node], self._events[int(nodes[below]["event"])], int(nodes[below]["aliases"])
            named = {(alias, event.place) for n, alias in enumerate(self.memory.tables.aliases) if bits >> n & 1}
            self._matches[below] = Match((*match.events, event), FREE, match.aliases | named)
            node = below
        return self._matches[node]

    def _timer(self, timing: int, timer: int) -> RunTimer:
        if timer not in self.timers:
            self.timers[timer] = self.moments.timer_place(timer), timing, int(self.memory.pools.timers[timer]["due"])
        place, _, due = self.timers[timer]
        return RunTimer(timing, due, place)


# From objects.


def compiled_state(tables: Tables, state: DetectorState, columns: frozenset[str]) -> Memory:
    """A state of the kernel that goes on from an interpreter's."""
    memory = fresh(tables, columns)
    held = [(a, run) for a, i in state.instances.items() for by_key in i.runs[0].values() for run in by_key.values()]
    tables_numbers = [tables.number((run.choices, run.state)) for _, run in held]
    writer = _Writer(memory, [run for _, run in held])
    keys = {a: _key(tables, a) for a, i in state.instances.items() if i.ended[0] or i.runs[0]}
    cells = tables.cells()  # before slots are made: they have room for all configurations
    slots = dict(zip(keys, with_slots(memory, list(keys.values())).tolist(), strict=True))
    rows = [writer.run(run, config, slots[a]) for (a, run), config in zip(held, tables_numbers, strict=True)]
    memory.pools = writer.pools(rows)
    for assignment, slot in slots.items():
        memory.pools.slots[slot]["ended"] = sum(1 << start for start in state.instances[assignment].ended[0])
    memory.failures = dict(state.failures)
    relink(memory.pools, cells)
    return memory


def _key(tables: Tables, assignment: Assignment) -> Key:
    values = dict(assignment)
    return tuple(values[parameter] for _, parameter in key(tables.program))


class _Writer:
    def __init__(self, memory: Memory, runs: list[Run]) -> None:
        self.memory = memory
        events = {event.place: event for run in runs for event in run.match.events}
        ordered = [events[place] for place in sorted(events)]
        self._sequence = {event.place: number for number, event in enumerate(ordered)}
        real = [event for event in ordered if not _is_time(event)]
        self._numbers = {event.place: number for number, event in enumerate(real)}
        if real:
            memory.store.chunks = [table_of(real)]
        self._set_timers(runs, [event for event in ordered if _is_time(event)])
        self._nodes: dict[tuple[int, Place, int], int] = {}
        self._rows: list[tuple[int, ...]] = []

    def _set_timers(self, runs: list[Run], fired: list[Event]) -> None:
        """In the order of setting, which at one due time is that of places."""
        names = {timing.timer: number for number, timing in enumerate(self.memory.tables.program.timings)}
        found = {timer.place: (timer.due, timer.timing) for run in runs for timer in run.timers}
        found |= {event.place: (event.hi, names[event.type]) for event in fired}
        self._timers = {place: number for number, place in enumerate(sorted(found))}
        self._dues = [found[place] for place in self._timers]
        self.memory.timer_places = {number: place for place, number in self._timers.items()}

    def run(self, run: Run, config: int, slot: int) -> tuple[tuple[int, ...], list[int]]:
        named: dict[Place, int] = defaultdict(int)
        for alias, place in run.match.aliases:
            named[place] |= 1 << self.memory.tables.aliases.index(alias)
        node = -1
        for event in run.match.events:
            node = self._node(node, event, named[event.place])
        timers = [-1] * self.memory.timings
        for timer in run.timers:
            timers[timer.timing] = self._timers[timer.place]
        return (config, slot, node, int(run.match.bindings != FREE), 0, -1, -1, -1), timers

    def _node(self, parent: int, event: Event, aliases: int) -> int:
        known = self._nodes.setdefault((parent, event.place, aliases), len(self._rows))
        if known == len(self._rows):
            lo, hi, depth = (self._rows[parent][i] for i in (3, 4, 6)) if parent >= 0 else (event.lo, event.hi, -1)
            number = -1 - self._timers[event.place] if _is_time(event) else self._numbers[event.place]
            stamp = min(lo, event.lo), max(hi, event.hi)
            self._rows.append((parent, number, self._sequence[event.place], *stamp, aliases, depth + 1, -1, -1, -1, 0))
        return known

    def pools(self, runs: list[tuple[tuple[int, ...], list[int]]]) -> Pools:
        timings, old = self.memory.timings, self.memory.pools
        n = empty_pools(timings).n
        n[[RUNS, NODES, TIMERS, SEQUENCE]] = len(runs), len(self._rows), len(self._dues), len(self._sequence)
        return old._replace(
            runs=np.array([row for row, _ in runs], RUN),
            held=np.array([timers for _, timers in runs], np.int64).reshape(len(runs), timings),
            nodes=np.array(self._rows, NODE),
            timers=np.array([(due, timing, -1, -1) for due, timing in self._dues], TIMER),
            queue=np.zeros(len(runs) * timings, QUEUED),
            n=n,
        )


def _is_time(event: Event) -> bool:
    """A time event of the detector itself: at a timer's place, and no detection."""
    return event.place[1] == 1 and not event.is_detection
