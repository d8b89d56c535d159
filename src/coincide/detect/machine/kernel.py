"""Monitors over columns: tests by class of row, machines by table, keys by slot, the loop compiled.

Per row and monitor that takes an interest in it, the work is one look-up; a key's state is one small number a machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detect.base import Clock
from coincide.detect.machine import emission
from coincide.detect.machine.interpreter import Interpreter, report_endless
from coincide.detect.machine.keys import key_codes
from coincide.detect.machine.program import Key, MonitorGroup, key_reader
from coincide.detect.machine.state import Column
from coincide.detect.machine.tables import Tables
from coincide.expr.classes import Classes, Classifier
from coincide.expr.vector import holds
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.table import EventTable

MAXIMUM_STATES = 1 << 20
"""Cells' rows in all tables together; beyond, tables are begun anew with the states that are in use."""


@dataclass
class KernelState:
    """A row of `states` for each key that has been seen and is not at the start; `running` says which column is what."""

    tables: Tables
    running: list[Column]
    states: npt.NDArray[np.int32]
    slots: dict[Key, int] = field(default_factory=dict)
    swept: int = 1024  # number of slots after which keys that are back at the start are looked for

    def columns(self) -> list[Column]:
        """What the interpreter would hold."""
        keys = list(self.slots)
        out = []
        for number, column in enumerate(self.running):
            known = self.tables.blocks[column.program].configurations
            states = self.states[: len(keys), number].tolist()
            configurations = {keys[slot]: known[state] for slot, state in enumerate(states) if state}
            out.append(Column(column.program, column.monitors, configurations))
        return out

    def reserve(self, keys: list[Key]) -> npt.NDArray[np.int64]:
        """The slots of these keys, made where there are none."""
        slots = np.array([self.slots.setdefault(key, len(self.slots)) for key in keys], np.int64)
        if len(self.slots) > len(self.states):
            room = max(len(self.slots), 2 * len(self.states)) - len(self.states)
            self.states = np.concatenate((self.states, np.zeros((room, len(self.running)), np.int32)))
        return slots

    def sweep(self) -> None:
        """Forget keys that are back at the start, once there are many."""
        if len(self.slots) < self.swept:
            return
        used = np.flatnonzero(self.states[: len(self.slots)].any(axis=1))
        keys = list(self.slots)
        self.slots = {keys[slot]: number for number, slot in enumerate(used.tolist())}
        self.states = self.states[used]
        self.swept = max(1024, 2 * len(used))


