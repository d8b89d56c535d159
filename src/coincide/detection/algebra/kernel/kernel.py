"""The kernel tier: definitions over columns. Each is a window of events (windows.py) or operators over them (sequences.py).

Batches are cut at instants: the events of the last one wait until the clock has passed it. What columns do not cover (events
whose stamps are ranges, two records of one event, operands compared by more or less that are not numbers, events as they arrive,
detections that timers of other languages make) goes through the interpreter, with the same state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coincide.detection.algebra.interpreter import Interpreter
from coincide.detection.algebra.kernel.emission import Found, Instants, published
from coincide.detection.algebra.kernel.feeds import is_plain, rows_for
from coincide.detection.algebra.kernel.rows import Numbers, Rows
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.sequence import storage as sequence_storage
from coincide.detection.algebra.sequence.families import Family, families, is_empty
from coincide.detection.algebra.sequence.sequences import Memory, SequenceKernel
from coincide.detection.algebra.shape.shapes import Operators
from coincide.detection.algebra.state import PlanState, part_name
from coincide.detection.algebra.tables import Common, Tables, common_name, common_part, objects_of, tables_of, tables_part
from coincide.detection.algebra.window import storage as window_storage
from coincide.detection.algebra.window.observed import Ask
from coincide.detection.algebra.window.windows import WindowKernel, WindowMemory
from coincide.detection.base import Changes, Clock, Pending
from coincide.detection.columns.codec import Relations, encode
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import instant_place
from coincide.model.table import EventTable

KEPT = frozenset({"type", "id", "source", "space"})
NEVER = -(2**63)


@dataclass
class Columns(Common):
    """The state: one memory a definition, and what they have in common. `together` are memories of whole families, whose
    definitions have none of their own then; None: it is still to be decided."""

    memories: list[Any] = field(default_factory=list)
    together: list[Memory | None] | None = None


State = Columns | PlanState
"""The interpreter's own where it has made the last step."""


