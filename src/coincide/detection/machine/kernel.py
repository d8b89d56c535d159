"""Monitors over columns: tests by class of row, machines by table, keys by slot, the loop compiled.

Per row and monitor that takes an interest in it, the work is one look-up; a key's state is one small number a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Changes, Clock
from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.tables import distinct, longer
from coincide.detection.keys import Key, key_reader
from coincide.detection.machine import emission
from coincide.detection.machine.interests import Interests
from coincide.detection.machine.interpreter import Interpreter, report_endless
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.slots import Slots
from coincide.detection.machine.state import Column, decode
from coincide.detection.machine.tables import IDLE, Tables
from coincide.detection.parts import changes_of_several, own_tables
from coincide.expr.classes import Classes, Classifier
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.machine.relations import Numbering

MAXIMUM_STATES = 1 << 20
"""Cells' rows in all tables together; beyond, tables are begun anew with the states that are in use."""

MANY_KEYS = 1 << 16


@dataclass
class KernelState:
    """A row of `states` for each key that has been seen and is not at the start. Row 0 is for events whose key is null:
    what they do there counts for nothing. `running` says which column is what."""

    interests: Interests
    running: list[Column]
    states: npt.NDArray[np.uint32]
    slots: Slots = field(default_factory=Slots)
    swept: int = MANY_KEYS  # number of keys at which those that are back at the start are looked for
    touched: list[Any] = field(default_factory=list)  # slots whose states may have changed since they were written last
    renewed: bool = True  # may all have changed?
    epoch: int = 1

    @cached_property
    def numbering(self) -> Numbering:
        from coincide.detection.machine.relations import Numbering

        return Numbering(len(self.tables.blocks))

    @property
    def tables(self) -> Tables:
        return self.interests.tables

    def columns(self) -> list[Column]:
        """What the interpreter would hold."""
        out, slots = [], self.slots.known.numbers()
        keys = self.slots.known.taken(slots)
        for number, column in enumerate(self.running):
            known = self.tables.blocks[column.program].configurations
            states = self.states[slots, number].tolist()
            configurations = {key: known[state] for key, state in zip(keys, states, strict=True) if state}
            out.append(Column(column.program, column.parts, configurations))
        return out

    def reserve(self, keys: Sequence[Key]) -> npt.NDArray[np.uint32]:
        """The slots of these keys, made where there are none."""
        slots = self.slots.of(keys)
        self.states = longer(self.states, self.slots.used)
        return slots

    def touch(self, keys: Keys) -> None:
        """The keys of a batch, if somebody wants to know."""
        if not self.renewed:
            self.touched.append(keys.slots[distinct(keys.of_row.astype(np.int64), len(keys.slots))].astype(np.int64))

    def sweep(self) -> None:
        """Forget what events without a key did and, once there are many, keys that are back at the start."""
        self.states[0] = 0
        if len(self.slots) < self.swept:
            return
        moved = np.flatnonzero(np.any(self.states, axis=1))
        self.states = self.states[np.append(0, moved)]
        self.slots.keep(moved)
        self.touched, self.renewed = [], True
        self.swept = max(MANY_KEYS, 2 * len(moved))


