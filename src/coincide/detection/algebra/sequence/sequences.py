"""Definitions of `;`, `+`, `|`, `-`, silences and delays over columns: rows by instant and key go through the compiled loop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter

import numpy as np

from coincide.detection.algebra.kernel.emission import (
    UNREAD,
    Found,
    composed,
    key_places,
    key_ranks,
    mentioned,
    read_by,
    without_copies,
)
from coincide.detection.algebra.kernel.rows import Mask, Numbers, Rows, Slots, fields_of, held_by_parts, slots_of
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.sequence.loop import run
from coincide.detection.algebra.sequence.pools import (
    DONE,
    OCCURRENCE,
    OPERATOR,
    UNSET,
    Groups,
    Pools,
    dues,
    empty_pools,
    leaves_of,
    sweep,
)
from coincide.detection.algebra.shape.shapes import LEAF, MOST_LEAVES, NEVER, Operators
from coincide.detection.columns.dues import Dues
from coincide.detection.columns.operations import OF_TWO
from coincide.detection.columns.origins import Coded, ascending, coded
from coincide.detection.columns.records import Records
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.store import Store, gathered
from coincide.detection.columns.tables import distinct, lengthened, longer, numbered
from coincide.expr.vector import Picked, evaluate
from coincide.model.sorting import stable_order

NOTHING = Groups(np.zeros(1, np.int64), *(np.zeros(0, np.int64) for _ in Groups._fields[1:]))
NO_VALUES = np.zeros((0, 0))
LITTLE = 1 << 15
"""Occurrences that may be there before anybody looks for those that are needed no more."""


@dataclass
class Memory:
    """All that changes. The event with number i of the store is what leaves refer to. Of what was written last are known: its
    epoch (0: nothing was), how many keys and events there were, and which slots have been touched since; `renewed`: all has.
    `dues`: when something is made in which slot though nothing comes; None: nobody has looked."""

    slots: Slots
    pools: Pools
    events: Store
    swept: int = 0
    dues: Dues | None = None
    below: Coded | None = None  # of a step, where detections are read
    epoch: int = 0
    written: tuple[int, int] = (0, 0)
    touched: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    renewed: bool = True
    stirred: bool = True  # may anything have changed since it was written last?

    def go_on(self) -> None:
        """All is written: what comes from now on is what changes."""
        n = self.pools.n[0]
        n.written, n.removed, n.last_removed = n.occurrences, 0, -1
        self.written = len(self.slots), len(self.events)
        self.touched = np.zeros(len(self.slots), np.bool_)
        self.renewed = self.stirred = False

    def renew(self) -> None:
        """Numbers are others than those that were written."""
        self.pools.n[0].written = 0
        self.renewed = True


_numbers = attrgetter(*(OPERATOR.names or ()))


@lru_cache(1024)
def _table(operators: tuple[tuple[int, ...], ...]) -> Records:
    """Definitions that differ in types and tests only have one."""
    return np.array([*operators], OPERATOR)


class SequenceKernel:
    """Steps one definition."""

    def __init__(self, program: Program, shape: Operators, columns: frozenset[str] | None, is_read: bool) -> None:
        self.program = program
        self.shape = shape
        self.columns = columns
        self.table = _table(tuple(map(_numbers, shape.operators)))
        self.is_read = is_read
        self._read = read_by(program, is_read)
        self._mentioned = mentioned(program)

    @cached_property
    def _room(self) -> tuple[Numbers, Numbers]:
        return np.zeros(4 * MOST_LEAVES, np.int64), np.zeros(4 * MOST_LEAVES, np.int64)

    @cached_property
    def _conditions(self) -> Numbers:
        """Leaves by their operators, and the comparison."""
        leaves = {operator.leaf: number for number, operator in enumerate(self.shape.operators) if operator.kind == LEAF}
        rows = [[*(leaves[leaf] for leaf in one.leaves), OF_TWO[one.comparison]] for one in self.shape.conditions]
        return np.array(rows, np.int64).reshape(-1, 3)

    def measure(self, memory: Memory, rows: Rows) -> bool:
        """Works out the values that conditions compare. Are all of them numbers, as the loop wants them?"""
        tables = [*memory.events.chunks, *rows.tables]
        starts = np.cumsum([0, *map(len, tables)])
        values = np.full((2 * len(self.shape.conditions), starts[-1]), np.nan)
        sides = [side for one in self.shape.conditions for side in zip(one.leaves, one.trees, strict=True)]
        for number, (leaf, tree) in enumerate(sides):
            for table, start in zip(tables, starts.tolist(), strict=False):
                some = table.rows_of_types(frozenset({self.shape.leaves[leaf].type}))
                column = evaluate(tree, Picked(TableRows(table), some))
                if not column.is_numeric:
                    return False
                if column.numbers is not None:
                    values[number, start + some] = column.numbers
        memory.pools = memory.pools._replace(conditions=self._conditions, values=values)
        return True

    def fresh(self) -> Memory:
        pools = empty_pools(len(self.shape.operators), self.shape.stores, self.shape.registers)
        return Memory(Slots(len(self.program.keys) + len(self.shape.tied)), pools, Store(self.columns, placed=False), LITTLE)

    def step(self, memory: Memory, rows: Rows, start: int | None) -> Found | None:
        """`start`: of the observation."""
        if self.shape.is_absence and not self.program.keys and not len(memory.slots) and start is not None:
            memory.slots.of([()])
            memory.pools = _with_slots(memory.pools, 1)
            memory.pools.registers[0] = start
            memory.dues, memory.stirred = None, True
        base = len(memory.events)
        concerned = any(len(rows.of_type(leaf.type)) for leaf in self.shape.leaves)
        if not concerned and not self.shape.is_timed:
            return None
        groups = self._groups(memory, rows, base) if concerned else NOTHING
        due = self._dues(memory).before(rows.limit)
        if not len(groups.event) and not len(due):
            return None
        memory.stirred = True
        known = int(memory.pools.n[0].occurrences)
        if self.shape.reads_detections:
            self._code(memory, rows)
        self.run(memory, groups, rows.limit, distinct(np.concatenate((groups.slot, due))))
        count = int(memory.pools.n[0].made)
        made, slot = memory.pools.made[:count].T.copy()
        found = self.found(memory, rows, made, slot, memory.slots) if count else None
        self.retain(memory, rows, base, known)
        memory.below, memory.pools = None, memory.pools._replace(values=NO_VALUES)
        return found

    def _code(self, memory: Memory, rows: Rows) -> None:
        """What detections are made of decides on their order, and on what they can be joined with."""
        memory.below = found = coded([*memory.events.chunks, *rows.tables])
        memory.pools = memory.pools._replace(codes=found.codes, offsets=found.offsets)
        size = 2 * len(self.shape.leaves) * (int(np.diff(found.offsets).max(initial=0)) + 1)
        if size > len(self._room[0]):
            self._room = (np.zeros(size, np.int64), np.zeros(size, np.int64))

    def _dues(self, memory: Memory) -> Dues:
        """When something is made in which slot though nothing comes."""
        if memory.dues is None:
            memory.dues = Dues()
            self._note_dues(memory, np.arange(min(len(memory.slots), len(memory.pools.waiting))))
        return memory.dues

    def _note_dues(self, memory: Memory, slots: Numbers) -> None:
        if self.shape.is_timed and memory.dues is not None:
            found = np.empty(len(slots), np.int64)
            dues(memory.pools, self.table, slots, found)
            memory.dues.note(slots, found)

    def due(self, memory: Memory) -> int | None:
        """When something is made though nothing comes."""
        due = self._dues(memory).first()
        return due if due < NEVER else None

    def waits(self, memory: Memory, last: int) -> bool:
        return self.due(memory) is not None

    def _groups(self, memory: Memory, rows: Rows, base: int) -> Groups:
        parts = [rows.held_by(leaf) for leaf in self.shape.leaves]
        seen = [rows.of_type(leaf.type) for leaf in self.shape.leaves] if self.shape.is_absence else []
        some, held = held_by_parts(parts, seen, rows.length)
        slot = slots_of(self.shape, self.program.keys, rows, some, memory.slots) if len(some) else some
        return grouped(rows, some, slot, held, base)

    def run(self, memory: Memory, groups: Groups, limit: int, slots: Numbers) -> None:
        """`slots`: of the groups, and those in which something is due."""
        p = memory.pools
        p = _with_slots(p, len(memory.slots))
        n = p.n[0]
        n.made = n.group = n.due = n.need = 0
        if not memory.renewed:
            memory.touched = longer(memory.touched, len(memory.slots))
            memory.touched[slots] = True
        timed = self.shape.is_timed
        while True:
            memory.pools = p = _with_room(p, len(groups.starts) * 2)
            if run(p, self.table, groups, self._room, timed, slots if timed else slots[:0], min(limit, NEVER)) == DONE:
                break
        self._note_dues(memory, slots)

    # What is made.

    def found(
        self, memory: Memory, rows: Rows, made: Numbers, slot: Numbers, slots: Slots, whose: Numbers | None = None
    ) -> Found:
        """Of these occurrences, each in a slot, and of one of several definitions where it is said `whose` they are."""
        p = memory.pools
        events = np.full((len(made), len(self.shape.leaves)), -1, np.int64)
        leaves_of(p.occurrences, self.table, made, events, self._room[0])
        index = self._ascending(memory, made, slot, events)
        if index is not None:
            made, slot, events = made[index], slot[index], events[index]
            whose = None if whose is None else whose[index]
        ordered = _ordered(events)
        there = ordered >= 0
        tables = [*memory.events.chunks, *rows.tables]
        used, flat = numbered(ordered[there], sum(map(len, tables)))
        table = gathered(tables, used, self._read or fields_of(tables) - UNREAD, placed=False)
        offsets = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
        aliases = {
            alias: np.searchsorted(used, events[:, number])
            for number, leaf in enumerate(self.shape.leaves)
            if not leaf.optional
            for alias in leaf.aliases
            if alias in self._mentioned
        }
        ends = p.occurrences["lo"][made], p.occurrences["hi"][made]
        found = composed(self.program, table, (flat, offsets), ends, slots, slot, aliases)
        if whose is not None:
            return replace(found, whose=whose)
        return without_copies(found) if self.shape.reads_detections or self.shape.is_absence else found

    def _ascending(self, memory: Memory, made: Numbers, slot: Numbers, events: Numbers) -> Numbers | None:
        """How what is made comes in order; None: as it is. Detections can be made of the same events as others: then keys
        decide, then which operands were joined first."""
        hi, lo = memory.pools.occurrences["hi"][made], memory.pools.occurrences["lo"][made]
        if self.shape.is_absence:
            return np.lexsort((key_places(memory.slots, slot), lo, hi))
        if memory.below is None:
            return _ascending(hi, lo, events)
        ordered = np.sort(events, axis=1)
        offsets = np.concatenate(([0], np.cumsum((ordered >= 0).sum(axis=1))))
        below = memory.below.united(ordered[ordered >= 0], offsets)
        ranks = key_ranks(memory.slots, len(self.program.keys), slot)
        last_first = events[:, ::-1].tolist() if self.shape.tied else [[]] * len(made)
        return ascending(hi, lo, below, [(rank, *joined) for rank, joined in zip(ranks, last_first, strict=True)])

    # What is kept.

    def retain(self, memory: Memory, rows: Rows, base: int, known: int) -> None:
        """The events that occurrences refer to go to the store, under new numbers. The first `known` were there before."""
        if memory.pools.n[0].occurrences > memory.swept and rows.length:
            self.compact(memory, int(rows.hi[-1]))
            memory.swept = max(LITTLE, 2 * int(memory.pools.n[0].occurrences))
            events = memory.pools.occurrences["event"][: memory.pools.n[0].occurrences]
            tables = [*memory.events.chunks, *rows.tables]
            used, index = numbered(events[events >= 0], sum(map(len, tables)))
            memory.events.chunks = [gathered(tables, used, self.columns, placed=False)] if len(used) else []
            events[events >= 0] = index
            return
        events = memory.pools.occurrences["event"][known : memory.pools.n[0].occurrences]
        new = events >= base
        used, index = numbered(events[new] - base, sum(map(len, rows.tables)))
        events[new] = base + index
        memory.events.add_from(rows.tables, used)

    def compact(self, memory: Memory, now: int) -> None:
        """Only what waits, with its parts."""
        p = memory.pools
        size = int(p.waiting["count"].sum()) * len(self.shape.operators)
        remaining = np.empty(max(size, len(p.occurrences) // 2), OCCURRENCE)
        count = sweep(p, self.table, now, remaining)
        known = slice(len(memory.slots))
        used = np.flatnonzero(p.waiting["count"][known].any(axis=1) | (p.registers[known] != UNSET).any(axis=1))
        if 2 * len(used) < len(memory.slots):
            memory.slots.keep(used)
            p = p._replace(waiting=p.waiting[used], registers=p.registers[used])
            memory.dues = None
        memory.pools = p._replace(occurrences=remaining)
        memory.pools.n[0].occurrences = count
        memory.renew()


def grouped(rows: Rows, some: Numbers, slot: Numbers, held: Numbers, base: int) -> Groups:
    """Rows by slot and instant; those of a slot ascend as they are given, and those without one are left out. Slots have nothing
    to do with each other, and what one of them keeps is found faster if nothing of others comes between."""
    if len(slot) and slot.min() < 0:
        some, slot, held = some[slot >= 0], slot[slot >= 0], held[slot >= 0]
    if (slot[1:] < slot[:-1]).any():
        order = stable_order(slot)
        some, slot, held = some[order], slot[order], held[order]
    hi = rows.hi[some]
    new = (hi[1:] != hi[:-1]) | (slot[1:] != slot[:-1])
    starts = np.concatenate(([0], np.flatnonzero(new) + 1, [len(some)])) if len(some) else np.zeros(1, np.int64)
    return Groups(starts, rows.lo[some], np.ascontiguousarray(hi), slot, held, some + base)


def _ordered(events: Numbers) -> Numbers:
    """Those of each row, ascending, those that are none first; most come like that but for operands that nothing has."""
    some = events[:, (events >= 0).any(axis=0)]
    if (some >= 0).all() and (some[:, 1:] > some[:, :-1]).all():
        return some
    return np.sort(events, axis=1)


def _with_slots(p: Pools, size: int) -> Pools:
    known = len(p.waiting)
    waiting, registers = lengthened(p.waiting, size), lengthened(p.registers, size)
    waiting["first"][known:] = waiting["last"][known:] = -1
    registers[known:] = UNSET
    return p._replace(waiting=waiting, registers=registers)


def _with_room(p: Pools, spare: int) -> Pools:
    n, need, occurrences = p.n[0], int(p.n[0].need), p.occurrences
    wanted = max(int(n.occurrences), int(n.made)) + max(2 * need, spare)
    if len(occurrences) < wanted:
        occurrences = longer(occurrences[: n.occurrences], wanted)
    made = longer(p.made, len(occurrences))
    return p._replace(occurrences=occurrences, made=made, new=longer(p.new, max(2 * need, 64)))


def _ascending(hi: Numbers, lo: Numbers, events: Numbers) -> Numbers | None:
    """How detections come in ascending order; None: as they are."""
    if (hi[1:] > hi[:-1]).all():
        return None
    order = np.argsort(hi)
    by_hi = hi[order]
    if (by_hi[1:] > by_hi[:-1]).all():
        return order
    far = np.where(events < 0, np.iinfo(np.int64).max, events)  # ascending, none at the end
    ordered = np.sort(far, axis=1)
    ordered[ordered == np.iinfo(np.int64).max] = -1  # what is a beginning of the other comes first
    return np.lexsort((*ordered.T[::-1], lo, hi))
