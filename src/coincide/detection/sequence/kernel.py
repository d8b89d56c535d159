"""Queries over columns: tests by the distinct values of what they read, keys as slots, stages by a compiled loop.

What has no such loop (`coverage`) takes the interpreter's stages on the rows that are some item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Clock, Pending
from coincide.detection.columns.store import NOTHING, Store
from coincide.detection.eventwise import Cause, step_eventwise
from coincide.detection.sequence import loop
from coincide.detection.sequence.conversion import compiled_state, interpreted
from coincide.detection.sequence.coverage import reasons
from coincide.detection.sequence.emission import Emission, Fired, Made
from coincide.detection.sequence.interpreter import Interpreter
from coincide.detection.sequence.masks import Mask, Masks, SharedMasks
from coincide.detection.sequence.memory import Memory, begin, firing_places, make_room, retain, take_due, with_slots
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Kept, State
from coincide.detection.sequence.ways import Ways, shown_table, ways_to
from coincide.lang.eql.definition import FILTER
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.event import Event
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
Either = Memory | State
"""The interpreter's own where it has made the last step."""

ENVELOPE = frozenset({"type", "id", "source", "arrival"})


class Kernel:
    """Steps one query."""

    def __init__(self, program: Program, interpreter: Interpreter, masks: SharedMasks) -> None:
        self.program = program
        self.interpreter = interpreter
        self.masks = masks
        self.compiled = not reasons(program.query)
        if self.compiled:
            self.order = _order(program)
            self.stages = _stages(program, self.order)

    def objects(self, state: Either) -> State:
        """As the interpreter would hold it."""
        return interpreted(self.program, state) if isinstance(state, Memory) else state

    def pending(self, state: Either) -> Pending | None:
        if isinstance(state, State):
            return state.timers.pending()
        due = state.next_due()
        return None if due is None else Pending(due, True)

    def step(self, state: Either, batch: EventBatch, clock: Clock) -> tuple[Either, EventBatch]:
        if clock.arrival is not None or (len(batch) and batch.table.foreign_places is not None):
            # arrivals come one by one, and places with timers in them are no plain numbers: few events as a rule
            return self.interpreter.step(self.objects(state), batch, clock)
        if not self.compiled:
            return self._step_rows(self.objects(state), batch, clock)
        memory = compiled_state(self.program, state) if isinstance(state, State) else state
        made = self._consume(memory, batch.table if len(batch) else NOTHING, clock)
        return memory, self.interpreter.ended(memory, self._piped(memory, made), clock)

    # Stages by the interpreter.

    def _step_rows(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        events, matched = self._matching(batch.table) if len(batch) else (EMPTY, [])
        following = iter(matched)

        def on_event(event: Event, cause: Cause) -> None:
            self.interpreter.advance(state, event, next(following), cause)

        made = step_eventwise(events, clock, state.timers, on_event, self.interpreter.timer_of(state))
        return state, self.interpreter.ended(state, made, clock)

    def _matching(self, table: EventTable) -> tuple[EventBatch, list[int]]:
        """Rows that are some item, and which, as bits."""
        items = np.array(self._items(self.masks.of(table)))
        rows = np.flatnonzero(items.any(axis=0))
        if not len(rows):
            return EMPTY, []
        bits = [sum(1 << item for item in np.flatnonzero(row).tolist()) for row in items[:, rows].T]
        fields = {name: table.fields[name] for name in table.fields if name in self.program.columns or name in ENVELOPE}
        return EventBatch(replace(table, fields=fields).take(rows).events()), bits

    def _items(self, masks: Masks) -> list[Mask]:
        return [masks.item(item.filter) for item in self.program.items]

    # Stages by the compiled loop.

    def _consume(self, memory: Memory, table: EventTable, clock: Clock) -> EventBatch:
        if self.program.query.kind == FILTER:
            return self._filtered(table)
        shown = shown_table(table, self.program.fields)
        base, known = len(memory.store), int(memory.n[loop.NODES])
        begin(memory)
        rows = self._rows(memory, table, base)
        make_room(memory, len(rows.row) // 4)
        while loop.run(memory.pools, rows, self.stages) != loop.DONE:
            make_room(memory, self.stages.number)
        events = memory.store.followed_by(shown)
        emission = Emission(self.program, events.chunks, memory.keys.values)
        made = merged([self._made(memory, emission), self._fired(memory, emission, events, clock.bound)])
        retain(memory, shown, base, known, clock.bound, self.program.query.maxspan)
        return made

    def _filtered(self, table: EventTable) -> EventBatch:
        """Each event by itself."""
        rows = np.flatnonzero(self._items(self.masks.of(table))[0]) if len(table) else np.zeros(0, np.int64)
        if not len(rows):
            return EMPTY
        emission = Emission(self.program, [shown_table(table, self.program.fields)], [()])
        zeros = np.zeros(len(rows), np.int64)
        return emission.of_rows(Made(rows, zeros, zeros, Ways(rows, np.arange(len(rows) + 1))))

    def _rows(self, memory: Memory, table: EventTable, base: int) -> loop.Rows:
        """What rows do to keys, in order: row by row, in each item by item as they count."""
        found: list[tuple[Numbers, Numbers]] = []
        if len(table):
            masks = self.masks.of(table)
            for number in self.order:
                item = self.program.items[number]
                rows, numbers, known = masks.keyed(item.filter, self.program.query.keys_of(item), self.program.keys[number])
                found.append((rows, with_slots(memory, known)[numbers] if len(rows) else numbers))
        row = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in found)])
        slot = np.concatenate([np.zeros(0, np.int64), *(slots for _, slots in found)])
        step = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found]) if found else np.zeros(0, np.int64)
        order = np.argsort(row, kind="stable")
        at = table.hi if table.given_places is None else table.place_matrix()[:, 0]
        row, step, slot, hi, at = (_plain(array) for array in (row[order], step[order], slot[order], table.hi, at))
        return loop.Rows(row, step, slot, hi, at, base)

    def _made(self, memory: Memory, emission: Emission) -> EventBatch:
        """At once."""
        made = memory.made[: memory.n[loop.MADE]]
        if not len(made):
            return EMPTY
        causes, ranks, slots, nodes = (made[name].copy() for name in ("cause", "rank", "slot", "node"))
        return emission.of_rows(Made(causes, ranks, slots, ways_to(memory.nodes, nodes)))

    def _fired(self, memory: Memory, emission: Emission, events: Store, bound: int) -> EventBatch:
        """By timers that are due; the others wait on."""
        waits = take_due(memory, bound)
        if not len(waits):
            return EMPTY
        due, keys, nodes = (memory.waits.rows[waits, at] for at in (loop.WAIT.due, loop.WAIT.key, loop.WAIT.node))
        places = firing_places(memory, events, self.program.order, waits)
        return emission.of_timers(Fired(places, due, keys, ways_to(memory.nodes, nodes)))

    def _piped(self, memory: Memory, made: EventBatch) -> EventBatch:
        if not self.program.query.pipes or not len(made):
            return made
        passes = self.interpreter.output.passes
        kept = [e for e in made.events if passes(memory, Kept(e.lo, e.hi, e.attributes, e.origin))]
        return EventBatch(kept) if kept else EMPTY


