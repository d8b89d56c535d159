"""Between the kernel's state and the interpreter's, which is the one that is encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coincide.detection.algebra.interpreter import INSTANT, WAKE
from coincide.detection.algebra.nodes.aggregate import WindowState
from coincide.detection.algebra.nodes.chain import Match, Step, StepState
from coincide.detection.algebra.nodes.negation import NegationState
from coincide.detection.algebra.nodes.prefix import Prefix, first_prefix
from coincide.detection.algebra.occurrence import Occurrence, of_detection, of_event
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.sequence.sequences import Memory, SequenceKernel
from coincide.detection.algebra.shape.shapes import EITHER, LEAF, WITHOUT, Leaf
from coincide.detection.algebra.state import Copy, PlanState
from coincide.detection.algebra.window.windows import WindowKernel, WindowMemory
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.keys import Key
from coincide.model.event import Event
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.algebra.kernel.kernel import Columns, Kernel

Wakes = dict[int, set[tuple[int, Key]]]


# To objects.


def objects(kernel: Kernel, state: Columns) -> PlanState:
    wakes: Wakes = {}
    copies: list[dict[Key, Copy]] = []
    for number, (own, memory) in enumerate(zip(kernel.kernels, state.memories, strict=True)):
        if isinstance(own, WindowKernel):
            copies.append(_window_copies(own, memory, state.start, number, wakes))
        else:
            copies.append(_Reader(own, memory).copies())
    timers = [Timer(place, (WAKE, due)) for due, place in state.timers.items() if due in wakes]
    place = kernel.waiting_place(state)
    waiting: dict[int, list[Event]] = {}
    if place is not None and state.waiting is not None:
        timers.append(Timer(place, (INSTANT, place[0])))
        waiting[place[0]] = state.waiting.events()
    found = PlanState(copies, Timers(sorted(timers)), waiting, wakes, {}, dict(state.serials))
    found.start, found.latest, found.ended = state.start, state.latest, state.ended
    return found


def _fresh(program: Program, start: int) -> Copy:
    return Copy([node.fresh() for node in program.nodes], start)


def _events(chunks: list[EventTable]) -> list[Event]:
    return [event for chunk in chunks for event in chunk.events()]


class _Reader:
    """Occurrences of the pools as objects: they are made as the nodes would have made them."""

    def __init__(self, kernel: SequenceKernel, memory: Memory) -> None:
        self.kernel = kernel
        self.operators = kernel.shape.operators
        self.occurrences = memory.pools.occurrences
        self.waiting = memory.pools.waiting
        self.keys = memory.slots.keys()
        self._events = _events(memory.events.tables)
        self._known: dict[tuple[int, int], Occurrence] = {}
        self._prefixes: dict[int, Prefix] = {}

    def copies(self) -> dict[Key, Copy]:
        """Equalities divide a store by key here, not there."""
        program, found = self.kernel.program, dict[Key, Copy]()
        for slot, key in enumerate(self.keys[: len(self.waiting)]):
            if not self.waiting[slot]["count"].any():
                continue
            own = key[: len(program.keys)]
            copy = found.get(own) or found.setdefault(own, _fresh(program, 0))
            for operator in self.operators:
                if operator.store >= 0:
                    self._fill(copy.states[operator.node.number], slot, operator)
        for copy in found.values():
            for state in copy.states:
                _sort(state)
        return found

    def _fill(self, state: Any, slot: int, operator: Any) -> None:
        if operator.kind == WITHOUT:
            state.negated += [self._value(operator.right, one) for one in self._listed(slot, operator.store)]
        else:
            state.prefixes += [self._prefix(operator, one) for one in self._listed(slot, operator.store)]
            state.rights += [self._value(operator.right, one) for one in self._listed(slot, operator.store + 1)]

    def _listed(self, slot: int, store: int) -> list[int]:
        found, one = [], int(self.waiting[slot, store]["first"])
        while one >= 0:
            found.append(one)
            one = int(self.occurrences[one]["after"])
        return found

    def _prefix(self, operator: Any, one: int) -> Prefix:
        return self._joined(operator.left, one) if operator.continues else first_prefix(self._value(operator.left, one))

    def _joined(self, number: int, one: int) -> Prefix:
        """What a step made."""
        if one not in self._prefixes:
            operator, o = self.operators[number], self.occurrences[one]
            assert isinstance(operator.node, Step)
            pair = self._prefix(operator, int(o["left"])), self._value(operator.right, int(o["right"]))
            self._prefixes[one] = operator.node.made_of([Match(*pair, None, False)])
        return self._prefixes[one]

    def _value(self, number: int, one: int) -> Occurrence:
        """An occurrence as it comes out of an operator, with the aliases on the way."""
        if (number, one) not in self._known:
            operator, maker = self.operators[number], int(self.occurrences[one]["operator"])
            if operator.kind == LEAF:
                leaf, number = self.kernel.shape.leaves[operator.leaf], int(self.occurrences[one]["event"])
                value = leaf_occurrence(leaf, self._events, number)
                value = value.binding(leaf.type) if leaf.reference.alias else value
            elif operator.kind in (EITHER, WITHOUT):
                value = self._value(operator.left if maker <= operator.left else operator.right, one)
            else:
                value = self._joined(number, one).occurrence
            for alias in operator.bindings:
                value = value.binding(alias)
            self._known[number, one] = value
        return self._known[number, one]


def leaf_occurrence(leaf: Leaf, events: Sequence[Event], number: int) -> Occurrence:
    """Detections that are kept have numbers in their order, below all that come later."""
    return of_detection(events[number], number - len(events)) if leaf.made else of_event(events[number])


def _sort(state: Any) -> None:
    if isinstance(state, StepState):
        state.prefixes.sort(key=lambda prefix: prefix.occurrence.order)
        state.rights.sort(key=lambda right: right.order)
    elif isinstance(state, NegationState):
        state.negated.sort(key=lambda negated: negated.hi)


def _window_copies(kernel: WindowKernel, memory: WindowMemory, start: int | None, number: int, wakes: Wakes) -> dict[Key, Copy]:
    """A key that is not observed starts afresh when it is seen again, as one that is new."""
    program, windows = kernel.program, kernel.windows
    found: dict[Key, Copy] = {}
    keys = memory.slots.keys()

    def state_of(slot: int) -> WindowState:
        key = keys[slot]
        if key not in found:
            found[key] = _fresh(program, start or 0)
            found[key].states[kernel.shape.node.number].since = start or 0
        state: WindowState = found[key].states[kernel.shape.node.number]
        return state

    def wake(slot: int, window: int) -> None:
        wakes.setdefault(windows.end(window), set()).add((number, keys[slot]))

    if memory.next is not None:
        leaf = kernel.shape.leaves[0]  # the only one, if it is made
        kept = _events(memory.events.tables)
        events = [leaf_occurrence(leaf, kept, number) for number in range(len(kept))]
        pairs = kernel.pairs(memory)
        for member, window in zip(pairs.member.tolist(), pairs.window.tolist(), strict=True):
            slot = int(memory.slot[member])
            state_of(slot).members.setdefault(window, []).append(events[member])
            wake(slot, window)
    observed = kernel.first_observed(memory)
    for slot, window, since in zip(observed.slot.tolist(), observed.window.tolist(), observed.since.tolist(), strict=True):
        state = state_of(slot)
        state.next, state.since = window, since
        wake(slot, window)
    if kernel.shape.reads_detections and memory.next is not None:
        for key in keys:  # a detection may come when the windows of its instant are closed
            found.setdefault(key, _fresh(program, start or 0))
        for copy in found.values():
            copy.states[kernel.shape.node.number].closed = windows.end(memory.next - 1)
    if not program.keys and start is not None and () not in found:
        found[()] = _fresh(program, start)
        found[()].states[kernel.shape.node.number].since = start
    return found
