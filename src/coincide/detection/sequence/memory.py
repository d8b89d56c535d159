"""The state of the compiled loop: its arrays, how they grow, and how what nobody refers to is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import longer
from coincide.detection.keys import Key
from coincide.detection.sequence.loop import (
    COUNTERS,
    ENTRY,
    KEY,
    MADE,
    MADE_ONE,
    NODE,
    NODES,
    RANK,
    ROW,
    SLOT,
    WAIT,
    WAITS,
    Pools,
    mark,
    relink,
)
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Piped
from coincide.detection.snapshots import NEVER
from coincide.model.event import Place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]

LITTLE = 1 << 14
"""Nodes or keys that may be there before anybody looks for those that are needed no more."""


@dataclass
class Memory(Piped):
    """All that changes. Nodes refer to events by their numbers in the store. `places` are where the timers of waits fire."""

    pools: Pools = field(kw_only=True)
    store: Store = field(kw_only=True)
    keys: dict[Key, int] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    left_nodes: int = 0  # when those needed no more were last dropped
    left_keys: int = 0

    @property
    def nodes(self) -> Any:
        return self.pools.nodes[: self.pools.n[NODES]]

    @property
    def waits(self) -> Any:
        return self.pools.waits[: self.pools.n[WAITS]]


def fresh(program: Program) -> Memory:
    stages = len(program.stages) - 1
    keys, nodes, waits, made = (np.zeros(0, kind) for kind in (KEY, NODE, WAIT, MADE_ONE))
    pools = Pools(np.zeros((0, stages), SLOT), keys, nodes, waits, made, np.zeros(COUNTERS, np.int64))
    pipes = program.query.pipes
    store = Store(frozenset({"id", *program.fields}))
    return Memory([0] * len(pipes), [[] for _ in pipes], pools=pools, store=store)


def with_room(p: Pools, stages: int) -> Pools:
    """Room for what an entry may bring about, and for more."""
    n = p.n
    return p._replace(
        nodes=longer(p.nodes, n[NODES] + stages), waits=longer(p.waits, n[WAITS] + 1), made=longer(p.made, n[MADE] + 1)
    )


def with_slots(memory: Memory, keys: list[Key]) -> Numbers:
    """The slots of these keys, made where there are none."""
    known, p = memory.keys, memory.pools
    before = len(known)
    numbers = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    if len(known) > before:
        slots, own = longer(p.slots, len(known)), longer(p.keys, len(known))
        slots["node"][before : len(known)] = -1
        own[before : len(known)] = (NEVER, NEVER, NEVER, -1)
        memory.pools = p._replace(slots=slots, keys=own)
    return numbers


def begin(memory: Memory) -> None:
    memory.pools.n[[ENTRY, MADE, RANK]] = 0
    memory.pools.n[ROW] = -1


# What is kept.


def retain(memory: Memory, shown: EventTable, base: int, known: int, now: int, maxspan: int | None) -> None:
    """After a batch whose rows are the events from `base` on: those that nodes refer to go to the store. The first `known` nodes
    were there before."""
    if len(memory.keys) > max(LITTLE, 2 * memory.left_keys):
        _sweep_keys(memory, now, maxspan)
    if memory.pools.n[NODES] > max(LITTLE, 2 * memory.left_nodes):
        _sweep_nodes(memory, base)
        base, known = len(memory.store), 0
    events = memory.nodes["event"][known:]
    new = events >= base
    rows = np.unique(events[new]) - base
    memory.store.add(shown, rows)
    events[new] = base + np.searchsorted(rows, events[new] - base)


def _sweep_nodes(memory: Memory, base: int) -> None:
    """Nodes that no sequence leads to go, and with them their events."""
    p, slots = memory.pools, memory.pools.slots[: len(memory.keys)]
    pending, waits = slots["node"], memory.waits
    marks = np.zeros(len(memory.nodes), np.bool_)
    mark(p.nodes, np.concatenate((pending.ravel(), waits["node"])), marks)
    needed = np.flatnonzero(marks)
    nodes, number = p.nodes[needed], _renumbering(needed, len(marks))
    nodes["parent"] = number[nodes["parent"]]
    slots["node"], waits["node"] = number[pending], number[waits["node"]]
    _sweep_store(memory.store, nodes, base)
    p.n[NODES] = len(nodes)
    memory.pools = p._replace(nodes=nodes, made=p.made[:0])
    memory.left_nodes = len(nodes)


def _sweep_store(store: Store, nodes: Any, base: int) -> None:
    events = nodes["event"]
    old, new = events < base, events >= base
    used = np.unique(events[old])
    if len(used) < base:
        store.keep(used)
        events[old] = _renumbering(used, base)[events[old]]
        events[new] -= base - len(used)


def _sweep_keys(memory: Memory, now: int, maxspan: int | None) -> None:
    """Keys that wait for nothing, or that time has passed by (section 10), are forgotten."""
    count, p = len(memory.keys), memory.pools
    slots, own = p.slots[:count], p.keys[:count]
    used = (slots["node"] >= 0).any(axis=1) | (own["latest"] != NEVER)
    if maxspan is not None:
        used &= own["touched"] >= now - maxspan
    used |= own["waiting"] >= 0
    number = _renumbering(np.flatnonzero(used), count)
    memory.keys = {key: int(number[slot]) for key, slot in memory.keys.items() if used[slot]}
    memory.waits["slot"] = number[memory.waits["slot"]]
    memory.pools = p._replace(slots=slots[used], keys=own[used])
    memory.left_keys = len(memory.keys)


def _renumbering(kept: Numbers, size: int) -> Numbers:
    """From old numbers to new ones; -1 stays."""
    number = np.full(size + 1, -1, np.int64)
    number[kept] = np.arange(len(kept))
    return number


def keep_waits(memory: Memory, kept: Numbers, places: list[Place]) -> None:
    """Only these still wait; of each where its timer fires."""
    p = memory.pools
    waits = p.waits[kept]
    waits["cause"] = -1
    p.n[WAITS] = len(waits)
    memory.pools = p._replace(waits=waits)
    memory.places = places
    relink(p.keys, waits)