def _order(program: Program) -> list[int]:
    """Items as they count for an event: missing ones, then the last of the others first, then `until`."""
    stages = list(dict.fromkeys(reversed(program.stages)))
    until = [] if program.until is None else [program.until]
    return [*(item for item, _ in program.gaps), *program.trailing, *program.leading, *stages, *until]


def _stages(program: Program, order: list[int]) -> loop.Stages:
    stage_of_gap = dict(program.gaps)
    steps = np.zeros(len(order), loop.STEP)
    for number, item in enumerate(order):
        steps[number] = _step(program, stage_of_gap, item)
    maxspan = program.query.maxspan
    return loop.Stages(
        steps, len(program.stages), loop.FOREVER if maxspan is None else maxspan, bool(program.leading), bool(program.trailing)
    )


def _step(program: Program, stage_of_gap: dict[int, int], item: int) -> tuple[int, int, int]:
    if item in stage_of_gap:
        return loop.GAP, stage_of_gap[item], 0
    if item in program.stages:
        first = program.stages.index(item)
        return loop.ADVANCE, first, first + program.items[item].runs - 1
    missing = loop.CANCEL if item in program.trailing else loop.LEAD if item in program.leading else loop.DROP
    return missing, 0, 0


def _plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Some can be written to and some cannot; compiled code is of one sort."""
    view = np.ascontiguousarray(array, np.int64).view()
    view.flags.writeable = False
    return view
