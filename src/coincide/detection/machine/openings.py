"""Monitors that begin in the middle of a run, where nobody knows what they have come to: from all states at once.

A machine is in one of few states, and all that it does next follows from that: it keeps no events and no values. So a range of
events is a function, from its state before to its state after, and functions can be composed. Runs that have come to one state go
on as one, so that soon there are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise

import msgspec

from coincide.detection.base import Clock, Ends, OpenPlan, State, compared
from coincide.detection.keys import Key
from coincide.detection.machine.plan import MonitorPlan
from coincide.detection.machine.program import MonitorGroup, Program
from coincide.detection.machine.state import Column, frozen
from coincide.detection.machine.transducer import ENDED, Configuration
from coincide.expr.guards import guards
from coincide.expr.quantities import counted
from coincide.model.batch import EventBatch, merged

STEPS = 20_000
"""To find all states of a machine, so many steps are tried."""
CHUNK = 256
"""After so many events, then twice as many, it is looked which runs have come to one state."""
SOON, LIVE = 4_096, 8
"""If after so many events more runs than these are left of a machine, only that from its start goes on."""
ALONE: Key = ()


def states_of(group: MonitorGroup, program: Program) -> tuple[Configuration, ...] | str:
    """All that a machine may come to, its start first; or why they are not known."""
    letters = _letters(group, program)
    machine = program.transducer
    found = {machine.start: None}
    waiting = [machine.start]
    if letters is None:
        return "too many of its tests may hold on one event"
    for configuration in waiting:
        for letter in letters:
            after, _ = machine.step(configuration, letter)
            if after not in found:
                found[after] = None
                waiting.append(after)
        if len(found) * len(letters) > STEPS:
            return f"it has more than {counted(STEPS // len(letters), 'state')}"
    return tuple(found) if ENDED not in found else "its internal transitions may never settle"


def _letters(group: MonitorGroup, program: Program) -> set[int] | None:
    """What it may see of one event. Tests that ask for different types do not hold together."""
    asked = [guards(group.tests[test]).get("type") for test in program.tests]
    types = frozenset().union(*(types for types in asked if types is not None))
    found: set[int] = set()
    for kind in (*types, None):
        bits = [1 << bit for bit, types in enumerate(asked) if types is None or kind in types]
        if 1 << len(bits) > STEPS:
            return None
        found.update(sum(some) for size in range(1, len(bits) + 1) for some in combinations(bits, size))
    return found


def names_of(group: MonitorGroup) -> list[list[str]]:
    """Of the monitors that run each machine."""
    found: list[dict[str, None]] = [{} for _ in group.programs]
    for (monitor, _), program in group.programs_of_parts.items():
        found[program][group.detectors[monitor].name] = None
    return [[*names] for names in found]


def described(group: MonitorGroup) -> Iterator[str]:
    """How machines begin in the middle of a run, in words."""
    for program, names in zip(group.programs, names_of(group), strict=True):
        states = states_of(group, program)
        if isinstance(states, str):
            yield compared(names, states)
        else:
            yield f"{', '.join(names)}: begins in each of its {counted(len(states), 'state')}, until these have come to one"


Told = tuple[int, frozenset[bytes], EventBatch]


@dataclass
class Opened:
    """The columns that run, each with the states at the beginning from which it has come, as bytes. `assumed` is a beginning by
    machine: what came of it is what others see. `told` are detections of runs that others would have been different from."""

    columns: list[Column]
    starts: list[frozenset[bytes]]
    assumed: list[bytes]
    told: list[Told] = field(default_factory=list)
    seen: int = 0


@dataclass(frozen=True)
class OpenMonitors(MonitorPlan, OpenPlan):
    """Monitors without a key as they run in a range. Where others read what they detect (`feeds`), that is what came of one
    beginning; if not, it is kept apart, by beginnings."""

    feeds: bool = False

    @cached_property
    def _states(self) -> list[tuple[Configuration, ...]]:
        found = [states_of(self.group, program) for program in self.group.programs]
        return [states if isinstance(states, tuple) else () for states in found]

    @property
    def is_complete(self) -> bool:
        return all(self._states)

    @cached_property
    def _at_start(self) -> list[Configuration]:
        return [program.transducer.start for program in self.group.programs]

    def decode(self, parts: Mapping[str, bytes]) -> State:
        """From all states: what is known of them is not part of a snapshot."""
        return self._begun(self._states, self._at_start)

    def encode(self, state: State) -> dict[str, bytes]:
        return {}

    def begun(self) -> State:
        return self._begun([()] * len(self._at_start), self._at_start)

    def assuming(self, assumed: Sequence[bytes]) -> State:
        return self._begun(self._states, [frozen(msgspec.msgpack.decode(start)) for start in assumed])

    def _begun(self, states: Sequence[Sequence[Configuration]], assumed: Sequence[Configuration]) -> Opened:
        columns, starts = [], []
        for number, (own, start) in enumerate(zip(states, assumed, strict=True)):
            for configuration in dict.fromkeys((*own, start)):
                columns.append(self._column(number, configuration))
                starts.append(frozenset((_bytes(configuration),)))
        return Opened(columns, starts, [_bytes(start) for start in assumed])

    def _column(self, program: int, configuration: Configuration) -> Column:
        at_start = configuration == self.group.programs[program].transducer.start
        return Column(program, self._parts[program], {} if at_start else {ALONE: configuration})

    @cached_property
    def _parts(self) -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = [[] for _ in self.group.programs]
        for part, program in self.group.programs_of_parts.items():
            found[program].append(part)
        return found

    def _configuration(self, column: Column) -> Configuration:
        return column.configurations.get(ALONE, self.group.programs[column.program].transducer.start)

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        """What is certain, or assumed."""
        made, size = [], CHUNK
        while len(batch):
            now, batch = batch.split(size if self._open(state) else len(batch))
            size *= 2
            groups = self._groups(state)
            state.columns, [found, *others] = self._runner.step_apart(state.columns, now, groups)
            made.append(found)
            for (number,), own in zip(groups[1:], others, strict=True):
                if len(own):
                    state.told.append((state.columns[number].program, state.starts[number], own))
            state.seen += len(now)
            self._unite(state)
        return state, merged(made)

    def _open(self, state: Opened) -> bool:
        return len(state.columns) > len(self.group.programs)

    def _groups(self, state: Opened) -> list[list[int]]:
        """The columns whose detections are shown; then each of those whose detections are told."""
        programs = [column.program for column in state.columns]
        if self.feeds:
            return [[n for n, program in enumerate(programs) if state.assumed[program] in state.starts[n]]]
        shared = {program for program, other in pairwise(programs) if program == other}
        return [[n for n, p in enumerate(programs) if p not in shared], *([n] for n, p in enumerate(programs) if p in shared)]

    def _unite(self, state: Opened) -> None:
        """Runs of one machine that are in one state are one; of many that are not, one is left."""
        if not self._open(state):
            return
        united: dict[tuple[int, Configuration], frozenset[bytes]] = {}
        for column, starts in zip(state.columns, state.starts, strict=True):
            place = column.program, self._configuration(column)
            united[place] = united.get(place, frozenset()) | starts
        live = [0] * len(self.group.programs)
        for program, _ in united:
            live[program] += 1
        likely = {
            place: starts
            for place, starts in united.items()
            if state.seen < SOON or live[place[0]] <= LIVE or state.assumed[place[0]] in starts
        }
        state.columns = [self._column(*place) for place in likely]
        state.starts = list(likely.values())

    def begin(self, state: Opened) -> Opened:
        """What there is now is the beginning."""
        assumed: list[Configuration] = []
        states: list[list[Configuration]] = [[] for _ in self.group.programs]
        for column, starts in zip(state.columns, state.starts, strict=True):
            states[column.program].append(self._configuration(column))
            if state.assumed[column.program] in starts:
                assumed.append(self._configuration(column))
        return replace(self._begun(states, assumed), seen=state.seen)

    def ends(self, state: Opened) -> list[Ends]:
        """Machine by machine."""
        found: list[dict[bytes, bytes]] = [{} for _ in self.group.programs]
        for column, starts in zip(state.columns, state.starts, strict=True):
            found[column.program].update(dict.fromkeys(sorted(starts), _bytes(self._configuration(column))))
        names = map(", ".join, names_of(self.group))
        return [Ends(*one, self.feeds) for one in zip(names, found, state.assumed, strict=True)]

    def told(self, state: Opened) -> list[Told]:
        return state.told


def _bytes(configuration: Configuration) -> bytes:
    return msgspec.msgpack.encode(configuration)
