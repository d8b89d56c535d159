"""The state of the compiled loop: its tables, how they grow, and how what nobody refers to is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.dues import TableDues
from coincide.detection.columns.known import KeyedTable
from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import Table, distinct, longer
from coincide.detection.keys import Key
from coincide.detection.sequence.loop import (
    COUNTERS,
    FOREVER,
    KEY,
    KEYS,
    MADE_ONE,
    NODE,
    SLOT,
    WAIT,
    WAITS,
    Pools,
    keep,
    mark,
    unlink,
)
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import Piped, fresh_key
from coincide.detection.snapshots import NEVER
from coincide.model.event import Place, timer_place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]

LITTLE = 1 << 14
"""Nodes or keys that may be there before anybody looks for those that are needed no more."""

ROOM = 1 << 17
"""For so many nodes there is room from the beginning, where there are as many entries."""


@dataclass
class Memory(Piped):
    """All that changes. Nodes refer to events by their numbers in the store. `places` are where those timers fire whose places do
    not follow from the events that set them; `taken` are the events of samples and joins, which the loop does not know."""

    keys: KeyedTable = field(kw_only=True)
    waits: Table = field(kw_only=True)
    store: Store = field(kw_only=True)
    nodes: Any = field(default_factory=lambda: np.zeros(0, NODE))
    made: Any = field(default_factory=lambda: np.zeros(0, MADE_ONE))
    counters: Any = field(default_factory=lambda: np.zeros(1, COUNTERS))
    places: dict[int, Place] = field(default_factory=dict)
    taken: Numbers = field(default_factory=lambda: np.zeros((0, 4), np.int64))  # key, item, number, event
    left_nodes: int = 0  # when those needed no more were last dropped
    left_keys: int = 0
    written_nodes: int = 0  # those before were written, if they were needed
    written_events: int = 0
    written_kept: int = 0
    renewed: bool = True  # has all changed since the state was written last?

    def __post_init__(self) -> None:
        self.n = self.counters[0]
        self.n.due = FOREVER
        self.dues = TableDues(self.waits, self._due)

    def _due(self, waits: Numbers) -> Numbers:
        due: Numbers = self.waits.rows[waits, WAIT.due]
        return due

    @property
    def pools(self) -> Pools:
        return Pools(self.keys.rows, self.keys.head, self.waits.rows, self.waits.head, self.nodes, self.made, self.counters)

    @property
    def known_nodes(self) -> Any:
        return self.nodes[: self.n.nodes]

    def pending(self, keys: Numbers) -> Numbers:
        """By key and stage, the node of the pending sequence."""
        nodes: Numbers = self.keys.rows[keys, KEY.parts + SLOT.node :: SLOT.width]
        return nodes

    def used(self, keys: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these keys have anything that counts."""
        rows = self.keys.rows
        filled = (rows[keys, KEY.latest] != NEVER) | (rows[keys, KEY.first_wait] >= 0) | (rows[keys, KEY.seen] > 0)
        found: npt.NDArray[np.bool_] = filled | (self.pending(keys) >= 0).any(axis=1)
        return found

    def next_due(self) -> int | None:
        if self.n.cancelled:
            self.n.due = self.dues.now().first()
            self.n.cancelled = 0
        return None if self.n.due == FOREVER else int(self.n.due)


def fresh(program: Program) -> Memory:
    pipes = program.query.pipes
    store = Store(frozenset({"id", *program.fields}))
    keys = KeyedTable(KEYS, len(fresh_key(program).slots))
    return Memory([0] * len(pipes), [[] for _ in pipes], keys=keys, waits=Table(WAITS), store=store)


def make_room(memory: Memory, stages: int, entries: int = 0) -> None:
    """For what an entry may bring about, and for more: so many entries are to come."""
    n = memory.n
    memory.nodes = longer(memory.nodes, n.nodes + max(stages, min(entries, ROOM)))
    memory.made = longer(memory.made, n.made + 1)
    memory.waits.reserve(len(memory.waits) + 1)


def with_slots(memory: Memory, keys: list[Key]) -> Numbers:
    """The rows of these keys, no two of which are equal, made where there are none."""
    found, new = memory.keys.with_keys(keys)
    rows = memory.keys.rows
    rows[new, KEY.latest :] = -1
    rows[new, KEY.latest : KEY.touched + 1] = NEVER
    rows[new, KEY.seen : KEY.closed + 1] = 0
    return found


