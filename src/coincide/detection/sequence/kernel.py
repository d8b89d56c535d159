"""Queries over columns: tests by the distinct values of what they read, keys as slots, stages by a compiled loop.

What has no such loop (`coverage`) takes the interpreter's stages on the rows that are some item."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Clock, Pending
from coincide.detection.columns.places import ranks_of
from coincide.detection.columns.store import NOTHING, Store
from coincide.detection.columns.tables import distinct
from coincide.detection.eventwise import Cause, step_eventwise
from coincide.detection.sequence import loop
from coincide.detection.sequence.conversion import compiled_state, interpreted
from coincide.detection.sequence.emission import Emission, Fired, Made
from coincide.detection.sequence.interpreter import Interpreter
from coincide.detection.sequence.keyed import NO_KEYS, Keyed, plain_numbers
from coincide.detection.sequence.memory import Memory, begin, firing_places, make_room, retain, take_due, with_slots
from coincide.detection.sequence.program import Program, reasons
from coincide.detection.sequence.rowset import SharedRows
from coincide.detection.sequence.state import Kept, State
from coincide.detection.sequence.ways import Ways, ways_to
from coincide.lang.eql.definition import FILTER
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.event import Event
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
NONE: Numbers = np.zeros(0, np.int64)
Either = Memory | State
"""The interpreter's own where it has made the last step."""

ENVELOPE = frozenset({"type", "id", "source", "arrival"})


