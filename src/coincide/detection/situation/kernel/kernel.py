"""Situations over columns.

Rows that concern nobody are left out first, whatever the definitions (prefilter.py). What is left goes through a compiled loop
(kernel/loop.py) where the definitions are within what it can do (support.py), and through the interpreter otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coincide.detection.base import Changes, Clock, Pending
from coincide.detection.eventwise import Timers
from coincide.detection.parts import changes_of_several, own_tables
from coincide.detection.situation import encoding
from coincide.detection.situation.interpreter import Interpreter
from coincide.detection.situation.prefilter import Prefilter
from coincide.detection.situation.program import Group
from coincide.detection.situation.state import SituationState
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.columns.codec import Relations
    from coincide.detection.situation.kernel.rows import Prepared
    from coincide.detection.situation.kernel.state import Tables
    from coincide.detection.situation.kernel.tables import Program

LONG_AGO = -(2**63)
CELLS = 1 << 25
"""Numbers that a step may lay out for its rows; longer batches are cut."""


@dataclass
class KernelState:
    """As numbers while the compiled loop has it, otherwise as the interpreter's objects; these also hold the statistics."""

    objects: SituationState
    tables: Tables | None = None

    @property
    def situations(self) -> list[Counter[str]]:
        return self._counted().situations

    @property
    def lifespans(self) -> list[Counter[str]]:
        return self._counted().lifespans

    def _counted(self) -> SituationState:
        if self.tables is not None:
            from coincide.detection.situation.kernel.objects import save_counters

            save_counters(self.objects, self.tables)
        return self.objects

    def pending(self) -> Pending | None:
        return self.objects.pending() if self.tables is None else self.tables.pending()


class Kernel:
    """Steps a group of situations."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._prefilter = Prefilter(group)
        self._interpreter = Interpreter(group)
        self._program = None if group.loop_reasons else _program(group)

    def state(self, objects: SituationState) -> KernelState:
        """Made numbers at once where it can be: what is wrong with a state shows when it is read."""
        state = KernelState(objects)
        if self._program is not None and not objects.fresh:
            self._load(state)
        return state

    def encode(self, state: KernelState) -> dict[str, bytes]:
        if state.tables is None:
            return encoding.encode(self.group, state.objects)
        from coincide.detection.situation.kernel.relations import whole

        return encoding.tables_parts(self.group, whole(state.tables))

    def changes(self, state: KernelState, everything: bool) -> Changes:
        from coincide.detection.situation.kernel.relations import changes

        assert state.tables is not None
        about, delta = encoding.about(self.group), changes(state.tables, everything)
        return changes_of_several(encoding.KIND, self.group.detectors, about, *delta)

    def decode(self, parts: Mapping[str, bytes]) -> KernelState:
        """Tables of just these situations are taken as they are."""
        own = self.group.detectors, encoding.about(self.group)
        tables = None if self._program is None else own_tables(encoding.KIND, *own, parts)
        if tables is None:
            return self.state(encoding.decode(self.group, parts))
        from coincide.detection.situation.kernel.relations import read

        assert self._program is not None
        return self._begun(read(self._program, *tables))

    def taken_up(self, relations: Relations) -> KernelState:
        """Of relations that were not written."""
        from coincide.detection.situation.kernel.relations import taken_up

        assert self._program is not None
        return self._begun(taken_up(self._program, relations))

    def _begun(self, tables: Tables) -> KernelState:
        state = KernelState(encoding.decode(self.group, {}), tables)
        state.objects.fresh.clear()
        return state

    def objects(self, state: KernelState) -> SituationState:
        if state.tables is None:
            return state.objects
        from coincide.detection.situation.kernel.objects import Saver

        return Saver(state.tables, state.objects).save()

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        if self._compiled(state, batch, clock):
            return state, self._run(state, batch, clock)
        state.objects, state.tables = self.objects(state), None
        picked = self._prefilter.pick(batch, self._begins_late(state))
        _, made = self._interpreter.step(state.objects, picked, clock)
        return state, made

    def _begins_late(self, state: KernelState) -> bool:
        return bool(state.objects.fresh) and state.objects.late

    def _compiled(self, state: KernelState, batch: EventBatch, clock: Clock) -> bool:
        """Can the loop take it? Then the state is made numbers. Places with timers in them are not plain numbers."""
        if self._program is None or clock.arrival is not None or not all(part.table.sortable for part in batch.parts):
            return False
        if state.tables is not None:
            return True
        if clock.start is None or self._begins_late(state):
            return False
        if state.objects.fresh:  # startup, and nothing else
            self._interpreter.step(state.objects, EMPTY, Clock(LONG_AGO, clock.start))
        return self._load(state)

    def _load(self, state: KernelState) -> bool:
        from coincide.detection.situation.kernel.relations import taken_up
        from coincide.detection.situation.objects import relations_of

        relations = relations_of(self.group, state.objects)
        if relations is None:
            return False
        assert self._program is not None
        state.tables = taken_up(self._program, relations)
        state.objects.open = [{} for _ in self.group.lifespans]
        state.objects.timers = Timers()
        return True

    def _run(self, state: KernelState, batch: EventBatch, clock: Clock) -> EventBatch:
        picked = self._prefilter.pick(batch, False)
        made = []
        tables = list(self._cut(picked)) if len(picked) else []
        for table in tables[:-1]:
            made.append(self._loop(state, table, LONG_AGO))
        assert state.tables is not None
        due = state.tables.next_due
        if tables or (due is not None and due < clock.bound):
            made.append(self._loop(state, tables[-1] if tables else None, clock.bound))
        return merged(made)

    def _cut(self, batch: EventBatch) -> Iterator[EventTable]:
        table = batch.table
        size = max(1, CELLS // (3 * len(self.group.lifespans) + 4 * len(self.group.situations)))
        if len(table) <= size:
            yield table
            return
        for start in range(0, len(table), size):
            yield table.take(np.arange(start, min(start + size, len(table))))

    def _loop(self, state: KernelState, table: EventTable | None, bound: int) -> EventBatch:
        from coincide.detection.situation.kernel.rows import Prepared

        assert self._program is not None
        assert state.tables is not None
        return looped(Prepared(self._program, state.tables, table), bound)


def looped(prepared: Prepared, bound: int) -> EventBatch:
    """The loop over rows, and over timers due before `bound`; the state goes on from there."""
    from coincide.detection.situation.kernel.emission import detections
    from coincide.detection.situation.kernel.layout import COUNT, World
    from coincide.detection.situation.kernel.loop import run

    tables = prepared.state
    world = World(*run(tables.world(prepared), prepared.touched, bound))
    made, selected = world.made[: world.counts[COUNT.made]], world.selected[: world.counts[COUNT.selected]]
    found = detections(prepared, *prepared.in_order(made, selected))
    tables.finish(prepared, world, made)
    return found


def _program(group: Group) -> Program:
    from coincide.detection.situation.kernel.tables import Program

    return Program(group)
