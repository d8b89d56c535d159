"""Detectors of one form, stepped as one: they differ in the types and tests of their leaves, and in name.

A row that a detector reads is a row of its own, and a key begins with the number of the detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import structs

from coincide.detection.automaton.kernel import Kernel, State
from coincide.detection.automaton.memory import Memory
from coincide.detection.automaton.pools import STAY, Rows
from coincide.detection.automaton.relations import notes_of
from coincide.detection.automaton.storage import whole
from coincide.detection.automaton.tables import EARLY
from coincide.detection.base import Clock
from coincide.detection.columns.asking import Asking, Question
from coincide.detection.columns.keys import Codes, key_codes
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.splitting import owners_of, split
from coincide.detection.columns.store import NOTHING
from coincide.detection.eventsets import Leaf
from coincide.detection.keys import Key
from coincide.expr.tree import And
from coincide.expr.vector import Picked, holds
from coincide.model.batch import EventBatch, merged
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.automaton.plan import AutomatonPlan

Numbers = npt.NDArray[np.int64]


class Family(Kernel):
    """`plans` are those of the detectors by themselves."""

    def __init__(self, plans: Sequence[AutomatonPlan]) -> None:
        super().__init__(plans[0].program)
        self._plans = plans
        self.programs = [plan.program for plan in plans]
        self._asking = Asking([[*map(_question, program.leaves.leaves)] for program in self.programs])

    def fresh(self) -> Memory:
        return Memory(self.tables, self.columns, shared=True)

    def takes(self, batch: EventBatch, clock: Clock) -> bool:
        """Only what no detector would have to be interpreted for."""
        return clock.arrival is None and not (batch.has_table and batch.table.foreign_places is not None)

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        *before, last = self._asking.cut(batch.table) if len(batch) else [NOTHING]
        made = []
        for part in before:
            state, found = super().step(state, EventBatch(table=part), structs.replace(clock, bound=EARLY))
            made.append(found)
        state, found = super().step(state, EventBatch(table=last), clock)
        return state, merged([*made, found])

    def _read(self, memory: Memory, table: EventTable) -> tuple[EventTable, Rows | None]:
        """A row of its own for each detector that reads it, but where it begins nothing and its key waits for nothing."""
        every = TableRows(table)
        answer = self._asking.of(table.column("type"), lambda test, some: holds(test, Picked(every, some)))
        kinds, of_row = np.unique(answer.bits, return_inverse=True)
        numbers = np.array([self.tables.class_of(leaves) for leaves in kinds.tolist()], np.int64)
        cells = self.tables.cells()
        opens = (cells.cells["kind"][:, 1::2][cells.starts] != STAY).any(axis=0)[numbers][of_row]
        codes, keys = answer.keyed(*self._coded(table), opens, memory.keys.known)
        slots, read = memory.slots(keys), np.flatnonzero(codes >= 0)
        if not len(read):
            return NOTHING, None
        table = table.narrowed(answer.rows[read], self._key)
        return table, self._rows(memory, table, of_row[read], numbers, codes[read], slots)

    def _coded(self, table: EventTable) -> tuple[Codes, list[Key]]:
        """The number of each row's key, and the keys by number."""
        if not self._key:
            return np.zeros(len(table), np.int32), [()]
        codes, keys = key_codes([table.column(name) for name in self._key])
        return codes, [*keys]

    def apart(self, memory: Memory) -> list[Memory]:
        """What each detector remembers by itself."""
        found = []
        relations = whole(memory)
        parts = split(relations, owners_of(relations), len(self._plans))
        for number, (plan, own) in enumerate(zip(self._plans, parts, strict=True)):
            own.notes = notes_of(memory.failures.get(number, {}), memory.now, len(memory.store))
            found.append(alone := plan._kernel.loaded(own))
            alone.renewed = True  # nobody has been told what it begins with
        return found


def _question(leaf: Leaf) -> Question:
    """That no part of the key is null need not be asked: such a row has no key."""
    assert leaf.name is not None
    return leaf.name, And(tuple(leaf.tests)) if len(leaf.tests) > 1 else next(iter(leaf.tests), None)
