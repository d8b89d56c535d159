"""The state of the compiled loop from and to the interpreter's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.eventwise import Timer
from coincide.detection.sequence.loop import FOREVER, NODES, WAITS, relink
from coincide.detection.sequence.memory import Memory, fresh, with_room, with_slots
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Pending, State, Trace, Waiting, fresh_key
from coincide.detection.sequence.ways import traces, ways_to
from coincide.model.column import column_from_arrow, column_of
from coincide.model.table import EventTable, Origins

# From the interpreter's.


def compiled_state(program: Program, state: State) -> Memory:
    """What is known of a sequence's events becomes one event that stands for them."""
    memory = fresh(program)
    memory.passed, memory.kept = state.passed, state.kept
    with_slots(memory, list(state.keys))
    pending = [(slot, stage, p) for slot, own in enumerate(state.keys.values()) for stage, p in enumerate(own.slots) if p]
    waiting = [(slot, w) for slot, own in enumerate(state.keys.values()) for w in own.waiting]
    kept = [p for _, _, p in pending] + [w.pending for _, w in waiting]
    if kept:
        memory.store.chunks = [_stored([p.trace for p in kept], program.fields)]
    memory.pools = with_room(memory.pools, len(kept))._replace(waits=np.zeros(len(waiting), memory.pools.waits.dtype))
    pools = memory.pools
    pools.n[NODES], pools.n[WAITS] = len(kept), len(waiting)
    pools.nodes["parent"][: len(kept)], pools.nodes["event"][: len(kept)] = -1, np.arange(len(kept))
    for slot, own in enumerate(state.keys.values()):
        pools.keys[slot] = (*own.leads, own.touched, -1)
    for node, (slot, stage, p) in enumerate(pending):
        gap = FOREVER if p.gap is None else p.gap
        pools.slots[slot, stage] = (p.first, p.last, p.lower, gap, int(p.spoilt), node)
    for number, (slot, w) in enumerate(waiting):
        p = w.pending
        node = len(pending) + number
        pools.waits[number] = (slot, node, p.first, p.last, p.lower, w.timer.due, -1, 0, -1, 0)
    memory.places = [w.timer.place for _, w in waiting]
    relink(pools.keys, pools.waits)
    return memory


def _stored(kept: Sequence[Trace], fields: Sequence[str]) -> EventTable:
    lo, hi = (np.array([getattr(t, end) for t in kept], np.int64) for end in ("lo", "hi"))
    shown = {name: column_of([t.shown[n] for t in kept]).to_arrow() for n, name in enumerate(fields)}
    places = np.ones((len(kept), 3), np.int64)  # of no primitive events: what is below them is told
    return EventTable(lo, hi, {"id": pa.nulls(len(kept), pa.string()), **shown}, 0, places, _origins(kept))


def _origins(kept: Sequence[Trace]) -> Origins:
    flat = [key for t in kept for key in t.origin]
    hi, lo = (np.array([key[end] for key in flat], np.int64) for end in (0, 1))
    offsets = np.concatenate(([0], np.cumsum([len(t.origin) for t in kept]))).astype(np.int64)
    return Origins(lo, hi, pa.array([key[4] for key in flat], pa.string()), offsets)


# To the interpreter's.


def interpreted(program: Program, memory: Memory) -> State:
    state = State(memory.passed, memory.kept, swept=len(memory.keys))
    pools, count = memory.pools, len(memory.keys)
    slot, stage = np.nonzero(pools.slots[:count]["node"] >= 0)
    pending = pools.slots[slot, stage]
    known = _traces(program, memory, np.concatenate((pending["node"], memory.waits["node"])))
    for key, own in zip(memory.keys, pools.keys[:count].tolist(), strict=True):
        state.keys[key] = kept = fresh_key(program)
        kept.leads, kept.touched = own[:2], own[2]
    keys = list(memory.keys)
    for at, n, trace, row in zip(slot.tolist(), stage.tolist(), known, pending.tolist(), strict=False):
        first, last, lower, gap, spoilt, _ = row
        state.keys[keys[at]].slots[n] = Pending(trace, first, last, lower, None if gap == FOREVER else gap, bool(spoilt))
    for trace, wait, place in zip(known[len(pending) :], memory.waits.tolist(), memory.places, strict=True):
        at, _, first, last, lower = wait[:5]
        waiting = Waiting(Pending(trace, first, last, lower), state.timers.add(Timer(place, None)))
        waiting.timer.payload = (keys[at], waiting)
        state.keys[keys[at]].waiting.append(waiting)
    state.keys = {key: own for key, own in state.keys.items() if not own.is_empty}
    return state


def _traces(program: Program, memory: Memory, nodes: Any) -> list[Trace]:
    if not len(nodes):
        return []
    of = traces(memory.store.chunks, ways_to(memory.pools.nodes, nodes), program.fields)
    columns = [column_from_arrow(of.shown[name]) if name in of.shown else None for name in program.fields]
    stamps = zip(of.lo.tolist(), of.hi.tolist(), of.origins.keys(), strict=True)
    return [
        Trace(lo, hi, origin, tuple(None if column is None else column.value(row) for column in columns))
        for row, (lo, hi, origin) in enumerate(stamps)
    ]
