"""The kernel tier: definitions over columns. Each is a window of events (windows.py) or operators over them (sequences.py).

Batches are cut at instants: the events of the last one wait until the clock has passed it. What columns do not cover (events
whose stamps are ranges, two records of one event, events as they arrive, detections that timers of other languages make)
goes through the interpreter, with the same state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coincide.detection.algebra.interpreter import Interpreter
from coincide.detection.algebra.kernel.conversion import objects
from coincide.detection.algebra.kernel.emission import Found, Instants, published
from coincide.detection.algebra.kernel.feeds import fed, is_plain
from coincide.detection.algebra.kernel.loading import columns
from coincide.detection.algebra.kernel.rows import Numbers, Rows
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.sequence.sequences import SequenceKernel
from coincide.detection.algebra.shape.coverage import shape
from coincide.detection.algebra.shape.shapes import Operators
from coincide.detection.algebra.state import PlanState
from coincide.detection.algebra.window.observed import Ask
from coincide.detection.algebra.window.windows import WindowKernel
from coincide.detection.base import Clock, Pending
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Place, instant_place
from coincide.model.table import EventTable

KEPT = frozenset({"type", "id", "source", "space"})
NEVER = -(2**63)


@dataclass
class Columns:
    """The state: one memory a definition; events of an instant that is not over; timers of windows, by when they are due."""

    memories: list[Any]
    waiting: EventTable | None = None
    timers: dict[int, Place] = field(default_factory=dict)
    serials: dict[str, int] = field(default_factory=dict)
    start: int | None = None
    latest: int = NEVER
    ended: bool = False


State = Columns | PlanState
"""The interpreter's own where it has made the last step."""


class Kernel:
    """Steps the definitions of a plan, each after those that it refers to."""

    def __init__(self, interpreter: Interpreter, read: frozenset[str] | None) -> None:
        self.interpreter = interpreter
        self.programs: Sequence[Program] = interpreter.programs
        kept = None if read is None else read | KEPT
        self._made: frozenset[str] = frozenset().union(*(program.made_types for program in self.programs))
        self.kernels = [_kernel(program, kept, program.name in self._made) for program in self.programs]
        self._exact = any(isinstance(kernel, SequenceKernel) for kernel in self.kernels)
        self._fills = any(isinstance(kernel, WindowKernel) and kernel.fills for kernel in self.kernels)

    def fresh(self) -> Columns:
        return Columns([kernel.fresh() for kernel in self.kernels])

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        found = self._columns(state, batch) if clock.arrival is None and not (clock.endless and self._fills) else None
        if found is not None:
            rows = self._rows(found, batch, clock)
            concerned = rows.of_types(self.interpreter.types)
            if self._is_plain(rows, concerned):
                return self._stepped(found, rows, concerned, batch, clock)
        return self.interpreter.step(self.objects(state), batch, clock)

    def _columns(self, state: State, batch: EventBatch) -> Columns | None:
        """The state as columns; None: it cannot be, or would only be turned back for this batch."""
        if not all(part.table.sortable for part in batch.parts if len(part)):
            return None
        if isinstance(state, Columns):
            return state
        waiting = [event for events in state.waiting.values() for event in events]
        ranges = any(event.lo != event.hi for event in waiting if not event.is_detection) or self._has_ranges(batch)
        return None if self._exact and ranges else columns(self, state)

    def taken_up(self, state: PlanState) -> State:
        """The interpreter's state, to go on from: as columns, if they can hold it."""
        return self._columns(state, EMPTY) or state

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

    def _stepped(
        self, state: Columns, rows: Rows, concerned: Numbers, batch: EventBatch, clock: Clock
    ) -> tuple[State, EventBatch]:
        if state.start is None and clock.start is not None:
            state.start = clock.start
        state.ended = state.ended or clock.end is not None
        if len(batch):
            state.latest = max(state.latest, int(batch.table.hi[-1]))
        instants = self._instants(state, rows, concerned[concerned < rows.length])
        found = self._found(state, rows, instants)
        later = concerned[concerned >= rows.length]
        state.waiting = rows.pick(later) if len(later) else None
        state.timers = {due: place for due, place in instants.timers.items() if due >= rows.limit}
        return state, published(found, instants)

    def _found(self, state: Columns, rows: Rows, instants: Instants) -> list[tuple[int, Found]]:
        asks: list[Ask] = []
        found = []
        tables: dict[str, EventTable] = {}
        for program, kernel, memory in zip(self.programs, self.kernels, state.memories, strict=True):
            own = fed(program.types, self.interpreter.foreign, rows, tables) if program.made_types else rows
            made = kernel.step(memory, own, state.start, asks) if isinstance(kernel, WindowKernel) else kernel.step(memory, own)
            if made is not None:
                tables[program.name] = made.table
                if program.order is not None:
                    found.append((program.order, made))
                state.serials[program.name] = state.serials.get(program.name, 0) + len(made.table)
        self._set_timers(state, asks, instants)
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
        for due, since in sorted(earliest.items(), key=lambda pair: pair[1]):
            cause = (state.start, 0, 0, 0) if since == NEVER else instants.place(since)
            instants.timers[due] = instant_place(due, cause, self.interpreter.order)

    # The same state for others.

    def objects(self, state: State) -> PlanState:
        """As the interpreter would hold it."""
        return objects(self, state) if isinstance(state, Columns) else state

    def waiting_place(self, state: Columns) -> Place | None:
        """Where the timer of the instant that is not over fires."""
        if state.waiting is None:
            return None
        cause = state.waiting.take(np.zeros(1, np.int64)).place_tuples()[0]
        return instant_place(int(state.waiting.hi[0]), cause, self.interpreter.order)

    def pending(self, state: State) -> Pending | None:
        if isinstance(state, PlanState):
            return self.interpreter.pending(state)
        dues = [*state.timers, *([] if state.waiting is None else [int(state.waiting.hi[0])])]
        waits = any(k.waits(m, state.latest) for k, m in zip(self.kernels, state.memories, strict=True))
        return Pending(min(dues), state.waiting is not None or waits) if dues else None


def _kernel(program: Program, columns: frozenset[str] | None, is_read: bool) -> SequenceKernel | WindowKernel:
    found = shape(program)
    if isinstance(found, Operators):
        return SequenceKernel(program, found, columns, is_read)
    return WindowKernel(program, found, columns, is_read)
