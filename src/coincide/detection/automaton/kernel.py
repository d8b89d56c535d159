"""Automata over columns: rows by class, runs in lists by key and configuration, events of runs as shared paths.

Per row the work is that of the runs which its class concerns; rows that no leaf holds cost one look-up. Detections come out
as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton import emission
from coincide.detection.automaton.interpreter import Interpreter
from coincide.detection.automaton.loop import fire, run
from coincide.detection.automaton.memory import Memory
from coincide.detection.automaton.objects import objects_of, relations_of, stored_fields
from coincide.detection.automaton.pools import DONE, Cells, Rows
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import DetectorState
from coincide.detection.automaton.storage import loaded, whole
from coincide.detection.automaton.support import key
from coincide.detection.automaton.tables import Tables
from coincide.detection.base import Clock, Pending
from coincide.detection.columns.codec import Relations
from coincide.detection.columns.dues import NEVER
from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.store import NOTHING
from coincide.detection.columns.tables import distinct
from coincide.detection.eventwise import step_eventwise
from coincide.model.batch import EventBatch, merged
from coincide.model.table import EventTable

State = Memory | DetectorState
"""The interpreter's own where it has made the last step."""


class Kernel:
    """Steps one detector."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.programs: Sequence[Program] = (program,)
        self.tables = Tables(program)
        self.columns = stored_fields(program)
        self._key = [attribute for attribute, _ in key(program)]

    def fresh(self) -> Memory:
        return Memory(self.tables, self.columns)

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        if clock.arrival is not None or (len(batch) and batch.table.foreign_places is not None):
            return self._interpreted(state, batch, clock)
        memory = self.taken_up(state) if isinstance(state, DetectorState) else state
        return memory, self._advanced(memory, *self._read(memory, batch.table if len(batch) else NOTHING), clock)

    def _advanced(self, memory: Memory, table: EventTable, rows: Rows | None, clock: Clock) -> EventBatch:
        base, known = len(memory.store), (len(memory.nodes), len(memory.timers))
        cells, made = self.tables.cells(), []
        if rows is not None:
            memory.n.row = 0
            memory.expect_as_much(len(cells.starts))
            while run(memory.pools, cells, rows, self.program.restart) != DONE:  # it stops for want of room
                if memory.crowded and not clock.unordered:
                    made.append(emission.detections(memory, table, base, self.programs, True))
                    memory.clear(cells, base, int(rows.at[memory.n.row]))
                    base, known = len(memory.store), (0, 0)
                    rows = rows._replace(base=base)
                memory.make_room(len(cells.starts))
        self._fire(memory, cells, clock.bound)
        self._report_ends(memory, table)
        made.append(emission.detections(memory, table, base, self.programs, not clock.unordered))
        self._retain(memory, cells, table, base, known)
        return merged(made)

    def _interpreted(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        """Places with timers in them are not plain numbers, and single arrivals come one by one: few events as a rule."""
        objects = self.objects(state)
        interpreter = Interpreter(self.program, objects)
        return objects, step_eventwise(batch, clock, objects.timers, interpreter.on_event, interpreter.on_timer)

    def taken_up(self, state: DetectorState) -> Memory:
        """The interpreter's state, to go on from."""
        return self.loaded(relations_of(self.program, state))

    def loaded(self, relations: Relations) -> Memory:
        return loaded(self.tables, relations, self.columns)

    def relations(self, state: State) -> Relations:
        return whole(state) if isinstance(state, Memory) else relations_of(self.program, state)

    def objects(self, state: State) -> DetectorState:
        """As the interpreter would hold it."""
        return objects_of(self.program, whole(state)) if isinstance(state, Memory) else state

    def pending(self, state: State) -> Pending | None:
        if isinstance(state, DetectorState):
            return state.timers.pending()
        state.settle(self.tables.cells())
        due = state.dues.now().first()
        return Pending(due, True) if due < NEVER else None

    # Rows.

    def _read(self, memory: Memory, table: EventTable) -> tuple[EventTable, Rows | None]:
        """A batch, and its rows for the loop."""
        if not len(table):
            memory.slots([])
            return table, None
        detections = None if table.given_places is None else np.asarray(table.generation > 0, np.int32)
        classes = self.tables.classifier.classify(TableRows(table), detections)
        numbers = self.tables.classes(classes)
        self.tables.cells()
        return table, self._rows(memory, table, classes.of_row, numbers, *self._slots(memory, table))

    def _rows(self, memory: Memory, table: EventTable, codes: Any, numbers: Any, keys: Any, slots: Any) -> Rows:
        at = table.hi if table.given_places is None or not memory.timings else table.place_matrix()[:, 0]
        lo, hi, at = (_read_only(instants, np.int64) for instants in (table.lo, table.hi, at))
        return Rows(_read_only(codes, np.int32), numbers, _read_only(keys, np.int32), slots, lo, hi, at, len(memory.store))

    def _slots(self, memory: Memory, table: EventTable) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The number of each row's key, and the slot of each number. A row whose key is null is of no leaf's."""
        if not self._key:
            return np.zeros(len(table), np.int32), memory.slots([()])
        codes, keys = key_codes([table.column(attribute) for attribute in self._key])
        return codes, memory.slots(keys)

    def _fire(self, memory: Memory, cells: Cells, bound: int) -> None:
        memory.now = max(memory.now, bound)
        while memory.timings and fire(memory.pools, cells, bound) != DONE:
            memory.make_room(len(cells.starts))

    def _report_ends(self, memory: Memory, table: EventTable) -> None:
        if not memory.n.failed:
            return
        found = memory.failed[: memory.n.failed]
        rows, starts, whose = found["row"].tolist(), found["start"].tolist(), memory.whose(found["slot"]).tolist()
        memory.n.failed = 0
        for row, start, number in zip(rows, starts, whose, strict=True):
            failures, program = memory.failures[number], self.programs[number]
            if (0, start) in failures:
                failures[0, start] += 1
            else:
                program.report_end(failures, program.root, start, table.take(np.array([row])).events()[0])

    # What is kept.

    def _retain(self, memory: Memory, cells: Cells, table: EventTable, base: int, known: tuple[int, int]) -> None:
        """The rows that runs refer to go to the store, under new numbers. So many nodes and timers were known before."""
        memory.grown = len(memory.nodes) - known[0]
        if len(memory.nodes) > memory.swept:
            memory.sweep(cells, base)
            base, known = len(memory.store), (0, 0)
        events, setters = memory.nodes.column("event")[known[0] :], memory.timers.column("event")[known[1] :]
        rows = distinct(events[events >= base]) - base
        memory.store.add(table, rows)
        for column in (events, setters):
            new = column >= base
            column[new] = base + np.searchsorted(rows, column[new] - base)


def _read_only(array: npt.NDArray[Any], kind: Any) -> npt.NDArray[Any]:
    """Some are and some are not; compiled code is of one sort."""
    view = np.ascontiguousarray(array, kind).view()
    view.flags.writeable = False
    return view