class Kernel:
    """Steps a group of monitors."""

    def __init__(self, group: MonitorGroup) -> None:
        self.group = group
        self._classifier = Classifier(group.tests)
        self._begin()

    def _begin(self) -> None:
        """Tables without anything in them. They are a cache: states say which tables they are about."""
        self._tables = Tables(self.group.programs)
        self._interests = Interests(self.group, self._tables)

    def state(self, columns: list[Column]) -> KernelState:
        """A state that goes on from an interpreter's."""
        state = KernelState(self._interests, columns, np.zeros((1, len(columns)), np.uint32))
        for number, column in enumerate(columns):
            block = self._tables.blocks[column.program]
            slots = state.reserve(list(column.configurations))
            state.states[slots, number] = [block.state(c) for c in column.configurations.values()]
        return state

    def encode(self, state: KernelState) -> dict[str, bytes]:
        from coincide.detection.machine.relations import parts_of, whole

        return parts_of(self.group, whole(state))

    def changes(self, state: KernelState, everything: bool) -> Changes:
        from coincide.detection.machine.relations import KIND, about, changes

        return changes_of_several(KIND, self.group.detectors, about(self.group), *changes(state, everything))

    def decode(self, parts: Mapping[str, bytes]) -> KernelState:
        """Tables of just these monitors are taken as they are."""
        from coincide.detection.machine.relations import KIND, Stored, about, read

        tables = own_tables(KIND, self.group.detectors, about(self.group), parts)
        if tables is None:
            return self.state(decode(self.group, parts))
        stored = Stored(self.group, *tables)
        running = stored.running(self.group)
        state = KernelState(self._interests, running, np.zeros((1, len(running)), np.uint32))
        read(state, stored)
        return state

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        if not len(batch):
            return state, EMPTY
        table = batch.table
        if table.foreign_places is not None:
            return self._interpreted(state, batch, clock)
        state = self._within_limit(state)
        made = self._run(state, table)
        return state, emission.detections(self.group, state.running, state.tables, table, made)

    def step_apart(
        self, columns: list[Column], batch: EventBatch, groups: Sequence[Sequence[int]]
    ) -> tuple[list[Column], list[EventBatch]]:
        """From a state of the interpreter to the next one, with the detections of some columns and those of others."""
        table = batch.table
        if table.foreign_places is not None:
            return Interpreter(self.group).step_apart(columns, batch, groups)
        state = self._within_limit(self.state(columns))
        made = self._run(state, table)
        found = [made.where(np.isin(made.columns, group)) if len(group) < len(columns) else made for group in groups]
        return state.columns(), [emission.detections(self.group, state.running, state.tables, table, own) for own in found]

    def _run(self, state: KernelState, table: EventTable) -> emission.Made:
        classes = self._classify(table)
        entries, keys = self._entries(state, classes), self._slots(state, table)
        run = _run_one if len(state.running) == 1 else _run
        made = run(state, indices(classes.of_row, len(classes.numbers) - 1), entries, keys)
        if keys.any_null:
            made = made.where(keys.slots[keys.of_row[made.rows]] > 0)
        state.touch(keys)
        state.sweep()
        self._report_endless(state, table, made)
        return made

    def _interpreted(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        """Places with timers in them are not plain numbers: detections of other languages, few as a rule."""
        columns, made = Interpreter(self.group).step(state.columns(), batch, clock)
        return self.state(columns), made

    def _within_limit(self, state: KernelState) -> KernelState:
        if state.tables.size() < MAXIMUM_STATES:
            return state
        self._begin()
        return self.state(state.columns())

    def _classify(self, table: EventTable) -> Classes:
        detections = None if table.given_places is None else np.asarray(table.generation > 0, np.int32)
        return self._classifier.classify(TableRows(table), detections)

    def _entries(self, state: KernelState, classes: Classes) -> Entries:
        """For each code of the batch, which columns see which letter."""
        interests, numbers = state.interests, state.interests.of(classes)
        columns_of: list[list[int]] = [[] for _ in self.group.programs]
        for number, column in enumerate(state.running):
            columns_of[column.program].append(number)
        if all(len(columns) == 1 for columns in columns_of):
            first = np.array([columns[0] for columns in columns_of], np.uint32)
            columns, letters, starts = first[interests.programs], interests.letters, interests.starts
        else:
            columns, letters, starts = _spread(interests, columns_of)
        starts, ends = starts[numbers], starts[numbers + 1]
        return Entries(starts[classes.numbers], ends[classes.numbers], columns, letters.astype(np.uint32))

    def _slots(self, state: KernelState, table: EventTable) -> Keys:
        if not self.group.keys:
            return Keys(np.zeros(len(table), np.uint32), state.reserve([()]), False)
        codes, keys = key_codes([table.column(key) for key in self.group.keys])
        of_row = indices(codes, len(keys))
        return Keys(of_row, np.append(state.reserve(keys), np.uint32(0)), bool(len(codes) and codes.min() < 0))

    def _report_endless(self, state: KernelState, table: EventTable, made: emission.Made) -> None:
        for row, column, out in zip(made.rows, made.columns, made.outs, strict=True) if self._may_end(state) else ():
            running = state.running[column]
            if state.tables.blocks[running.program].outs.get(None) == out:
                event = table.take(np.array([row])).events()[0]
                report_endless(self.group, running.parts, event, key_reader(self.group.keys)(event) or ())

    def _may_end(self, state: KernelState) -> bool:
        return any(None in block.outs for block in state.tables.blocks)


@dataclass(frozen=True, eq=False)
class Entries:
    """A row of code c: the entries from starts[c] to ends[c], each a column and the letter that it sees."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    columns: npt.NDArray[np.uint32]
    letters: npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Keys:
    """The number of each row's key, and the slot of each number."""

    of_row: npt.NDArray[np.uint32]
    slots: npt.NDArray[np.uint32]
    any_null: bool


def _spread(interests: Interests, columns_of: list[list[int]]) -> tuple[Any, Any, Any]:
    """Interests of programs as those of columns, where a program runs in none or in several."""
    sizes = np.array([len(columns) for columns in columns_of])[interests.programs]
    columns = [column for program in interests.programs.tolist() for column in columns_of[program]]
    starts = np.concatenate(([0], np.cumsum(sizes)))[interests.starts]
    return np.array(columns, np.uint32), np.repeat(interests.letters, sizes), starts


def indices(codes: Any, null: int) -> npt.NDArray[np.uint32]:
    """Codes as indices; -1 (null) is the last one."""
    if len(codes) and codes.min() < 0:
        codes = np.where(codes < 0, null, codes)
    return np.asarray(codes.astype(np.int32, copy=False).view(np.uint32))


def _run(state: KernelState, codes: Any, entries: Entries, keys: Keys) -> emission.Made:
    """The loop, with what it needs seen to whenever it stops."""
    from coincide.detection.machine import loop

    order = _by_key(keys)
    codes, of_row = codes[order], keys.of_row[order]
    programs = np.array([column.program for column in state.running], np.uint32)
    made_rows, made_columns, made_outs = (np.empty(1 + len(codes) // 8, np.int64) for _ in range(3))
    tables, row, item, count = state.tables, 0, -1, 0
    while True:
        why, row, item, count = loop.run(
            codes, of_row, keys.slots, row, item,
            entries.starts, entries.ends, entries.columns, entries.letters,
            state.states, programs, tables.offsets, tables.widths, tables.cells,
            made_rows, made_columns, made_outs, count,
        )  # fmt: skip
        if why == loop.DONE:
            return emission.Made(order[made_rows[:count]], made_columns[:count], made_outs[:count])
        if why == loop.FULL:
            made_rows, made_columns, made_outs = (longer(a, len(a) + 1) for a in (made_rows, made_columns, made_outs))
        else:
            column = int(entries.columns[item])
            tables.fill(int(programs[column]), int(state.states[keys.slots[of_row[row]], column]))


def _by_key(keys: Keys) -> npt.NDArray[np.int64]:
    """Rows key by key, each key's in their order: with many machines, the states of one key then stay at hand."""
    few = len(keys.slots) <= 1 << 16
    return np.argsort(keys.of_row.astype(np.uint16) if few else keys.of_row, kind="stable")  # radix sort for 16 bits


def _run_one(state: KernelState, codes: Any, entries: Entries, keys: Keys) -> emission.Made:
    """The same for a single column."""
    from coincide.detection.machine import loop

    program, states = state.running[0].program, state.states.reshape(-1)
    block, tables = state.tables.blocks[program], state.tables
    letters = np.where(entries.ends > entries.starts, np.append(entries.letters, IDLE)[entries.starts], IDLE).astype(np.uint32)
    made_rows, made_outs = (np.empty(1 + len(codes) // 8, np.int64) for _ in range(2))
    row, count = 0, 0
    while True:
        cells = tables.cells[block.offset :]
        why, row, count = loop.run_one(
            codes, keys.of_row, keys.slots, row, letters, states, np.uint32(block.width), cells, made_rows, made_outs, count
        )
        if why == loop.DONE:
            return emission.Made(made_rows[:count], np.zeros(count, np.int64), made_outs[:count])
        if why == loop.FULL:
            made_rows, made_outs = longer(made_rows, len(made_rows) + 1), longer(made_outs, len(made_outs) + 1)
        else:
            tables.fill(program, int(states[keys.slots[keys.of_row[row]]]))