def begin(memory: Memory) -> None:
    memory.n.made, memory.n.at = 0, -1


# What is kept.


def retain(memory: Memory, shown: EventTable, base: int, known: int, number: Numbers, now: int, maxspan: int | None) -> None:
    """After a batch whose rows are the events from `base` on: those that nodes refer to go to the store. The first `known` nodes
    were there before. There is room for the `number` of each row."""
    if len(memory.keys.known) > max(LITTLE, 2 * memory.left_keys):
        _sweep_keys(memory, now, maxspan)
    if memory.n.nodes > max(LITTLE, 2 * memory.left_nodes):
        _sweep_nodes(memory, base)
        base, known = len(memory.store), 0
    events = memory.known_nodes["event"][known:]
    new = events >= base
    taken = events[new] - base
    rows = distinct(taken, len(shown))
    memory.store.add(shown, rows)
    number[rows] = np.arange(base, base + len(rows))
    events[new] = number[taken]


def _sweep_nodes(memory: Memory, base: int) -> None:
    """Nodes that no sequence leads to go, and with them their events."""
    keys, waits = memory.keys.live(), memory.waits.live()
    pending, waiting = memory.pending(keys), memory.waits.rows[waits, WAIT.node]
    needed = needed_nodes(memory, pending, waiting)
    number = np.full(memory.n.nodes + 1, -1, np.int64)  # the last one is that of -1
    keep(memory.nodes, needed, number)
    memory.n.nodes = memory.left_nodes = len(needed)
    memory.keys.rows[keys, KEY.parts + SLOT.node :: SLOT.width] = number[pending]
    memory.waits.rows[waits, WAIT.node] = number[waiting]
    _sweep_store(memory.store, memory.known_nodes, base)
    memory.renewed = True


def needed_nodes(memory: Memory, pending: Numbers, waiting: Numbers, first: int = 0) -> Numbers:
    """Those that sequences lead to, from a first one on."""
    marks = np.zeros(memory.n.nodes - first, np.bool_)
    mark(memory.nodes, np.concatenate((pending.ravel(), waiting)), marks, first)
    return first + np.flatnonzero(marks)


def _sweep_store(store: Store, nodes: Any, base: int) -> None:
    if not base:
        return
    events = nodes["event"]
    old, new = events < base, events >= base
    used = distinct(events[old])
    if len(used) < base:
        store.keep(used)
        events[old] = _renumbering(used, base)[events[old]]
        events[new] -= base - len(used)


def _sweep_keys(memory: Memory, now: int, maxspan: int | None) -> None:
    """Keys that wait for nothing, or that time has passed by (section 10), are forgotten."""
    keys, rows = memory.keys.live(), memory.keys.rows
    used = memory.used(keys)
    if maxspan is not None:
        used &= (rows[keys, KEY.touched] >= now - maxspan) | (rows[keys, KEY.first_wait] >= 0)
    memory.keys.free(keys[~used])
    memory.left_keys = len(memory.keys.known)


def _renumbering(used: Numbers, size: int) -> Numbers:
    """From old numbers to new ones; -1 stays."""
    number = np.full(size + 1, -1, np.int64)
    number[used] = np.arange(len(used))
    return number


def take_due(memory: Memory, bound: int) -> Numbers:
    """Waits whose timers are due before: they wait no more, though they can still be read."""
    if memory.n.due >= bound:
        return np.zeros(0, np.int64)
    dues = memory.dues.now()
    fired = dues.before(bound)
    dues.note(fired, np.full(len(fired), FOREVER))
    memory.n.due, memory.n.cancelled = dues.first(), 0
    unlink(memory.keys.rows, memory.waits.rows, fired)
    memory.waits.free(fired)
    return fired


def firing_places(memory: Memory, events: Store, order: int, waits: Numbers) -> list[Place]:
    """Where the timers of these waits fire."""
    rows = memory.waits.rows[waits]
    numbers, index = np.unique(memory.nodes["event"][rows[:, WAIT.node]], return_inverse=True)
    setting = events.taken(numbers).place_tuples()
    columns = (rows[:, at].tolist() for at in (WAIT.placed, WAIT.due, WAIT.rank))
    return [
        memory.places[wait] if placed else timer_place(due, setting[event], order, rank)
        for wait, event, placed, due, rank in zip(waits.tolist(), index.tolist(), *columns, strict=True)
    ]
