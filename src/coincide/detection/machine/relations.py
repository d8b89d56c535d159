"""The state of monitors as relations that are written (columns/codec.py): the state of each key by machine, and what the states
are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detection.columns.codec import Relations, Rows, decode, encode, is_dense, keys_of, renumbered
from coincide.detection.columns.store import NOTHING
from coincide.detection.columns.tables import KEYED, SHARED, Numbers, Shape, distinct
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.state import Column, Configurations, frozen, machines_of
from coincide.detection.parts import with_references
from coincide.detection.snapshots import damaged

if TYPE_CHECKING:
    from coincide.detection.machine.kernel import KernelState

KIND = "monitors"
KEYS = Shape("keys", "", parts="state", valued=True, use=KEYED)  # a part for each running machine: the number of its state
STATES = Shape("states", "program", valued=True, use=SHARED)  # its configuration
SHAPES = (KEYS, STATES)


class Numbering:
    """Numbers of states as they are written: those of tables differ from process to process."""

    def __init__(self, programs: int) -> None:
        self.of_program: list[dict[int, int]] = [{} for _ in range(programs)]
        self.programs: list[int] = []
        self.written = 0

    def add(self, program: int, state: int) -> int:
        known = self.of_program[program]
        if state not in known:
            known[state] = len(self.programs)
            self.programs.append(program)
        return known[state]


def whole(state: KernelState) -> bytes:
    """All there is. What `changes` tells next can be added to it, too: it may tell again what is here."""
    return encode(_relations(state, False))


def changes(state: KernelState, everything: bool) -> tuple[bytes, bool]:
    """What has changed since this was called last, or all; and whether it is all."""
    everything = everything or state.renewed
    relations = _relations(state, not everything)
    state.epoch += 1
    relations.epoch = state.epoch
    state.numbering.written = len(state.numbering.programs)
    state.touched, state.renewed = [], False
    return encode(relations), everything


def _relations(state: KernelState, since_last: bool) -> Relations:
    slots = distinct(np.concatenate([np.zeros(0, np.int64), *state.touched]), len(state.states)) if since_last else _used(state)
    slots = slots[slots > 0]
    in_use = state.states[slots].any(axis=1)
    live, freed = slots[in_use], slots[~in_use] if since_last else slots[:0]
    columns = {f"state.{n}": _written(state, n, state.states[live, n]) for n in range(len(state.running))}
    keys = state.slots.known.taken(live)
    rows = {"keys": Rows(KEYS, live, columns, state.slots.used, len(state.running), freed, keys)}
    known, first = state.numbering, state.numbering.written if since_last else 0
    numbers = np.arange(first, len(known.programs))
    by_number = {n: (p, s) for p, states in enumerate(known.of_program) for s, n in states.items() if n >= first}
    values = [state.tables.blocks[p].configurations[s] for p, s in (by_number[n] for n in numbers.tolist())]
    programs = np.array(known.programs[first:], np.int64)
    rows["states"] = Rows(STATES, numbers, {"program": programs}, len(known.programs), 0, numbers[:0], values)
    epoch = state.epoch
    return Relations(KIND, rows, numbers[:0], NOTHING, _running(state.running), epoch if since_last else 0, epoch)


def relations_of(columns: Sequence[Column]) -> Relations:
    """Of a state of the interpreter."""
    keys = list(dict.fromkeys(key for column in columns for key in column.configurations))
    known: dict[tuple[int, Any], int] = {}
    states = {}
    for number, column in enumerate(columns):
        own = ((key in column.configurations, column.configurations.get(key)) for key in keys)
        numbers = [known.setdefault((column.program, c), len(known) + 1) if moved else 0 for moved, c in own]
        states[f"state.{number}"] = np.array(numbers, np.int64)
    size, nothing = len(keys) + 1, np.zeros(0, np.int64)
    programs = {"program": np.array([program for program, _ in known], np.int64)}
    rows = {
        "keys": Rows(KEYS, np.arange(1, size), states, size, len(columns), nothing, keys),
        "states": Rows(STATES, np.arange(len(known)), programs, len(known), 0, nothing, [c for _, c in known]),
    }
    return Relations(KIND, rows, nothing, NOTHING, _running(columns), 0, 1)


def parts_of(group: MonitorGroup, base: bytes) -> dict[str, bytes]:
    return with_references(KIND, group.detectors, about(group), base)


def about(group: MonitorGroup) -> list[int]:
    """What tables tell of their monitors: how many they are."""
    return [len(group.detectors)]


def _used(state: KernelState) -> Numbers:
    return np.flatnonzero(state.states[: state.slots.used].any(axis=1))


def _written(state: KernelState, column: int, states: Any) -> Numbers:
    """States of a machine as they are written; that at the start is 0, others are counted from 1."""
    program = state.running[column].program
    used, index = np.unique(states, return_inverse=True)
    numbers = [state.numbering.add(program, s) + 1 if s else 0 for s in used.tolist()]
    return np.array(numbers, np.int64)[index] if len(used) else np.zeros(0, np.int64)


def _running(columns: Sequence[Column]) -> dict[str, Numbers]:
    """Which column is what: its program, and the parts of monitors that share it."""
    parts = [(monitor, number, column) for column, running in enumerate(columns) for monitor, number in running.parts]
    flat = np.array(parts, np.int64).reshape(-1, 3)
    names = zip(("monitor", "part", "column"), flat.T, strict=True)
    return {"program": np.array([column.program for column in columns], np.int64), **dict(names)}


# From bytes.


class Stored:
    """Relations that were read, of monitors with as many keys; they need not be the same."""

    def __init__(self, group: MonitorGroup, base: bytes, later: Sequence[bytes]) -> None:
        relations = decode(SHAPES, KIND, base, *later)
        self.dense = is_dense(relations, 0)
        self.relations = relations if self.dense else renumbered(relations)
        self.rows = self.relations.rows["keys"]
        self.states = relations.rows["states"]
        self.keys = keys_of(self.rows, len(group.keys))
        if type(None) in {*map(type, chain.from_iterable(self.keys))}:
            damaged("a part of a key is not a single value")
        notes = [relations.notes.get(name, np.zeros(0, np.int64)) for name in ("program", "monitor", "part", "column")]
        self.programs, self.monitors, self.parts, self.columns = notes
        if not len(self.monitors) == len(self.parts) == len(self.columns) or len(self.programs) != self.rows.parts:
            damaged("its machines are others")
        if len(self.columns) and not (self.columns.min() >= 0 and self.columns.max() < len(self.programs)):
            damaged("its machines are others")
        self.configurations = [frozen(value) for value in self.states.values or []]
        if len(self.states) and self.states.numbers[-1] != len(self.states) - 1:
            damaged("states are missing")
        for column in range(len(self.programs)):
            found = self.rows.columns[f"state.{column}"]
            known = np.append(self.states.columns["program"], -1)
            if len(found) and (found.min() < 0 or found.max() > len(self.states)):
                damaged("a machine is in no state of its own")
            if (known[found[found > 0] - 1] != self.programs[column]).any():
                damaged("a machine is in no state of its own")

    def running(self, group: MonitorGroup) -> list[Column]:
        """Every part of every monitor is in one column, of its program."""
        columns = [Column(program, []) for program in self.programs.tolist()]
        for monitor, part, column in zip(self.monitors.tolist(), self.parts.tolist(), self.columns.tolist(), strict=True):
            columns[column].parts.append((monitor, part))
        found = {part: column.program for column in columns for part in column.parts}
        if found != group.programs_of_parts or len(self.monitors) != len(found):
            damaged("its machines are others")
        return columns

    def of_part(self, monitor: int, part: int) -> tuple[int, Numbers]:
        """The column of a part of a monitor, and the numbers of the states in it."""
        (found,) = np.flatnonzero((self.monitors == monitor) & (self.parts == part)).tolist() or [-1]
        if found < 0:
            damaged("its machines are others")
        column = int(self.columns[found])
        return column, self.rows.columns[f"state.{column}"]

    def of_monitor(self, group: MonitorGroup, monitor: int, there: int) -> list[Configurations]:
        """What the interpreter would hold of a monitor, which has another number there."""
        parts: list[Configurations] = []
        for number, machine in enumerate(machines_of(group, monitor)):
            _, states = self.of_part(there, number)
            named = zip(self.keys, states.tolist(), strict=True)
            found = {key: self.configurations[state - 1] for key, state in named if state}
            if not all(map(machine.accepts, set(found.values()))):
                damaged("a machine is in no state of its own")
            parts.append({key: configuration for key, configuration in found.items() if configuration != machine.start})
        return parts


def read(state: KernelState, stored: Stored) -> None:
    """Into a state that is at the start, and has the same machines."""
    known = _local(state, stored)
    numbers = stored.rows.numbers
    if stored.dense and len(numbers) and numbers[0] < 1:
        damaged("a key has no row")
    size = max(int(stored.rows.size), 1) if stored.dense else len(numbers) + 1
    shifted = numbers if stored.dense else numbers + 1
    state.states = np.zeros((size, len(state.running)), np.uint32)
    for column in range(len(state.running)):
        state.states[shifted, column] = known[stored.rows.columns[f"state.{column}"]]
    state.slots.restore(size, stored.keys, shifted)
    state.renewed = not stored.dense
    state.epoch = stored.relations.epoch


def _local(state: KernelState, stored: Stored) -> Numbers:
    """The numbers of states in our tables, by those that were written."""
    found = [0]
    for program, configuration in zip(stored.states.columns["program"].tolist(), stored.configurations, strict=True):
        if not 0 <= program < len(state.tables.blocks):
            damaged("its machines are others")
        block = state.tables.blocks[program]
        if not block.program.transducer.accepts(configuration):
            damaged("a machine is in no state of its own")
        local = block.state(configuration)
        found.append(local)
        number = state.numbering.add(program, local) if local else -1
        if number != len(found) - 2:
            damaged("a state is there twice")
    state.numbering.written = len(state.numbering.programs)
    return np.array(found, np.int64)


def as_objects(
    group: MonitorGroup, numbers: Mapping[int, int], base: bytes, later: Sequence[bytes]
) -> dict[int, list[Configurations]]:
    """What the interpreter would hold: by monitor of a group, whose numbers there are given."""
    stored = Stored(group, base, later)
    return {here: stored.of_monitor(group, here, there) for there, here in numbers.items()}