class Kernel:
    """Steps a group of monitors."""

    def __init__(self, group: MonitorGroup) -> None:
        self.group = group
        self._classifier = Classifier(group.tests)
        self._interests: dict[tuple[int, ...], list[tuple[int, int]]] = {}  # class → (program, letter) where not empty
        self._tables = Tables(group.programs)

    def state(self, columns: list[Column]) -> KernelState:
        """A state that goes on from an interpreter's."""
        state = KernelState(self._tables, columns, np.zeros((1, len(columns)), np.int32))
        for number, column in enumerate(columns):
            block = self._tables.blocks[column.program]
            slots = state.reserve(list(column.configurations))
            state.states[slots, number] = [block.state(c) for c in column.configurations.values()]
        return state

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        if not len(batch):
            return state, EMPTY
        table = batch.table
        if table.foreign_places is not None:
            return self._interpreted(state, batch, clock)
        state = self._within_limit(state)
        classes = self._classify(table)
        slots = self._slots(state, table)
        made = _run(state, classes.of_row, slots, self._entries(state, classes))
        state.sweep()
        self._report_endless(state, table, made)
        return state, emission.detections(self.group, state.running, state.tables, table, made)

    def _interpreted(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        """Places with timers in them are no plain numbers: detections of other languages, few as a rule."""
        columns, made = Interpreter(self.group).step(state.columns(), batch, clock)
        return self.state(columns), made

    def _within_limit(self, state: KernelState) -> KernelState:
        if sum(len(block.configurations) for block in state.tables.blocks) < MAXIMUM_STATES:
            return state
        self._tables = Tables(self.group.programs)
        return self.state(state.columns())

    def _classify(self, table: EventTable) -> Classes:
        """Classes, with the (program, letter) pairs of interest of those that are new."""
        from coincide.detect.machine.rows import TableRows

        detections = (np.asarray(table.generation > 0, np.int64), 2)
        classes = self._classifier.classify(TableRows(table), [detections])
        new = [number for number, key in enumerate(classes.keys) if key not in self._interests]
        if new:
            self._learn(TableRows(table.take(classes.representatives[new])), [classes.keys[n] for n in new])
        return classes

    def _learn(self, rows: Any, keys: list[tuple[int, ...]]) -> None:
        truths = [holds(test, rows) for test in self.group.tests]
        types, detections = rows.types(), [key[0] == 1 for key in keys]
        interests: list[list[tuple[int, int]]] = [[] for _ in keys]
        for number, program in enumerate(self.group.programs):
            held = np.array([truths[test] for test in program.tests], np.bool_).reshape(len(program.tests), len(keys))
            for row in np.flatnonzero(held.any(axis=0)).tolist():
                if not detections[row] or types[row] in program.mentions:
                    letter = sum(1 << bit for bit in np.flatnonzero(held[:, row]).tolist())
                    interests[row].append((number, letter))
        self._interests.update(zip(keys, interests, strict=True))

    def _entries(self, state: KernelState, classes: Classes) -> Entries:
        """For each class of the batch, which columns see which letter."""
        columns_of: dict[int, list[int]] = {}
        for number, column in enumerate(state.running):
            columns_of.setdefault(column.program, []).append(number)
        starts, columns, letters = [0], [], []
        for key in classes.keys:
            for program, letter in self._interests[key]:
                known = state.tables.known(program, letter)
                for column_number in columns_of.get(program, ()):
                    columns.append(column_number)
                    letters.append(known)
            starts.append(len(columns))
        return Entries(*(np.array(a, np.int64) for a in (starts, columns, letters)))

    def _slots(self, state: KernelState, table: EventTable) -> npt.NDArray[np.int64]:
        """The slot of each row's key; -1: a key is null."""
        if not self.group.keys:
            state.reserve([()])
            return np.zeros(len(table), np.int64)
        codes, keys = key_codes([table.column(key) for key in self.group.keys])
        return np.append(state.reserve(keys), -1)[codes]

    def _report_endless(self, state: KernelState, table: EventTable, made: emission.Made) -> None:
        for row, column, out in zip(made.rows, made.columns, made.outs, strict=True) if self._may_end(state) else ():
            running = state.running[column]
            if state.tables.blocks[running.program].outs.get(None) == out:
                event = table.take(np.array([row])).events()[0]
                report_endless(self.group, running.monitors, event, key_reader(self.group.keys)(event) or ())

    def _may_end(self, state: KernelState) -> bool:
        return any(None in block.outs for block in state.tables.blocks)


@dataclass(frozen=True, eq=False)
class Entries:
    """Of class c: those from starts[c] to starts[c+1], each a column and the letter that it sees."""

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    letters: npt.NDArray[np.int64]


def _run(state: KernelState, classes: Any, slots: Any, entries: Entries) -> emission.Made:
    """The loop, with what it needs seen to whenever it stops."""
    from coincide.detect.machine import loop

    programs = np.array([column.program for column in state.running], np.int64)
    made_rows, made_columns, made_outs = (np.empty(1 + len(classes) // 8, np.int64) for _ in range(3))
    tables, row, item, count = state.tables, 0, -1, 0
    while True:
        why, row, item, count = loop.run(
            classes, slots, row, item,
            entries.starts, entries.columns, entries.letters,
            state.states, programs, tables.offsets, tables.widths, tables.delta, tables.outs,
            made_rows, made_columns, made_outs, count,
        )  # fmt: skip
        if why == loop.DONE:
            return emission.Made(made_rows[:count], made_columns[:count], made_outs[:count])
        if why == loop.FULL:
            made_rows, made_columns, made_outs = (np.resize(a, 2 * len(a)) for a in (made_rows, made_columns, made_outs))
        else:
            column = int(entries.columns[item])
            tables.fill(int(programs[column]), int(state.states[slots[row], column]))
