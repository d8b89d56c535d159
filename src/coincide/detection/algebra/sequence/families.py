"""Definitions of one form, stepped as one: they differ in the types and tests of their references, and in what they give.

A row that a definition reads is a row of its own, and a key begins with the number of the definition. So what a batch costs
grows with such rows; what there are of definitions costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from coincide.detection.algebra.kernel.emission import Found
from coincide.detection.algebra.kernel.rows import Numbers, Rows, Slots
from coincide.detection.algebra.sequence.pools import COUNTERS, OCCURRENCE, Groups, empty_pools, sweep
from coincide.detection.algebra.sequence.sequences import LITTLE, NOTHING, Memory, SequenceKernel, grouped
from coincide.detection.algebra.shape.shapes import UNBOUNDED, Leaf, tests_of
from coincide.detection.columns.asking import Asking, Question
from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.splitting import by_number
from coincide.detection.columns.store import Store, gathered
from coincide.detection.keys import Key
from coincide.model.table import EventTable

SEVERAL = 8
"""Fewer definitions are stepped one by one."""


@dataclass(frozen=True, eq=False)
class Family:
    """Some of a plan's definitions, by their numbers there."""

    numbers: tuple[int, ...]
    kernels: tuple[SequenceKernel, ...]

    @property
    def _any(self) -> SequenceKernel:
        return self.kernels[0]

    def fresh(self) -> Memory:
        one = self._any.fresh()
        return replace(one, slots=Slots(1 + one.slots.parts))

    def step(self, memory: Memory, rows: Rows) -> list[Found]:
        """What is found; it says whose it is."""
        base, known = len(memory.events), int(memory.pools.n[0].occurrences)
        groups = self._groups(memory, rows, base)
        if not len(groups.event):
            return []
        self._any.run(memory, groups, rows.limit, groups.slot)
        found = list(self._found(memory, rows)) if memory.pools.n[0].made else []
        self._any.retain(memory, rows, base, known)
        return found

    def _groups(self, memory: Memory, rows: Rows, base: int) -> Groups:
        some, owner, leaves = self._asking.of(rows.column("type"), lambda asked, few: rows.passing(asked[0], asked[1], few))
        return grouped(rows, some, self._slots(memory, rows, owner, some), leaves, base) if len(some) else NOTHING

    @cached_property
    def _asking(self) -> Asking:
        return Asking([[*map(_question, kernel.shape.leaves)] for kernel in self.kernels])

    def _slots(self, memory: Memory, rows: Rows, owner: Numbers, some: Numbers) -> Numbers:
        names = self._any.program.keys
        codes, keys = key_codes([rows.column(name).take(some).singles for name in names]) if names else (owner * 0, [()])
        pairs = np.where(codes < 0, -1, owner * len(keys) + codes)
        used, index = np.unique(pairs, return_inverse=True)
        absent = int(used[0] < 0)
        whose, which = (numbers.tolist() for numbers in np.divmod(used[absent:], len(keys) or 1))
        slots = memory.slots.of([(float(number), *keys[key]) for number, key in zip(whose, which, strict=True)])
        return np.concatenate((np.full(absent, -1), slots))[index]

    def _found(self, memory: Memory, rows: Rows) -> Iterator[Found]:
        made, slot = memory.pools.made[: memory.pools.n[0].made].T.copy()
        owner = _owners(memory, slot)
        if self._alike:
            found = self._any.found(memory, rows, made, *self._slots_of(memory, slot), owner)
            yield replace(found, table=self._named(found), whose=np.array(self.numbers)[found.whose])
            return
        for number, own in enumerate(by_number(owner, len(self.kernels))):
            if not len(own):
                continue
            whose = np.full(len(own), self.numbers[number])
            yield self.kernels[number].found(memory, rows, made[own], *self._slots_of(memory, slot[own]), whose)

    @property
    def _alike(self) -> bool:
        """Do detections of one definition differ from those of another by their type only?"""
        return self._any.program.given is None and self._any.program.order is not None and not self._any.is_read

    def _named(self, found: Found) -> EventTable:
        assert found.whose is not None
        names = pa.array([kernel.program.name for kernel in self.kernels], pa.string())
        kind = pa.DictionaryArray.from_arrays(pa.array(found.whose.astype(np.int32)), names)
        return replace(found.table, fields={**found.table.fields, "type": kind}, _columns={})

    def _slots_of(self, memory: Memory, slots: Numbers) -> tuple[Numbers, Slots]:
        """Slots as a definition has them by itself: of these, which may be of several."""
        numbers = dict[Key, int]()
        used, index = np.unique(slots, return_inverse=True)
        own = [numbers.setdefault(key[1:], len(numbers)) for key in memory.slots.known.taken(used)]
        alone = Slots(memory.slots.parts - 1)
        alone.of([*numbers])
        return np.array(own, np.int64)[index], alone

    # Each by itself.

    def apart(self, memory: Memory) -> Iterator[tuple[int, Memory]]:
        """What each definition remembers, by its number."""
        slots = by_number(_owners(memory, np.arange(len(memory.slots))), len(self.kernels))
        for number, kernel, own in zip(self.numbers, self.kernels, slots, strict=True):
            yield number, self._part(memory, kernel, own) if len(own) else kernel.fresh()

    def _part(self, memory: Memory, kernel: SequenceKernel, own: Numbers) -> Memory:
        p, shape = memory.pools, kernel.shape
        pools = p._replace(waiting=p.waiting[own], registers=p.registers[own], n=np.zeros(1, COUNTERS))
        stored = np.empty(int(pools.waiting["count"].sum()) * len(shape.operators), OCCURRENCE)
        stored = stored[: sweep(pools, kernel.table, -UNBOUNDED, stored)]  # nothing is too old then
        pools.n[0].occurrences = len(stored)
        there = stored["event"] >= 0
        used, index = np.unique(stored["event"][there], return_inverse=True)
        stored["event"][there] = index
        chunks = [gathered(memory.events.chunks, used, kernel.columns, placed=False)] if len(used) else []
        empty = empty_pools(len(shape.operators), shape.stores, shape.registers)
        pools = empty._replace(occurrences=stored, waiting=pools.waiting, registers=pools.registers, n=pools.n)
        return Memory(self._slots_of(memory, own)[1], pools, Store(kernel.columns, chunks, placed=False), LITTLE)