class Kernel:
    """Steps the definitions of a plan, each after those that it refers to."""

    def __init__(self, interpreter: Interpreter, read: frozenset[str] | None) -> None:
        self.interpreter = interpreter
        self.programs: Sequence[Program] = interpreter.programs
        columns = None if read is None else read | KEPT
        self._made: frozenset[str] = frozenset().union(*(program.made_types for program in self.programs))
        self.kernels = [_kernel(program, columns, program.name in self._made) for program in self.programs]
        self.families = families(self.kernels)
        self._orders = np.array([-1 if program.order is None else program.order for program in self.programs], np.int64)
        self._exact = any(isinstance(kernel, SequenceKernel) for kernel in self.kernels)
        self._fills = any(isinstance(kernel, WindowKernel) and kernel.fills for kernel in self.kernels)

    def fresh(self) -> Columns:
        together = {number for family in self.families for number in family.numbers}
        own = [None if number in together else kernel.fresh() for number, kernel in enumerate(self.kernels)]
        return Columns(memories=own, together=[family.fresh() for family in self.families])

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        found = self._columns(state, batch) if clock.arrival is None and not (clock.endless and self._fills) else None
        if found is not None:
            rows = self._rows(found, batch, clock)
            concerned = rows.of_types(self.interpreter.types)
            if self._is_plain(rows, concerned) and self._compares_numbers(found, rows):
                return self._stepped(found, rows, concerned, batch, clock)
        return self.interpreter.step(self.objects(state), batch, clock)

    def _columns(self, state: State, batch: EventBatch) -> Columns | None:
        """The state as columns; None: it cannot be, or would only be turned back for this batch."""
        if not all(part.table.sortable for part in batch.parts if len(part)):
            return None
        if isinstance(state, Columns):
            late = state.waiting is not None and len(batch) and batch.table.hi[0] < state.waiting.hi[0]
            return None if late else state
        waiting = [event for events in state.waiting.values() for event in events]
        ranges = any(event.lo != event.hi for event in waiting if not event.is_detection) or self._has_ranges(batch)
        tables = None if self._exact and ranges else tables_of(self.programs, state)
        return None if tables is None else self.loaded(tables)

    def taken_up(self, state: PlanState | Tables) -> State:
        """A state that was read, to go on from: as columns, if they can hold it."""
        return self.loaded(state) if isinstance(state, Tables) else self._columns(state, EMPTY) or state

    def _has_ranges(self, batch: EventBatch) -> bool:
        return bool(len(batch)) and bool(((batch.table.lo != batch.table.hi) & (batch.table.generation == 0)).any())

    def _rows(self, state: Columns, batch: EventBatch, clock: Clock) -> Rows:
        """What waited and what comes. An event fires the timers of all instants before its own."""
        tables = [table for table in (state.waiting, batch.table if len(batch) else None) if table is not None]
        limit = max(clock.bound, int(batch.table.hi[-1])) if len(batch) else clock.bound
        return Rows(tables, limit)

    def _is_plain(self, rows: Rows, concerned: Numbers) -> bool:
        events = concerned
        if self._made:
            made = rows.of_types(self._made)
            if not is_plain(rows, made, self.interpreter.foreign):
                return False
            events = np.setdiff1d(concerned, made, assume_unique=True)
        return not (self._exact and rows.has_ranges(events)) and not rows.has_copies(events)

    def _compares_numbers(self, state: Columns, rows: Rows) -> bool:
        own = zip(self.kernels, state.memories, strict=True)
        comparing = [(k, memory) for k, memory in own if isinstance(k, SequenceKernel) and k.shape.conditions]
        return all(kernel.measure(memory, rows) for kernel, memory in comparing)

    def _stepped(
        self, state: Columns, rows: Rows, concerned: Numbers, batch: EventBatch, clock: Clock
    ) -> tuple[State, EventBatch]:
        if state.start is None and clock.start is not None:
            state.start = clock.start
        state.ended = state.ended or clock.end is not None
        if len(batch):
            state.latest = max(state.latest, int(batch.table.hi[-1]))
        if clock.latest is not None:
            state.latest = max(state.latest, clock.latest)
        instants = self._instants(state, rows, concerned[concerned < rows.length])
        found = self._found(state, rows, instants)
        later = concerned[concerned >= rows.length]
        state.waiting = rows.pick(later) if len(later) else None
        state.timers = {due: place for due, place in instants.timers.items() if due >= rows.limit}
        return state, published(found, instants)

    def _found(self, state: Columns, rows: Rows, instants: Instants) -> list[tuple[int | Numbers, Found]]:
        asks: list[Ask] = []
        found: list[tuple[int | Numbers, Found]] = []
        tables: dict[str, EventTable] = {}
        together = self._step_families(state, rows, found)
        for number, (program, kernel) in enumerate(zip(self.programs, self.kernels, strict=True)):
            memory = state.memories[number]
            own = rows_for(program.types, self.interpreter.foreign, rows, tables) if program.made_types else rows
            made: Found | None
            if memory is None:
                made = together.get(number)
            elif isinstance(kernel, WindowKernel):
                made = kernel.step(memory, own, state.start, asks)
            else:
                made = kernel.step(memory, own, state.start)
            if made is not None:
                tables[program.name] = made.table
                if program.order is not None:
                    found.append((program.order, made))
                state.serials[program.name] = state.serials.get(program.name, 0) + len(made.table)
        self._set_timers(state, asks, instants)
        return found

    # Families. They are together from the start or not at all: what has been written is added to definition by definition.

    def _step_families(self, state: Columns, rows: Rows, found: list[tuple[int | Numbers, Found]]) -> dict[int, Found]:
        """Adds what is found of several definitions at once; returns the rest, by definition."""
        if state.together is None:
            state.together = [self._joined(state, family) for family in self.families]
        rest: dict[int, Found] = {}
        own = [(family, memory) for family, memory in zip(self.families, state.together, strict=True) if memory is not None]
        for made in (made for family, memory in own for made in family.step(memory, rows)):
            assert made.whose is not None
            numbers, counts = np.unique(made.whose, return_counts=True)
            if len(numbers) == 1:
                rest[int(numbers[0])] = made
                continue
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                name = self.programs[number].name
                state.serials[name] = state.serials.get(name, 0) + count
            found.append((self._orders[made.whose], made))
        return rest

    def _joined(self, state: Columns, family: Family) -> Memory | None:
        if not all(is_empty(state.memories[number]) for number in family.numbers):
            return None
        for number in family.numbers:
            state.memories[number] = None
        return family.fresh()

    def _memories(self, state: Columns) -> list[Any]:
        """Of each definition."""
        found = [*state.memories]
        for family, memory in zip(self.families, state.together or (), strict=False):
            for number, part in family.apart(memory) if memory is not None else ():
                found[number] = part
        return found

    # Timers: one for each time at which a window closes.

    def _instants(self, state: Columns, rows: Rows, concerned: Numbers) -> Instants:
        hi = rows.hi[concerned]
        first = np.flatnonzero(np.concatenate((np.ones(min(1, len(hi)), np.bool_), hi[1:] != hi[:-1])))
        return Instants(self.interpreter.order, rows, concerned[first], dict(state.timers))

    def _set_timers(self, state: Columns, asks: list[Ask], instants: Instants) -> None:
        """By whom the time was asked for first, so that places are those of event-by-event processing."""
        earliest: dict[int, int] = {}
        for at, due in asks:
            since = NEVER if at is None else at
            if due > since and due not in instants.timers:
                earliest[due] = min(since, earliest.get(due, since))
        asking = instants.only(sorted({*earliest.values()}))
        for due, since in sorted(earliest.items(), key=lambda pair: pair[1]):
            cause = (state.start, 0, 0, 0) if since == NEVER else asking.place(since)
            instants.timers[due] = instant_place(due, cause, self.interpreter.order)

    # The same state for others.

    def objects(self, state: State) -> PlanState:
        """As the interpreter would hold it."""
        if isinstance(state, PlanState):
            return state
        return objects_of(self.programs, self.interpreter.order, self.tables(state))

    def tables(self, state: Columns) -> Tables:
        found = Tables(relations=[_relations(*pair) for pair in zip(self.kernels, self._memories(state), strict=True)])
        found.take_over(state)
        return found

    def loaded(self, tables: Tables) -> Columns:
        """What changes from now on can be told in addition to these."""
        found = Columns(memories=[_loaded(*pair) for pair in zip(self.kernels, tables.relations, strict=True)])
        found.take_over(tables)
        return found

    def changes(self, state: Columns, everything: bool) -> Changes:
        """What has changed since this was called last; of definitions for which this is as much, or if it is wanted, all."""
        state.memories, state.together = self._memories(state), [None] * len(self.families)
        replaced, added = {common_name(self.programs): common_part(state)}, {}
        for program, kernel, memory in zip(self.programs, self.kernels, state.memories, strict=True):
            whole = everything or memory.renewed
            if not whole and not memory.stirred:
                continue
            relations = _relations(kernel, memory, not whole)
            memory.epoch = relations.epoch = memory.epoch + 1
            memory.go_on()
            if whole:
                replaced[part_name(program)] = tables_part(self.programs, encode(relations))
            else:
                added[part_name(program)] = encode(relations)
        return Changes(replaced, added)

    def pending(self, state: State) -> Pending | None:
        if isinstance(state, PlanState):
            return self.interpreter.pending(state)
        own = [pair for pair in zip(self.kernels, state.memories, strict=True) if pair[1] is not None]
        found = [kernel.due(memory) for kernel, memory in own if isinstance(kernel, SequenceKernel)]
        dues = [*state.timers, *([] if state.waiting is None else [int(state.waiting.hi[0])])]
        dues += [due for due in found if due is not None]
        waits = any(kernel.waits(memory, state.latest) for kernel, memory in own)
        return Pending(min(dues), state.waiting is not None or waits) if dues else None


def _kernel(program: Program, columns: frozenset[str] | None, is_read: bool) -> SequenceKernel | WindowKernel:
    found = program.shape
    if isinstance(found, Operators):
        return SequenceKernel(program, found, columns, is_read)
    return WindowKernel(program, found, columns, is_read)


def _relations(kernel: SequenceKernel | WindowKernel, memory: Any, since_last: bool = False) -> Relations:
    if isinstance(kernel, WindowKernel):
        return window_storage.relations(memory, since_last)
    return sequence_storage.relations(kernel, memory, since_last)


def _loaded(kernel: SequenceKernel | WindowKernel, relations: Relations) -> Memory | WindowMemory:
    if isinstance(kernel, WindowKernel):
        return window_storage.loaded(kernel, relations)
    return sequence_storage.loaded(kernel, relations)
