"""The kernel's state: its arrays, how they grow, and how what nobody refers to is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.loop import purge
from coincide.detection.automaton.pools import (
    COUNTERS,
    ENTERED,
    ENTERING,
    FAILED,
    FAILED_ONE,
    FIRING,
    FREE,
    MADE,
    MADE_ONE,
    NEED,
    NODE,
    NODES,
    QUEUE,
    QUEUED,
    ROOT,
    RUN,
    RUNS,
    SLOT,
    STEP,
    TIMER,
    TIMERS,
    Cells,
    Pools,
    relink,
)
from coincide.detection.automaton.tables import EARLY, Tables
from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import longer
from coincide.detection.keys import Key
from coincide.model.event import Place

Numbers = npt.NDArray[np.int64]

LITTLE = 1 << 14
"""Nodes that may be there before anybody looks for those that are needed no more."""


@dataclass
class Memory:
    """All that changes. The event with number i of the store is what nodes refer to; timers from an encoded state keep the
    places that they had, those of others follow from what set them."""

    tables: Tables
    pools: Pools
    store: Store
    keys: dict[Key, int] = field(default_factory=dict)
    failures: dict[tuple[int, int], int] = field(default_factory=dict)
    timer_places: dict[int, Place] = field(default_factory=dict)
    now: int = EARLY  # timers due before have fired
    swept: int = 0  # number of nodes at which those needed no more are looked for

    @property
    def timings(self) -> int:
        return len(self.tables.program.timings)


def fresh(tables: Tables, columns: frozenset[str]) -> Memory:
    return Memory(tables, empty_pools(len(tables.program.timings)), Store(columns), swept=LITTLE)


def empty_pools(timings: int) -> Pools:
    n = np.zeros(COUNTERS, np.int64)
    n[[FREE, ENTERED, ROOT, FIRING]] = -1
    runs, nodes, timers, queue, made, failed, slots = (
        np.zeros(0, kind) for kind in (RUN, NODE, TIMER, QUEUED, MADE_ONE, FAILED_ONE, SLOT)
    )
    held, heads = np.zeros((0, timings), np.int64), np.zeros((0, 0), np.int64)
    return Pools(runs, held, nodes, timers, queue, made, failed, slots, heads, np.zeros(0, np.int64), n)


def with_room(p: Pools, starts: int) -> Pools:
    """Room for what the loop said that it needs."""
    n, timings = p.n, p.held.shape[1]
    more, set_more = int(n[NEED]), timings * int(n[ENTERING] + n[NEED])
    runs = longer(p.runs, n[RUNS] + more)
    return p._replace(
        runs=runs,
        held=longer(p.held, len(runs)),
        nodes=longer(p.nodes, n[NODES] + more),
        timers=longer(p.timers, n[TIMERS] + set_more),
        queue=longer(p.queue, n[QUEUE] + set_more),
        made=longer(p.made, n[MADE] + more),
        failed=longer(p.failed, n[FAILED] + starts),
        scratch=np.zeros(len(runs) + n[MADE] - n[STEP] + more, np.int64),
    )


def with_slots(memory: Memory, keys: list[Key]) -> Numbers:
    """The slots of these keys, and room for all configurations in each."""
    known, p = memory.keys, memory.pools
    numbers = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    slots, width = longer(p.slots, max(len(known), 1)), max(len(memory.tables.configurations), p.heads.shape[1])
    if (len(slots), width) != p.heads.shape:
        heads = np.full((len(slots), width), -1, np.int64)
        heads[: p.heads.shape[0], : p.heads.shape[1]] = p.heads
        memory.pools = p._replace(slots=slots, heads=heads)
    return numbers


# What nobody refers to.


def settle(memory: Memory, cells: Cells) -> None:
    """Runs that timers have failed are gone."""
    if memory.timings:
        purge(memory.pools, cells, memory.now)


def sweep(memory: Memory, cells: Cells, base: int) -> None:
    """Runs, nodes, timers, keys and stored events that are needed no more go. Events from `base` on are of the batch at hand."""
    settle(memory, cells)
    p = memory.pools
    alive = np.flatnonzero(p.runs["config"][: p.n[RUNS]] >= 0)
    runs, held = p.runs[alive], p.held[alive]
    marks = np.zeros(p.n[NODES], np.bool_)
    _mark(p.nodes, runs, marks)
    needed = np.flatnonzero(marks)
    nodes, number = p.nodes[needed], _renumbering(needed, int(p.n[NODES]))
    nodes["parent"], runs["node"] = number[nodes["parent"]], number[runs["node"]]
    nodes["child"], nodes["sibling"] = -1, -1
    timers = _sweep_timers(memory, held, nodes, number)
    slots = _sweep_slots(memory, runs)
    _sweep_store(memory.store, nodes, base)
    p.n[[FREE, ROOT]] = -1
    p.n[[RUNS, NODES, TIMERS]] = len(runs), len(nodes), len(timers)
    queue = longer(p.queue, len(runs) * memory.timings)
    heads = np.full((len(slots), p.heads.shape[1]), -1, np.int64)
    memory.pools = p._replace(runs=runs, held=held, nodes=nodes, timers=timers, queue=queue, slots=slots, heads=heads)
    relink(memory.pools, cells)
    memory.swept = max(LITTLE, 2 * len(needed))


@compiled
def _mark(nodes: Any, runs: Any, marks: Any) -> None:
    """The nodes on the paths of runs."""
    for one in range(len(runs)):
        node = runs[one].node
        while node >= 0 and not marks[node]:
            marks[node] = True
            node = nodes[node].parent


def _renumbering(kept: Numbers, size: int) -> Numbers:
    """From old numbers to new ones; -1 stays."""
    number = np.full(size + 1, -1, np.int64)
    number[kept] = np.arange(len(kept))
    return number


def _sweep_timers(memory: Memory, held: Any, nodes: Any, node_number: Numbers) -> Any:
    """Those that a run waits for or that are among its events."""
    fired = nodes["event"] < 0
    used = np.unique(np.concatenate((held[held >= 0], -1 - nodes["event"][fired])))
    number = _renumbering(used, int(memory.pools.n[TIMERS]))
    held[:] = number[held]
    nodes["event"][fired] = -1 - number[-1 - nodes["event"][fired]]
    timers = memory.pools.timers[used]
    timers["node"] = node_number[timers["node"]]
    memory.timer_places = {int(number[t]): place for t, place in memory.timer_places.items() if number[t] >= 0}
    return timers


def _sweep_slots(memory: Memory, runs: Any) -> Any:
    """Keys that wait for nothing and have lost no start."""
    slots = memory.pools.slots
    used = slots["ended"] != 0
    used[runs["slot"]] = True
    number = _renumbering(np.flatnonzero(used), len(used))
    runs["slot"] = number[runs["slot"]]
    memory.keys = {key: int(number[slot]) for key, slot in memory.keys.items() if number[slot] >= 0}
    return slots[used]


def _sweep_store(store: Store, nodes: Any, base: int) -> None:
    events = nodes["event"]
    old, new = (events >= 0) & (events < base), events >= base
    used = np.unique(events[old])
    if len(used) < base:
        store.keep(used)
        events[old] = _renumbering(used, base)[events[old]]
        events[new] -= base - len(used)