def _question(leaf: Leaf) -> Question:
    tests, places = tuple(tests_of(leaf)), tuple(leaf.reference.places)
    return leaf.type, (tests, places) if tests or places else None


def _owners(memory: Memory, slots: Numbers) -> Numbers:
    """Of which definition each slot is."""
    used, index = np.unique(slots, return_inverse=True)
    return np.array([key[0] for key in memory.slots.known.taken(used)], np.int64)[index]


def families(kernels: Sequence[object]) -> list[Family]:
    """Those of several definitions."""
    forms: dict[object, list[tuple[int, SequenceKernel]]] = {}
    for number, kernel in enumerate(kernels):
        if isinstance(kernel, SequenceKernel) and (form := _form(kernel)) is not None:
            forms.setdefault(form, []).append((number, kernel))
    return [Family(*zip(*members, strict=True)) for members in forms.values() if len(members) >= SEVERAL]


def _form(kernel: SequenceKernel) -> object | None:
    """All that definitions of a family have in common. None: there is more to it than types and tests."""
    shape, program = kernel.shape, kernel.program
    if shape.is_timed or shape.tied or shape.conditions or program.made_types:
        return None
    features = program.given is None, kernel.is_read, program.order is None
    return *features, program.keys, kernel.columns, len(shape.leaves), shape.stores, shape.registers, kernel.table.tobytes()


def is_empty(memory: Memory) -> bool:
    return not len(memory.slots)
