"""Aggregates over windows as columns: all windows that a step closes are grouped, by key, in one go (5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from coincide.detection.algebra.kernel.emission import (
    UNREAD,
    Found,
    composed,
    key_places,
    key_ranks,
    passing,
    read_by,
    without_copies,
)
from coincide.detection.algebra.kernel.rows import Mask, Numbers, Rows, Slots, fields_of, held_by_parts, slots_of
from coincide.detection.algebra.nodes.selection import Threshold, Windows
from coincide.detection.algebra.program import OWN, Program
from coincide.detection.algebra.shape.shapes import Window
from coincide.detection.algebra.window.observed import NOTHING, Ask, Groups, Observed, first_asks, throughout, with_empty
from coincide.detection.algebra.window.totals import TOTALS, Totals, sizes
from coincide.detection.columns.origins import Coded, ascending, coded
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.store import Store, gathered
from coincide.detection.columns.tables import distinct, longer, numbered
from coincide.expr.tree import Compare, Literal, Reference
from coincide.expr.vector import Table, evaluate, holds
from coincide.model.column import Column
from coincide.model.sorting import stable_order
from coincide.model.table import EventTable

LITTLE = 1 << 15
"""Members that may have been dropped before anybody looks for keys that are needed no more."""


@dataclass
class WindowMemory:
    """Members of open windows, in their order, with their slots. `next` is the first window that is not closed; `observed`:
    keys that will make something when it closes, also if nothing comes. `recent`: slots of members that have been dropped since
    somebody looked for keys that are needed no more. Of what was written last are known: its epoch (0: nothing
    was), how many keys, members (those that have been `dropped` among them) and observations there were, and how many had been
    dropped; `renewed`: all has changed since."""

    stirred: ClassVar[bool] = True  # time alone closes windows
    slots: Slots
    events: Store
    slot: Numbers = field(default_factory=NOTHING.copy)
    next: int | None = None
    observed: Observed = field(default_factory=Observed)
    hi: Numbers = field(default_factory=NOTHING.copy)
    dropped: int = 0
    recent: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    epoch: int = 0
    written: tuple[int, int, int, int] = (0, 0, 0, 0)
    renewed: bool = True

    def go_on(self) -> None:
        """All is written: what comes from now on is what changes."""
        self.written = len(self.slots), self.dropped + len(self.hi), len(self.observed.slot), self.dropped
        self.renewed = False


@dataclass(frozen=True, eq=False)
class Pairs:
    """Members in windows: a member is in as many as contain it."""

    member: Numbers
    window: Numbers


class WindowKernel:
    """Steps one definition."""

    def __init__(self, program: Program, shape: Window, columns: frozenset[str] | None, is_read: bool) -> None:
        self.program = program
        self.shape = shape
        self.columns = columns
        self.windows: Windows = shape.node.windows
        self.aggregator = shape.node.aggregator
        self.fills = self.aggregator.fills_empty_windows
        tested = [test.tree for node in (shape.node, *shape.thresholds) for test in node.tests]
        self._read = read_by(program, is_read, [*tested, *([] if self.aggregator.tree is None else [self.aggregator.tree])])

    def fresh(self) -> WindowMemory:
        return WindowMemory(Slots(len(self.program.keys)), Store(self.columns, placed=False))

    def step(self, memory: WindowMemory, rows: Rows, start: int | None, asks: list[Ask]) -> Found | None:
        """`start`: of the observation. Wishes to be woken go to `asks`."""
        self._begin(memory, start, asks)
        base = len(memory.hi)
        new = self._take(memory, rows, asks)
        if memory.next is None:
            return None
        self._ask_for_members(memory, base, asks)
        last = (rows.limit - 1 - self.windows.offset - self.windows.length) // self.windows.step
        found = None
        if last >= memory.next:
            groups = self._closing(memory, last, asks)
            numbers = np.concatenate((np.arange(base), base + new))
            found = self._found(memory, [*memory.events.chunks, *rows.tables], numbers, groups) if len(groups.window) else None
        self._retain(memory, rows, new, max(memory.next, last + 1))
        return found

    def _begin(self, memory: WindowMemory, start: int | None, asks: list[Ask]) -> None:
        if self.program.keys or not self.fills or start is None or memory.next is not None:
            return
        memory.next = self.windows.first_ending(start)
        memory.observed = Observed(memory.slots.of([()]), np.array([memory.next]), np.array([start]))
        asks.append((None, self.windows.end(memory.next)))

    # What comes.

    def _take(self, memory: WindowMemory, rows: Rows, asks: list[Ask]) -> Numbers:
        """New members join the old ones; which rows they are."""
        if not rows.length:
            return NOTHING
        seen = [rows.of_type(kind) for kind in {leaf.type for leaf in self.shape.leaves}]
        some, held = _held([rows.held_by(leaf) for leaf in self.shape.leaves], seen, rows.length)
        slot = slots_of(self.shape, self.program.keys, rows, some, memory.slots)
        if len(slot) and slot.min() < 0:
            some, slot, held = some[slot >= 0], slot[slot >= 0], held[slot >= 0]
        if not len(some):
            return NOTHING
        hi = rows.hi[some]
        if memory.next is None:
            memory.next = self.windows.first_ending(int(hi[0]))
        if self.program.keys and self.fills:
            first = -((self.windows.length + self.windows.offset - hi) // self.windows.step)
            seen_first = np.sort(np.unique(first * len(memory.slots) + slot, return_index=True)[1])
            new = Observed(slot, first, hi).take(seen_first)
            asks.extend(first_asks(new, self.windows))
            memory.observed = memory.observed.and_then(new)
        memory.hi, memory.slot = np.concatenate((memory.hi, hi[held])), np.concatenate((memory.slot, slot[held]))
        return some[held]

    def _spans(self, memory: WindowMemory, begin: int = 0) -> tuple[Numbers, Numbers]:
        """As `Windows.containing`, for the members from `begin` on, but for what is closed."""
        assert memory.next is not None
        offset, step, hi = self.windows.offset, self.windows.step, memory.hi[begin:]
        first = np.maximum(_steps(hi, offset + self.windows.length, step), memory.next)
        return first, np.maximum(_steps(hi, offset, step), first)

    def pairs(self, memory: WindowMemory, last: int | None = None) -> Pairs:
        """Members in open windows, or in those up to number `last`."""
        first, end = self._spans(memory)
        if last is not None:
            first = first[: np.searchsorted(first, last, "right")]
            end = np.minimum(end[: len(first)], last + 1)
        return _spread(first, end)

    def _ask_for_members(self, memory: WindowMemory, begin: int, asks: list[Ask]) -> None:
        """A window is asked for by the first of its members; spans begin and end one after another."""
        first, end = self._spans(memory, begin)
        asking = np.flatnonzero(np.diff(end, prepend=end[:1] - 1))
        asked = np.append(first[:1], end[asking[1:] - 1])
        new = _spread(np.maximum(first[asking], asked), end[asking])
        instants = memory.hi[begin + asking[new.member]]
        asks.extend((at, self.windows.end(k)) for k, at in zip(new.window.tolist(), instants.tolist(), strict=True))

    # Windows that close.

    def _closing(self, memory: WindowMemory, last: int, asks: list[Ask]) -> Groups:
        pairs = self.pairs(memory, last)
        slot = memory.slot[pairs.member]
        order = stable_order(slot, pairs.window)
        pairs, slot = Pairs(pairs.member[order], pairs.window[order]), slot[order]
        begins = (pairs.window[1:] != pairs.window[:-1]) | (slot[1:] != slot[:-1])
        starts = np.concatenate(([0], np.flatnonzero(begins) + 1)) if len(slot) else NOTHING
        groups = Groups(pairs.window[starts], slot[starts], starts, np.append(starts[1:], len(slot)) - starts, pairs.member)
        if not self.fills:
            return groups
        if not self.program.keys:
            asks.extend((self.windows.end(k), self.windows.end(k + 1)) for k in range(memory.next or 0, last + 1))
            return throughout(groups, memory.observed, range(memory.next or 0, last + 1))
        asks.extend((self.windows.end(k), self.windows.end(k + 1)) for k in distinct(groups.window).tolist())
        groups, memory.observed = with_empty(groups, memory.observed, len(memory.slots), last)
        memory.renewed = True
        return groups

    # What is made.

    def _found(self, memory: WindowMemory, tables: list[EventTable], numbers: Numbers, groups: Groups) -> Found | None:
        """`numbers`: those of the members in the tables."""
        members = groups.members
        is_used = np.zeros(len(numbers), np.bool_)
        is_used[members] = True
        table = gathered(tables, numbers[is_used], self._read or fields_of(tables) - UNREAD, placed=False)
        flat = (np.cumsum(is_used) - 1)[members]
        offsets = np.concatenate(([0], np.cumsum(groups.size)))
        value, there = self._values(table, flat, offsets)
        for threshold in self.shape.thresholds:
            there = there & _passing(value, threshold)
            if threshold.less and self.fills and groups.since is not None:
                there = there & (self.windows.offset + groups.window * self.windows.step >= groups.since)
        index = np.flatnonzero(there)
        index = index[self._ascending(groups, memory, index, self._below(table, flat, offsets))]
        return self._made(memory, table, groups, index, flat, offsets, value) if len(index) else None

    def _values(self, table: EventTable, flat: Numbers, offsets: Numbers) -> Totals:
        """The aggregate's value in each window, and where something is made (5.5)."""
        tree, does = self.aggregator.tree, self.aggregator.does
        if does is None or tree is None:
            return sizes(offsets)
        return TOTALS[does.kernel](evaluate(tree, TableRows(table)).take(flat), offsets)

    def _below(self, table: EventTable, flat: Numbers, offsets: Numbers) -> Coded | None:
        """What windows are made of, if that can be the same for several keys."""
        if not (self.shape.reads_detections and self.program.keys):
            return None
        if self.aggregator.does is not None:
            return coded([table]).united(flat, offsets)
        return coded([table]).united(flat[offsets[1:] - 1], np.arange(len(offsets)))

    def _ascending(self, groups: Groups, memory: WindowMemory, index: Numbers, below: Coded | None) -> Numbers:
        """Windows as they close; of one window by the first event, empty ones before all others, by their keys."""
        if below is not None:
            ranks = key_ranks(memory.slots, len(self.program.keys), groups.slot[index])
            window = groups.window[index]
            return ascending(window, window, below.united(index, np.arange(len(index) + 1)), [(rank,) for rank in ranks])
        size, start = groups.size[index], groups.start[index]
        at = start + size - 1 if self.aggregator.does is None else start
        first = np.append(groups.member, -1)[np.where(size > 0, at, len(groups.member))]
        empty = size == 0
        rank = np.zeros(len(index), np.int64)
        if empty.sum() > 1:
            rank[empty] = key_places(memory.slots, groups.slot[index][empty])
        return np.lexsort((rank, first, groups.window[index]))

    def _made(
        self,
        memory: WindowMemory,
        table: EventTable,
        groups: Groups,
        index: Numbers,
        flat: Numbers,
        offsets: Numbers,
        value: Column,
    ) -> Found | None:
        begins, sizes = offsets[index], groups.size[index]
        if self.aggregator.does is None:
            begins, sizes = begins + sizes - 1, np.ones(len(index), np.int64)
        ends = np.cumsum(sizes)
        rows = flat[np.repeat(begins - ends + sizes, sizes) + np.arange(int(ends[-1]))]
        parts = rows, np.concatenate(([0], ends))
        lo = self.windows.offset + groups.window[index] * self.windows.step
        stamps = lo, lo + self.windows.length
        attribute = self.aggregator.attribute
        results = {attribute: value.take(index)} if attribute else {}
        tests = [test.tree for node in (self.shape.node, *self.shape.thresholds) for test in node.tests]
        passed = passing(tests, table, parts, stamps, results) if tests else np.ones(1, np.bool_)
        if not passed.all():
            index = index[passed]
            return self._made(memory, table, groups, index, flat, offsets, value) if len(index) else None
        found = composed(self.program, table, parts, stamps, memory.slots, groups.slot[index], results=results)
        if OWN.isdisjoint(self.program.keys):  # each carries its key, of which there is one detection a window
            return found
        alike = self.shape.reads_detections or (groups.size[index] == 0).sum() > 1  # windows of several keys without events
        return without_copies(found) if alike else found

    # What is kept.

    def waits(self, memory: WindowMemory, last: int) -> bool:
        """Does it wait for a time at which, with no further event after `last`, it would make something?"""
        if memory.next is None:
            return False
        first, end = self._spans(memory)
        observed = self.windows.start(memory.next) < last and len(memory.observed.slot) > 0
        return observed or bool((end > first).any())

    def _retain(self, memory: WindowMemory, rows: Rows, new: Numbers, following: int) -> None:
        memory.next = following
        memory.events.add_from(rows.tables, new)
        first = int(np.searchsorted(memory.hi, self.windows.start(following), "right"))
        if first and (first >= len(memory.hi) // 2 or first > 1 << 16):
            memory.events.drop(first)
            memory.recent = longer(memory.recent, len(memory.slots))
            memory.recent[memory.slot[:first]] = True
            memory.hi, memory.slot, memory.dropped = memory.hi[first:], memory.slot[first:], memory.dropped + first
            if memory.dropped - memory.written[-1] > max(LITTLE, 2 * len(memory.hi)):
                self._forget_keys(memory)

    def _forget_keys(self, memory: WindowMemory) -> None:
        """Keys that no member has or had of late, and nobody observes, go, if they are many: most come again."""
        memory.dropped, memory.written, memory.renewed = 0, (0, 0, 0, 0), True
        slot, observed, recent = memory.slot, memory.observed.slot, np.flatnonzero(memory.recent)
        used, index = numbered(np.concatenate((slot, observed, recent)), len(memory.slots))
        memory.recent = np.zeros(0, np.bool_)
        if 2 * len(used) < len(memory.slots):
            memory.slots.keep(used)
            memory.slot, slot, _ = np.split(index, np.cumsum((len(slot), len(observed))))
            memory.observed = replace(memory.observed, slot=slot)


def _held(parts: Sequence[Numbers], seen: Sequence[Numbers], length: int) -> tuple[Numbers, Mask]:
    """Rows that are seen, and which of them a reference holds."""
    if len(parts) == len(seen) == 1 and len(parts[0]) == len(seen[0]):
        return parts[0], np.ones(len(parts[0]), np.bool_)
    some, bits = held_by_parts(parts, seen, length)
    return some, bits != 0


def _steps(instants: Numbers, offset: int, step: int) -> Numbers:
    """By how many steps instants, which ascend, are after an offset, the last one begun: of many, where the next begins."""
    if not len(instants):
        return instants
    first, last = (-((offset - int(instants[at])) // step) for at in (0, -1))
    if last - first > len(instants) // 8:
        return np.asarray(-((offset - instants) // step))
    ends = np.searchsorted(instants, offset + step * np.arange(first, last), "right")
    return np.repeat(np.arange(first, last + 1), np.diff(ends, prepend=0, append=len(instants)))


def _spread(first: Numbers, end: Numbers) -> Pairs:
    """Member i in the windows from first[i] to end[i]."""
    sizes = np.maximum(end - first, 0)
    if len(sizes) and sizes.min() == sizes.max() == 1:
        return Pairs(np.arange(len(sizes)), first)
    member = np.repeat(np.arange(len(sizes)), sizes)
    return Pairs(member, np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(len(member)))


def _passing(value: Column, threshold: Threshold) -> Mask:
    assert value.numbers is not None
    if value.rests is not None or type(threshold.limit) is int:
        test = Compare("<" if threshold.less else ">", Reference("value"), Literal(threshold.limit))
        return holds(test, Table(len(value), {"value": value}))
    return np.asarray((value.numbers < threshold.limit) if threshold.less else (value.numbers > threshold.limit))
