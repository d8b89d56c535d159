"""The interpreter's state of a definition as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coincide.detection.algebra.layout import KEYS, MEMBERS, OBSERVED, OCCURRENCES, REGISTERS, SEQUENCE_KIND, WAITING, WINDOW_KIND
from coincide.detection.algebra.nodes.aggregate import WindowState
from coincide.detection.algebra.nodes.base import Node
from coincide.detection.algebra.nodes.chain import Match, Step, StepState
from coincide.detection.algebra.nodes.negation import Negation, NegationState
from coincide.detection.algebra.nodes.prefix import Prefix, first_prefix
from coincide.detection.algebra.nodes.selection import Every, Nth, Once, OnceState
from coincide.detection.algebra.nodes.silence import DelayNode, NotState, SilenceStep
from coincide.detection.algebra.occurrence import INTERVAL, Occurrence, attribute_key, of_detection, of_event
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.relations import keys_of, turns
from coincide.detection.algebra.shape.shapes import (
    EITHER,
    LEAF,
    NEVER,
    PASSING,
    TIMED,
    WITHOUT,
    Leaf,
    Operator,
    Operators,
    Window,
    stores_of,
)
from coincide.detection.algebra.state import Copy
from coincide.detection.columns.codec import Relations, Rows
from coincide.detection.columns.store import NOTHING
from coincide.detection.columns.tables import Shape
from coincide.detection.keys import Key, key_part
from coincide.expr.scalar import event_field
from coincide.model.event import Event
from coincide.model.table import table_of

Copies = Mapping[Key, Copy]
Wakes = dict[int, set[Key]]


class Uncovered(Exception):
    """Something has a stamp that is a range, or two events are one by time and id: columns cannot hold it."""


def relations_of(shape: Operators | Window, copies: Copies) -> Relations:
    return _Writer(shape).relations(copies) if isinstance(shape, Operators) else _window_relations(shape, copies)


def copies_of(
    program: Program, shape: Operators | Window, relations: Relations, start: int | None
) -> tuple[dict[Key, Copy], Wakes]:
    """As the interpreter would hold it, and when keys are to be looked at. `start`: of the observation."""
    if isinstance(shape, Operators):
        reader = _Reader(program, shape, relations)
        return reader.copies(), reader.wakes
    return _WindowReader(program, shape, relations, start).copies()


# From objects.

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


def _rows(shape: Shape, found: Sequence[tuple[int, ...]], values: list[Any] | None = None) -> Rows:
    names = [field.name for field in shape.fields]
    columns = dict(zip(names, np.array(found, np.int64).reshape(-1, len(names)).T, strict=True)) if names else {}
    size = len(found if values is None else values)
    return Rows(shape, np.arange(size), columns, size, values=values)


def _relations(kind: str, rows: Sequence[Rows], events: Mapping[Identity, Event], notes: Mapping[str, list[int]]) -> Relations:
    table = table_of([events[key] for key in sorted(events)]) if events else NOTHING
    numbered_notes = {name: np.array(numbers, np.int64) for name, numbers in {**notes, "events": [len(table)]}.items()}
    return Relations(kind, {some.shape.name: some for some in rows}, np.arange(len(table)), table, numbered_notes)


class _Writer:
    def __init__(self, shape: Operators) -> None:
        self.shape = shape
        self._keys: dict[Key, int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._events: dict[Identity, Event] = {}
        self._identities: dict[int, Identity] = {}  # of the events of rows that are leaves
        self._lists: dict[tuple[int, int], list[int]] = defaultdict(list)

    def relations(self, copies: Copies) -> Relations:
        registers: list[tuple[int, int, int]] = []
        for key, copy in copies.items():
            for operator in self.shape.operators:
                if operator.store >= 0:
                    self._load(key, copy.states[operator.node.number], operator)
                if operator.register >= 0:
                    slot = self._keys.setdefault(key, len(self._keys))
                    values = _registers(copy.states[operator.node.number])
                    registers += [(slot, operator.register + number, value) for number, value in enumerate(values)]
        numbers = {identity: number for number, identity in enumerate(sorted(self._events))}
        events = {row: numbers[identity] for row, identity in self._identities.items()}
        occurrences = [(*own, events.get(row, -1)) for row, own in enumerate(self._rows)]
        waiting = np.array([(one, *at) for at, listed in self._lists.items() for one in listed], np.int64).reshape(-1, 3)
        waiting_rows = list(zip(*waiting.T.tolist(), turns(waiting).tolist(), strict=True))
        tables = [_rows(KEYS, (), list(self._keys)), _rows(OCCURRENCES, occurrences), _rows(WAITING, waiting_rows)]
        tables += [_rows(REGISTERS, registers)] if self.shape.registers else []
        return _relations(SEQUENCE_KIND, tables, self._events, {})

    def _load(self, key: Key, state: Any, operator: Operator) -> None:
        if operator.kind == WITHOUT:
            best: dict[int, Occurrence] = {}
            for b in state.negated:
                slot = self._slot(key, b)
                if slot is not None and (slot not in best or best[slot].lo <= b.lo):
                    best[slot] = b
            for slot, b in best.items():
                self._lists[slot, operator.store].append(self._put(operator.right, b))
            return
        for store, number in stores_of(operator).items():
            for stored in _stored(operator, state, store - operator.store):
                if store > operator.store or not _is_taken_away(operator.node, state, stored):
                    self._list(key, stored.occurrence if isinstance(stored, Prefix) else stored, store, number)

    def _list(self, key: Key, occurrence: Occurrence, store: int, number: int) -> None:
        slot = self._slot(key, occurrence)
        if slot is not None:
            self._lists[slot, store].append(self._put(number, occurrence))

    def _slot(self, key: Key, occurrence: Occurrence) -> int | None:
        """None: a null, which equals nothing."""
        event = _event(_first_leaf(occurrence))
        tied = [key_part(event_field(attributes[event.type])(event)) for attributes in self.shape.tied]
        return None if None in tied else self._keys.setdefault((*key, *tied), len(self._keys))

    def _put(self, number: int, occurrence: Occurrence) -> int:
        operator = self.shape.operators[number]
        if operator.kind == EITHER:
            return self._put(self._branch(operator, occurrence), occurrence)
        if operator.kind in PASSING:
            return self._put(operator.left, occurrence)
        left = right = -1
        if operator.kind in TIMED:
            left = self._put(operator.left, occurrence.parts[0])
        elif operator.kind != LEAF:
            left, right = self._put(operator.left, occurrence.parts[0]), self._put(operator.right, occurrence.parts[1])
        elif not _is_exact(occurrence):
            raise Uncovered
        else:
            identity = self._identities[len(self._rows)] = _identity(occurrence)
            _add(self._events, identity, _event(occurrence, self.shape.leaves[operator.leaf]))
        self._rows.append((number, left, right))
        return len(self._rows) - 1

    def _branch(self, operator: Operator, occurrence: Occurrence) -> int:
        if operator.right < 0:
            return operator.left
        return operator.left if _first_leaf(occurrence).type in self._types(operator.left) else operator.right

    def _types(self, number: int) -> set[str]:
        operator = self.shape.operators[number]
        if operator.kind == LEAF:
            return {self.shape.leaves[operator.leaf].type}
        return {kind for side in (operator.left, operator.right) if side >= 0 for kind in self._types(side)}


def _stored(operator: Operator, state: Any, index: int) -> list[Any]:
    """Where the interpreter has what waits in a store of an operator."""
    if isinstance(operator.node, Step):
        found: list[Any] = state.prefixes if index == 0 else state.between if operator.gap >= 0 else state.rights
    else:
        found = state.negated if operator.kind == WITHOUT or index == 1 else state.pending
    return found


def _is_taken_away(node: Node, state: Any, waiting: Any) -> bool:
    """Has what is negated come already?"""
    if isinstance(node, Negation):
        return node.hit(state, waiting, waiting.lo + (node.length or 0))
    return isinstance(node, SilenceStep) and any(node.breaks(n, waiting) for n in state.between)


def _registers(state: Any) -> list[int]:
    """Numbers that are kept, as the kernel has them."""
    if isinstance(state, NotState):
        return [state.since if state.armed else NEVER]
    if isinstance(state, OnceState):
        return [] if state.last is None else [state.last]
    window = max(state.counts, default=None)
    return [] if window is None else [state.counts[window], window]


def _set_registers(state: Any, values: Mapping[int, int]) -> None:
    """By their numbers, from the first of the operator on."""
    if isinstance(state, NotState):
        state.since, state.armed = (0, False) if values[0] == NEVER else (values[0], True)
    elif isinstance(state, OnceState):
        state.last = values[0]
    elif 1 in values:
        state.counts = {values[1]: values[0]}


def _first_leaf(occurrence: Occurrence) -> Occurrence:
    while occurrence.parts:
        occurrence = occurrence.parts[0]
    return occurrence


def _window_relations(shape: Window, copies: Copies) -> Relations:
    events: dict[Identity, Event] = {}
    keys: dict[Key, int] = {}
    of: dict[Identity, int] = {}
    leaf = shape.leaves[0]  # the only one, if it is made
    observed: list[tuple[int, int, int]] = []
    windows: set[int] = set()
    for key, copy in copies.items():
        state: WindowState = copy.states[shape.node.number]
        for window, own in state.members.items():
            windows.add(window)
            for occurrence in own:
                identity = _identity(occurrence)
                _add(events, identity, _event(occurrence, leaf))
                of[identity] = keys.setdefault(key, len(keys))
        if state.next is not None and state.since is not None:
            windows.add(state.next)
            observed.append((keys.setdefault(key, len(keys)), state.next, state.since))
    members = [(of[identity], number) for number, identity in enumerate(sorted(events))]
    tables = [_rows(KEYS, (), list(keys)), _rows(MEMBERS, members), _rows(OBSERVED, observed)]
    return _relations(WINDOW_KIND, tables, events, {"next": [min(windows)] if windows else []})


# To objects.


def _events_of(relations: Relations) -> dict[int, Event]:
    return dict(zip(relations.refs.tolist(), relations.events.events(), strict=True))


def _leaf_occurrence(leaf: Leaf, event: Event, number: int) -> Occurrence:
    """Detections that are kept have numbers in their order, below all that come later."""
    return of_detection(event, number - (1 << 62)) if leaf.made else of_event(event)


def _columns(rows: Rows) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in rows.columns.values()), strict=True))


def _fresh(program: Program, start: int) -> Copy:
    return Copy([node.fresh() for node in program.nodes], start)


class _Reader:
    """Occurrences are made as the nodes would have made them."""

    def __init__(self, program: Program, shape: Operators, relations: Relations) -> None:
        self.program = program
        self.shape = shape
        self.rows = relations.rows
        self.keys = keys_of(self.rows["keys"], len(program.keys) + len(shape.tied))
        occurrences = self.rows["occurrences"]
        self.occurrences = dict(zip(occurrences.numbers.tolist(), _columns(occurrences), strict=True))
        self._events = _events_of(relations)
        self._known: dict[tuple[int, int], Occurrence] = {}
        self._prefixes: dict[int, Prefix] = {}
        self.wakes: Wakes = {}

    def copies(self) -> dict[Key, Copy]:
        """Equalities divide a store by key here, not there."""
        found: dict[Key, Copy] = {}
        of_store = {store: (operator, side) for operator in self.shape.operators for store, side in stores_of(operator).items()}
        for one, key, store, _ in sorted(_columns(self.rows["waiting"]), key=lambda row: row[-1]):
            own = self.keys[key][: len(self.program.keys)]
            copy = found.get(own) or found.setdefault(own, _fresh(self.program, 0))
            operator, side = of_store[store]
            node, index, value = operator.node, store - operator.store, self._value(side, one)
            is_prefix = isinstance(node, Step) and index == 0
            _stored(operator, copy.states[node.number], index).append(self._prefix(operator, one) if is_prefix else value)
            if isinstance(node, Negation | SilenceStep | DelayNode) and operator.kind in TIMED and index == 0:
                self.wakes.setdefault(node.due(value), set()).add(own)
        self._read_registers(found)
        for copy in found.values():
            for state in copy.states:
                _sort(state)
        return found

    def _read_registers(self, found: dict[Key, Copy]) -> None:
        values: dict[int, dict[int, int]] = defaultdict(dict)
        for key, register, value in _columns(self.rows["registers"]) if self.shape.registers else ():
            values[key][register] = value
        for key, own in values.items():
            copy = found.get(self.keys[key]) or found.setdefault(self.keys[key], _fresh(self.program, 0))
            for operator in self.shape.operators:
                if operator.register in own:
                    state = copy.states[operator.node.number]
                    _set_registers(state, {number - operator.register: value for number, value in own.items()})
                    if isinstance(state, NotState) and state.armed:
                        self.wakes.setdefault(state.since + operator.length, set()).add(self.keys[key])

    def _prefix(self, operator: Operator, one: int) -> Prefix:
        return self._joined(operator.left, one) if operator.continues else first_prefix(self._value(operator.left, one))

    def _joined(self, number: int, one: int) -> Prefix:
        """What a step made."""
        if one not in self._prefixes:
            operator, (_, left, right, _) = self.shape.operators[number], self.occurrences[one]
            assert isinstance(operator.node, Step)
            prefix = self._prefix(operator, left)
            node = operator.node
            second = node.silence(prefix.hi) if isinstance(node, SilenceStep) else self._value(operator.right, right)
            self._prefixes[one] = node.made_of([Match(prefix, second, None, False)])
        return self._prefixes[one]

    def _value(self, number: int, one: int) -> Occurrence:
        """An occurrence as it comes out of an operator, with the aliases on the way."""
        if (number, one) not in self._known:
            operator, (maker, *_, event) = self.shape.operators[number], self.occurrences[one]
            if operator.kind == LEAF:
                leaf = self.shape.leaves[operator.leaf]
                value = _leaf_occurrence(leaf, self._events[event], event)
                value = value.binding(leaf.type) if leaf.reference.alias else value
            elif operator.kind in (EITHER, *PASSING):
                value = self._value(operator.left if maker <= operator.left else operator.right, one)
                if isinstance(operator.node, Once | Nth | Every):
                    value = value.without_aliases()
            elif isinstance(operator.node, Negation | DelayNode):
                value = operator.node.later(self._value(operator.left, self.occurrences[one][1]))
            else:
                value = self._joined(number, one).occurrence
            for alias in operator.bindings:
                value = value.binding(alias)
            self._known[number, one] = value
        return self._known[number, one]


def _sort(state: Any) -> None:
    if isinstance(state, StepState):
        state.prefixes.sort(key=lambda prefix: prefix.occurrence.order)
        state.rights.sort(key=lambda right: right.order)
    elif isinstance(state, NegationState):
        state.negated.sort(key=lambda negated: negated.hi)


class _WindowReader:
    """A key that is not observed starts afresh when it is seen again, as one that is new."""

    def __init__(self, program: Program, shape: Window, relations: Relations, start: int | None) -> None:
        self.program = program
        self.shape = shape
        self.relations = relations
        self.start = start
        self.keys = keys_of(relations.rows["keys"], len(program.keys))
        following = relations.notes["next"].tolist()
        self.next: int | None = following[0] if following else None
        self.found: dict[Key, Copy] = {}
        self.wakes: Wakes = {}

    def copies(self) -> tuple[dict[Key, Copy], Wakes]:
        if self.next is not None:
            self._members(self.next)
            self._observed(self.next)
            if self.shape.reads_detections:
                self._close(self.next)
        if not self.program.keys and self.start is not None and () not in self.found:
            self._state(()).since = self.start
        return self.found, self.wakes

    def _state(self, key: Key) -> WindowState:
        if key not in self.found:
            self.found[key] = _fresh(self.program, self.start or 0)
        state: WindowState = self.found[key].states[self.shape.node.number]
        return state

    def _wake(self, key: Key, window: int) -> None:
        self.wakes.setdefault(self.shape.node.windows.end(window), set()).add(key)

    def _members(self, following: int) -> None:
        leaf, events = self.shape.leaves[0], _events_of(self.relations)  # the only one, if it is made
        for number, number_of_event in _columns(self.relations.rows["members"]):
            key, event = self.keys[number], events[number_of_event]
            occurrence = _leaf_occurrence(leaf, event, number_of_event)
            for window in self.shape.node.windows.containing(event.hi):
                if window >= following:
                    state = self._state(key)
                    state.since = self.start or 0
                    state.members.setdefault(window, []).append(occurrence)
                    self._wake(key, window)

    def _observed(self, following: int) -> None:
        """Of each key the window that it is observed in next."""
        for number, window, since in sorted(_columns(self.relations.rows["observed"]), reverse=True):
            key, state = self.keys[number], self._state(self.keys[number])
            state.next, state.since = window if self.program.keys else following, since
        for key, copy in self.found.items():
            state = copy.states[self.shape.node.number]
            if state.next is not None:
                self._wake(key, state.next)

    def _close(self, following: int) -> None:
        """A detection may come when the windows of its instant are closed."""
        for key in self.keys:
            self._state(key)
        for copy in self.found.values():
            copy.states[self.shape.node.number].closed = self.shape.node.windows.end(following - 1)
