"""The tables of the compiled loop from and to the interpreter's objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from coincide.detection.columns.store import Store
from coincide.detection.eventwise import Timer
from coincide.detection.sequence.loop import FOREVER, KEY, NODE, SLOT, WAIT, link
from coincide.detection.sequence.memory import Memory, firing_places, fresh, with_slots
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Pending, State, Trace, Waiting, fresh_key
from coincide.detection.sequence.ways import Ways, traces, ways_to
from coincide.detection.snapshots import check_numbers
from coincide.model.column import column_from_arrow, column_of
from coincide.model.table import EventTable, origins_of

STANDING_IN = (1, 1, 1, 0, 0)
"""The place of an event that stands for several: of no primitive one, so what is below it is told."""

# From the interpreter's.


def compiled_state(program: Program, state: State) -> Memory:
    """What is known of a sequence's events becomes one event that stands for them."""
    memory = fresh(program)
    memory.passed, memory.kept = state.passed, state.kept
    keys = with_slots(memory, list(state.keys)).tolist()
    own = list(zip(keys, state.keys.values(), strict=True))
    pending = [(key, stage, p) for key, k in own for stage, p in enumerate(k.slots) if p]
    waiting = [(key, w) for key, k in own for w in k.waiting]
    taken = [(key, item, number, t) for key, k in own for item, some in enumerate(k.taken) for number, t in some]
    sequences = [p for _, _, p in pending] + [w.pending for _, w in waiting]
    known = [p.trace for p in sequences] + [trace for *_, trace in taken]
    if known:
        memory.store = Store(memory.store.columns, [_stored(known, program.fields)])
    memory.nodes = np.zeros(len(sequences), NODE)
    memory.nodes["parent"], memory.nodes["event"] = -1, np.arange(len(sequences))
    memory.n.nodes = len(sequences)
    memory.taken = np.array([(*t[:3], len(sequences) + n) for n, t in enumerate(taken)], np.int64).reshape(-1, 4)
    rows = memory.keys.rows
    for key, k in own:
        rows[key, KEY.latest : KEY.closed + 1] = (*k.leads, k.touched, k.count, k.closed)
    for node, (key, stage, p) in enumerate(pending):
        at = KEY.parts + stage * SLOT.width
        rows[key, at : at + SLOT.width] = (p.first, p.last, p.lower, FOREVER if p.gap is None else p.gap, p.spoilt, node)
    waits = memory.waits.add(len(waiting))
    for node, (number, (key, w)) in enumerate(zip(waits.tolist(), waiting, strict=True), len(pending)):
        p, due = w.pending, w.timer.due
        memory.waits.rows[number, WAIT.key : WAIT.placed + 1] = (key, node, p.first, p.last, p.lower, due, 0, 1)
        memory.places[number] = w.timer.place
        memory.n.due = min(memory.n.due, due)
    link(memory.keys.rows, memory.waits.rows, waits)
    return memory


def _stored(traces: Sequence[Trace], fields: Sequence[str]) -> EventTable:
    lo, hi = (np.array([getattr(t, end) for t in traces], np.int64) for end in ("lo", "hi"))
    shown = {name: column_of([t.shown[n] for t in traces]).to_arrow() for n, name in enumerate(fields)}
    places = np.tile(np.array(STANDING_IN, np.int64), (len(traces), 1))
    ids = pa.nulls(len(traces), pa.string())
    return EventTable(lo, hi, {"id": ids, **shown}, 0, places, origins_of([t.origin for t in traces]))


# To the interpreter's.


def interpreted(program: Program, memory: Memory) -> State:
    keys, waits = memory.keys.live(), memory.waits.live()
    keys = keys[memory.used(keys)]
    at, stage = np.nonzero(memory.pending(keys) >= 0)
    nodes = np.concatenate((memory.pending(keys)[at, stage], memory.waits.rows[waits, WAIT.node]))
    events = Ways(memory.taken[:, 3], np.arange(len(memory.taken) + 1))
    known = _traces(program, memory, ways_to(memory.nodes, nodes))
    state = State(memory.passed, memory.kept, swept=len(keys))
    own = {number: fresh_key(program) for number in keys.tolist()}
    names = dict(zip(own, memory.keys.known.taken(keys), strict=True))
    for number, k in own.items():
        state.keys[names[number]] = k
        latest, before, k.touched, k.count, closed = memory.keys.rows[number, KEY.latest : KEY.closed + 1].tolist()
        k.leads, k.closed = (latest, before), bool(closed)
    for trace, number, n in zip(known, keys[at].tolist(), stage.tolist(), strict=False):
        begin = KEY.parts + n * SLOT.width
        first, last, lower, gap, spoilt, _ = memory.keys.rows[number, begin : begin + SLOT.width].tolist()
        own[number].slots[n] = Pending(trace, first, last, lower, None if gap == FOREVER else gap, bool(spoilt))
    places = firing_places(memory, memory.store, program.order, waits)
    for trace, row, place in zip(known[len(at) :], memory.waits.rows[waits].tolist(), places, strict=True):
        key = row[WAIT.key]
        pending = Pending(trace, row[WAIT.first], row[WAIT.last], row[WAIT.lower])
        own[key].waiting.append(waiting := Waiting(pending, state.timers.add(Timer(place, None))))
        waiting.timer.payload = (names[key], waiting)
    ordered = zip(memory.taken.tolist(), _traces(program, memory, events), strict=True)
    for (key, item, number, _), trace in ordered:
        own[key].taken[item].append((number, trace))
    for k in own.values():
        for some in k.taken:
            check_numbers([number for number, _ in some], k.count)
    return state


def _traces(program: Program, memory: Memory, ways: Ways) -> list[Trace]:
    if len(ways.offsets) == 1:
        return []
    of = traces(memory.store.chunks, ways, program.fields)
    columns = [column_from_arrow(of.shown[name]) if name in of.shown else None for name in program.fields]
    stamps = zip(of.lo.tolist(), of.hi.tolist(), of.origins.keys(), strict=True)
    return [
        Trace(lo, hi, origin, tuple(None if column is None else column.value(row) for column in columns))
        for row, (lo, hi, origin) in enumerate(stamps)
    ]
