"""From the interpreter's state, which is the one that is encoded, to the kernel's."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detection.algebra.interpreter import WAKE
from coincide.detection.algebra.nodes.aggregate import WindowState
from coincide.detection.algebra.occurrence import INTERVAL, Occurrence, attribute_key
from coincide.detection.algebra.sequence.pools import OCCURRENCE, OCCURRENCES, WAITING
from coincide.detection.algebra.sequence.sequences import Memory, SequenceKernel
from coincide.detection.algebra.shape.shapes import EITHER, LEAF, WITHOUT, Leaf
from coincide.detection.algebra.state import Copy, PlanState
from coincide.detection.algebra.window.observed import Observed
from coincide.detection.algebra.window.windows import WindowKernel, WindowMemory
from coincide.detection.keys import Key, key_part
from coincide.expr.scalar import event_field
from coincide.model.event import Event
from coincide.model.table import table_of

if TYPE_CHECKING:
    from coincide.detection.algebra.kernel.kernel import Columns, Kernel


class Uncovered(Exception):
    """Something has a stamp that is a range, or two events are one by time and id."""


def columns(kernel: Kernel, state: PlanState) -> Columns | None:
    """None: columns cannot hold what the state holds."""
    found = kernel.fresh()
    events = [event for some in state.waiting.values() for event in some]
    if any(event.place[1] != 0 or event.place[0] != event.hi for event in events) or len(state.waiting) > 1:
        return None
    try:
        for own, memory, copies in zip(kernel.kernels, found.memories, state.copies, strict=True):
            if isinstance(own, WindowKernel):
                _load_windows(own, memory, copies)
            else:
                _Writer(own, memory).load(copies)
    except Uncovered:
        return None
    found.waiting = table_of(sorted(events, key=lambda event: event.place)) if events else None
    found.timers = {timer.due: timer.place for timer in state.timers.live() if timer.payload[0] == WAKE}
    found.serials, found.start, found.latest, found.ended = dict(state.serials), state.start, state.latest, state.ended
    return found


Identity = tuple[Any, ...]
"""Of an event or detection, by order; of detections of the same events the number decides."""


def _identity(o: Occurrence) -> Identity:
    return *o.order, tuple(sorted(o.detections))


def _event(occurrence: Occurrence, leaf: Leaf | None = None) -> Event:
    o = occurrence
    if leaf is not None and leaf.made == bool(o.primitives):
        raise Uncovered  # an event with the name of a definition
    return Event(o.type or "", o.lo, o.hi, o.id, o.attributes, o.origin, o.source, o.space)


def _add(events: dict[Identity, Event], identity: Identity, event: Event) -> None:
    known = events.setdefault(identity, event)
    if known is not event and (known != event or attribute_key(known.attributes) != attribute_key(event.attributes)):
        raise Uncovered


def _is_exact(o: Occurrence) -> bool:
    """A point, or a detection whose ends are known."""
    return o.lo == o.hi or (o.kind == INTERVAL and (o.latest_start, o.earliest_end) == (o.lo, o.hi))


class _Writer:
    def __init__(self, kernel: SequenceKernel, memory: Memory) -> None:
        self.kernel = kernel
        self.memory = memory
        self.operators = kernel.shape.operators
        self._rows: list[tuple[int, ...]] = []
        self._events: dict[Identity, Event] = {}
        self._keys: list[Identity] = []  # of the event of each row that is a leaf
        self._lists: dict[tuple[int, int], list[int]] = defaultdict(list)

    def load(self, copies: dict[Key, Copy]) -> None:
        for key, copy in copies.items():
            for operator in self.operators:
                if operator.store >= 0:
                    self._load(key, copy.states[operator.node.number], operator)
        self._write()

    def _load(self, key: Key, state: Any, operator: Any) -> None:
        if operator.kind == WITHOUT:
            best: dict[int, Occurrence] = {}
            for b in state.negated:
                slot = self._slot(key, b)
                if slot is not None and (slot not in best or best[slot].lo <= b.lo):
                    best[slot] = b
            for slot, b in best.items():
                self._lists[slot, operator.store].append(self._put(operator.right, b))
            return
        for prefix in state.prefixes:
            self._list(key, prefix.occurrence, operator.store, operator.left)
        for right in state.rights:
            self._list(key, right, operator.store + 1, operator.right)

    def _list(self, key: Key, occurrence: Occurrence, store: int, number: int) -> None:
        slot = self._slot(key, occurrence)
        if slot is not None:
            self._lists[slot, store].append(self._put(number, occurrence))

    def _slot(self, key: Key, occurrence: Occurrence) -> int | None:
        """None: a null, which equals nothing."""
        leaf = occurrence
        while leaf.parts:
            leaf = leaf.parts[0]
        event = _event(leaf)
        tied = [key_part(event_field(attributes[event.type])(event)) for attributes in self.kernel.shape.tied]
        return None if None in tied else int(self.memory.slots.of([(*key, *tied)])[0])

    def _put(self, number: int, occurrence: Occurrence) -> int:
        operator = self.operators[number]
        if operator.kind == EITHER:
            return self._put(self._branch(operator, occurrence), occurrence)
        if operator.kind == WITHOUT:
            return self._put(operator.left, occurrence)
        left = right = -1
        if operator.kind == LEAF:
            if not _is_exact(occurrence):
                raise Uncovered
            leaf = self.kernel.shape.leaves[operator.leaf]
            _add(self._events, _identity(occurrence), _event(occurrence, leaf))
        else:
            left, right = self._put(operator.left, occurrence.parts[0]), self._put(operator.right, occurrence.parts[1])
        event = -1 if operator.kind != LEAF else len(self._keys)
        if operator.kind == LEAF:
            self._keys.append(_identity(occurrence))
        self._rows.append((occurrence.lo, occurrence.hi, left, right, event, number, -1, -1))
        return len(self._rows) - 1

    def _branch(self, operator: Any, occurrence: Occurrence) -> int:
        if operator.right < 0:
            return int(operator.left)
        leaf = occurrence
        while leaf.parts:
            leaf = leaf.parts[0]
        below = [o for o in self.operators[: operator.left + 1] if o.kind == LEAF]
        first = {self.kernel.shape.leaves[o.leaf].type for o in below[-self._leaves(operator.left) :]}
        return int(operator.left if leaf.type in first else operator.right)

    def _leaves(self, number: int) -> int:
        operator = self.operators[number]
        return 1 if operator.kind == LEAF else sum(self._leaves(o) for o in (operator.left, operator.right) if o >= 0)

    def _write(self) -> None:
        memory = self.memory
        keys = sorted(self._events)
        memory.events.tables = [table_of([self._events[key] for key in keys])] if keys else []
        numbers = {key: number for number, key in enumerate(keys)}
        waiting = np.zeros((len(memory.slots), memory.pools.waiting.shape[1]), WAITING)
        waiting["first"] = waiting["last"] = -1
        occurrences = np.array(self._rows, OCCURRENCE)
        leaves = occurrences["event"] >= 0
        occurrences["event"][leaves] = [numbers[key] for key in self._keys]
        for (slot, store), listed in self._lists.items():
            waiting[slot, store] = listed[0], listed[-1], len(listed)
            occurrences["before"][listed[1:]] = listed[:-1]
            occurrences["after"][listed[:-1]] = listed[1:]
        memory.pools = memory.pools._replace(occurrences=occurrences, waiting=waiting)
        memory.pools.n[OCCURRENCES] = len(occurrences)


def _load_windows(kernel: WindowKernel, memory: WindowMemory, copies: dict[Key, Copy]) -> None:
    members: dict[Identity, Event] = {}
    keys: dict[Identity, Key] = {}
    leaf = kernel.shape.leaves[0]  # the only one, if it is made
    observed: list[tuple[int, int, int]] = []
    windows: set[int] = set()
    for key, copy in copies.items():
        state: WindowState = copy.states[kernel.shape.node.number]
        for window, own in state.members.items():
            windows.add(window)
            for occurrence in own:
                identity = _identity(occurrence)
                _add(members, identity, _event(occurrence, leaf))
                keys[identity] = key
        if state.next is not None and state.since is not None:
            windows.add(state.next)
            observed.append((int(memory.slots.of([key])[0]), state.next, state.since))
    ordered = sorted(members)
    memory.events.tables = [table_of([members[key] for key in ordered])] if ordered else []
    memory.hi = np.array([members[key].hi for key in ordered], np.int64)
    memory.slot = memory.slots.of([keys[key] for key in ordered])
    memory.next = min(windows, default=None)
    if observed:
        memory.observed = Observed(*np.array(observed, np.int64).T)