class Kernel:
    """Steps one query."""

    def __init__(self, program: Program, interpreter: Interpreter, rows: SharedRows) -> None:
        self.program = program
        self.interpreter = interpreter
        self.rows = rows
        self.kinds = [rows.tests.kind(item.filter) for item in program.items]
        self.keys = frozenset(program.query.keys_of(item) for item in program.items)
        self.compiled = not reasons(program.query)
        if self.compiled:
            self.order = _order(program)
            self.stages = _stages(program, self.order)
            kinds, firsts = self.stages.steps["kind"], self.stages.steps["first"]
            self.beginning = (kinds == loop.LEAD) | ((kinds == loop.ADVANCE) & (firsts == 0))

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
            # arrivals come one by one, and places with timers in them are not plain numbers: few events as a rule
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
        found = [self.rows.of(table).of(kind) for kind in self.kinds]
        rows = distinct(np.concatenate(found))
        if not len(rows):
            return EMPTY, []
        bits = [0] * len(rows)
        for item, own in enumerate(found):
            for at in np.searchsorted(rows, own).tolist():
                bits[at] |= 1 << item
        fields = {name: table.fields[name] for name in table.fields if name in self.program.columns or name in ENVELOPE}
        return EventBatch(replace(table, fields=fields).take(rows).events()), bits

    # Stages by the compiled loop.

    def _consume(self, memory: Memory, table: EventTable, clock: Clock) -> EventBatch:
        if self.program.query.kind == FILTER:
            return self._filtered(table)
        base, known = len(memory.store), int(memory.n.nodes)
        begin(memory)
        rows = self._rows(memory, table, base)
        if not len(rows.entries) and memory.n.due >= clock.bound:
            return EMPTY
        batch = self.rows.of(table)
        shown = batch.shown(self.program.fields)
        make_room(memory, self.stages.number, len(rows.entries))
        while loop.run(memory.pools, rows, self.stages) != loop.DONE:
            make_room(memory, self.stages.number)
        events = memory.store.followed_by(shown)
        emission = Emission(self.program, events.chunks, memory.keys.known.taken)
        made = merged([self._detected_at_once(memory, emission), self._fired(memory, emission, events, clock.bound)])
        retain(memory, shown, base, known, batch.scratch, clock.bound, self.program.query.maxspan)
        return made

    def _filtered(self, table: EventTable) -> EventBatch:
        """Each event by itself."""
        rows = self.rows.of(table).of(self.kinds[0])
        if not len(rows):
            return EMPTY
        emission = Emission(self.program, [self.rows.of(table).shown(self.program.fields)], lambda slots: [()] * len(slots))
        zeros = np.zeros(len(rows), np.int64)
        return emission.of_rows(Made(rows, zeros, zeros, Ways(rows, np.arange(len(rows) + 1))))

    def _rows(self, memory: Memory, table: EventTable, base: int) -> loop.Rows:
        """What rows do to keys. What begins a sequence comes first: nothing else concerns a key of which nothing is known."""
        found = [NO_KEYS] * len(self.order)
        whole = len(table) > 0 and self._is_large(table, memory)
        slots: dict[int, Numbers] = {}
        for step in np.argsort(~self.beginning, kind="stable").tolist():
            if len(table) and (self.beginning[step] or memory.keys.known):
                found[step] = self._keyed(table, self.order[step], whole)
                _find_slots(memory, found[step], bool(self.beginning[step]), slots)
        if len({id(keyed.keys) for keyed in found if len(keyed)}) > 1:
            found = [keyed.by(slots[id(keyed.keys)]) if len(keyed) else keyed for keyed in found]
            by_number = np.arange(len(memory.keys.rows))
        else:
            by_number = next((slots[id(keyed.keys)] for keyed in found if len(keyed)), NONE)
        return self._joined(found, by_number, table, base)

    def _joined(self, found: list[Keyed], slots: Numbers, table: EventTable, base: int) -> loop.Rows:
        ends = np.cumsum([len(keyed) for keyed in found])
        heads = np.concatenate(([0], ends[:-1]))
        at = table.hi if table.given_places is None else table.place_matrix()[:, 0]
        entries, hi = (np.concatenate(parts) for parts in ([k.entries for k in found], [k.hi for k in found]))
        several = any(len(keyed.turns) for keyed in found)
        turns = np.concatenate([keyed.all_turns for keyed in found]) if several else NONE
        return loop.Rows(
            plain_numbers(entries),
            plain_numbers(hi),
            plain_numbers(turns),
            heads,
            plain_numbers(ends),
            plain_numbers(slots),
            plain_numbers(at),
            base,
        )

    def _is_large(self, table: EventTable, memory: Memory) -> bool:
        """Do many rows concern the query, or those that asked before? Then keys are coded for all rows, for all of them."""
        rows = self.rows.of(table)
        first = sum(len(rows.of(self.kinds[self.order[step]])) for step in np.flatnonzero(self.beginning))
        if not first and not memory.keys.known:
            return False
        return rows.are_many(self.keys, sum(len(rows.of(kind)) for kind in self.kinds))

    def _keyed(self, table: EventTable, number: int, whole: bool) -> Keyed:
        keys = self.program.query.keys_of(self.program.items[number])
        return self.rows.of(table).keyed(self.kinds[number], keys, self.program.keys[number], whole)

    def _detected_at_once(self, memory: Memory, emission: Emission) -> EventBatch:
        """At once."""
        made = memory.made[: memory.n.made]
        if not len(made):
            return EMPTY
        ranks = _ranks(made)
        waits = np.flatnonzero(made["wait"] >= 0)
        memory.waits.rows[made["wait"][waits], loop.WAIT.rank] = ranks[waits]  # of two, the last: the first was cancelled
        order = np.lexsort((ranks, made["cause"]))
        order = order[made["wait"][order] < 0]
        if not len(order):
            return EMPTY
        causes, slots, nodes = (made[name][order] for name in ("cause", "slot", "node"))
        return emission.of_rows(Made(causes, ranks[order], slots, ways_to(memory.nodes, nodes)))

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
        passed = [e for e in made.events if passes(memory, Kept(e.lo, e.hi, e.attributes, e.origin))]
        return EventBatch(passed) if passed else EMPTY


def _find_slots(memory: Memory, keyed: Keyed, begins: bool, known: dict[int, Numbers]) -> None:
    """The slots of keys, which only what begins a sequence makes. `known` are the slots by number (-1: not looked for, -2: there
    is none) of keys that are numbered alike."""
    slots = known.setdefault(id(keyed.keys), np.full(len(keyed.keys), -1, np.int64))
    new = keyed.present[slots[keyed.present] == -1]
    if len(new):
        keys = [keyed.keys[number] for number in new.tolist()]
        found = with_slots(memory, keys) if begins else memory.keys.known.of(keys)
        slots[new] = np.where(found < 0, -2, found)


def _ranks(made: npt.NDArray[np.void]) -> Numbers:
    """The number of each among all that its row has brought about."""
    order = np.lexsort((made["turn"], made["step"], made["cause"]))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = ranks_of(made["cause"][order])
    return ranks


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
