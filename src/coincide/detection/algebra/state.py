"""The state of a plan, and its encoding object by object: one part for each definition, so that what is unchanged keeps its
state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from coincide.detection.algebra.intake import Latest, Seen
from coincide.detection.algebra.nodes.prefix import Prefix
from coincide.detection.algebra.occurrence import Leaf, Occurrence
from coincide.detection.algebra.program import Program
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.keys import Key, key_value
from coincide.detection.snapshots import (
    check_stamp,
    damaged,
    decoded,
    events_of,
    item,
    items,
    key_of,
    key_of_order,
    stored_event,
    stored_key,
    timer_place_of,
)
from coincide.model.bounds import Began, Count, Instant
from coincide.model.event import Event, StoredValue, Value
from coincide.model.space import Space
from coincide.model.stamp import OrderKey

VERSION = 1
DEPTH = 4
"""An occurrence is at most so many times as deep as its expression has operators."""
OCCURRENCE, PREFIX = 1, 2  # extension types


@dataclass
class Copy:
    """One independent detector: the states of its nodes, and when its observation started."""

    states: list[Any]
    start: int


@dataclass
class PlanState:
    """All that changes. `waiting`: events of instants that are not evaluated yet. `wakes`: which definitions (and keys)
    want to be evaluated at a time. `latest`: the hi of the last event."""

    copies: list[dict[Key, Copy]]
    timers: Timers = field(default_factory=Timers)
    waiting: dict[int, list[Event]] = field(default_factory=dict)
    wakes: dict[int, set[tuple[int, Key]]] = field(default_factory=dict)
    seen: Seen = field(default_factory=dict)
    serials: dict[str, int] = field(default_factory=dict)
    start: int | None = None
    latest: int = -(2**63)
    ended: bool = False


class Shared(msgspec.Struct, array_like=True):
    """What all definitions of a plan have in common; each part has it."""

    timers: list[tuple[Any, tuple[Literal["instant", "wake"], Instant]]]
    waiting: dict[Instant, list[Event]]
    seen: Seen
    serials: dict[str, Count]
    start: Instant | None
    latest: Began
    ended: bool


class Row(msgspec.Struct, array_like=True):
    """An occurrence; others are referred to by their numbers."""

    lo: Instant
    hi: Instant
    kind: Literal["P", "PI", "I"]
    latest_start: Instant
    earliest_end: Instant
    origin: tuple[OrderKey, ...]
    primitives: frozenset[OrderKey]
    detections: frozenset[Leaf]
    attributes: dict[str, StoredValue]
    clash: frozenset[str]
    aliases: dict[str, int]
    parts: tuple[int, ...]
    expires: Instant | None
    maybe: bool
    type: str | None
    id: str | None
    source: str | None
    space: Space | None
    mark: str
    incomplete: bool


class Part(msgspec.Struct, array_like=True):
    version: int
    shared: Shared
    rows: list[Row]
    copies: list[tuple[list[StoredValue], Instant, list[bytes]]]
    wakes: list[tuple[Instant, list[StoredValue]]]


FIELDS = Row.__struct_fields__


class Table:
    """Occurrences by number, each once, those that others refer to first."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._numbers: dict[int, int] = {}
        self._held: list[Occurrence] = []  # keeps ids from being used again

    def number(self, occurrence: Occurrence) -> int:
        known = self._numbers.get(id(occurrence))
        if known is not None:
            return known
        values = {name: getattr(occurrence, name) for name in FIELDS}
        values["aliases"] = {alias: self.number(other) for alias, other in occurrence.aliases.items()}
        values["parts"] = tuple(self.number(part) for part in occurrence.parts)
        values["origin"] = tuple(map(stored_key, occurrence.origin))
        values["primitives"] = frozenset(map(stored_key, occurrence.primitives))
        self.rows.append(Row(**values))
        self._held.append(occurrence)
        self._numbers[id(occurrence)] = len(self.rows) - 1
        return len(self.rows) - 1

    def packed(self, value: Any) -> Any:
        """A node's state, with occurrences as numbers."""
        if isinstance(value, Occurrence):
            return msgspec.msgpack.Ext(OCCURRENCE, msgspec.msgpack.encode(self.number(value)))
        if isinstance(value, Prefix):
            fields = [self.packed(getattr(value, name)) for name in Prefix.__struct_fields__]
            return msgspec.msgpack.Ext(PREFIX, msgspec.msgpack.encode(fields))
        if isinstance(value, (list, tuple)):
            return [self.packed(item) for item in value]
        if isinstance(value, dict):
            return {key: self.packed(item) for key, item in value.items()}
        return value


def occurrences(rows: Iterable[Row], deepest: int) -> list[Occurrence]:
    """Each refers to earlier ones only, in no more steps than its expression has."""
    found: list[Occurrence] = []
    depths: list[int] = []
    for row in rows:
        check_stamp(row.lo, row.hi)
        values = {name: getattr(row, name) for name in FIELDS}
        values["aliases"] = {alias: item(found, number) for alias, number in row.aliases.items()}
        values["parts"] = tuple(items(found, row.parts))
        values["origin"] = tuple(map(key_of_order, row.origin))
        values["primitives"] = frozenset(map(key_of_order, row.primitives))
        depths.append(1 + max((depths[number] for number in (*row.parts, *row.aliases.values())), default=0))
        if depths[-1] > deepest:
            damaged("an occurrence is deeper than its expression")
        found.append(Occurrence(**values))
    return found


# Encoding.


def fresh(programs: Sequence[Program]) -> PlanState:
    return PlanState([{} for _ in programs])


def encode(programs: Sequence[Program], state: PlanState) -> dict[str, bytes]:
    timers = [(timer.place, timer.payload) for timer in state.timers.live()]
    waiting = {instant: [stored_event(event) for event in events] for instant, events in state.waiting.items()}
    seen = {name: Latest(latest.hi, stored_key(latest.key)) for name, latest in state.seen.items()}
    shared = Shared(timers, waiting, seen, state.serials, state.start, state.latest, state.ended)
    return {part_name(p): msgspec.msgpack.encode(_part(n, state, shared)) for n, p in enumerate(programs)}


def part_name(program: Program) -> str:
    """Of a definition. Where another plan gives its detections out, that one has the part under the plain name: the plans
    look at different instants, so what they share with their other definitions is not the same."""
    elsewhere = program.order is None and not program.linked.definition.hidden
    return f"{program.digest} below" if elsewhere else program.digest


def _part(number: int, state: PlanState, shared: Shared) -> Part:
    table = Table()
    copies = [
        (_values(key), copy.start, [msgspec.msgpack.encode(_fields(table, own)) for own in copy.states])
        for key, copy in state.copies[number].items()
    ]
    wakes = [(due, _values(key)) for due, asked in state.wakes.items() for n, key in sorted(asked, key=repr) if n == number]
    return Part(VERSION, shared, table.rows, copies, wakes)


def _fields(table: Table, state: Any) -> Any:
    return None if state is None else [table.packed(getattr(state, name)) for name in state.__struct_fields__]


def _values(key: Key) -> list[Value]:
    return [key_value(part) for part in key]


# Decoding.


def decoded_part(program: Program, data: bytes) -> PlanState:
    """The state of one definition, with what it has in common with others."""
    part = decoded(data, Part, VERSION)
    shared, state = part.shared, fresh([program])
    state.timers = Timers(sorted(Timer(timer_place_of(place), payload) for place, payload in shared.timers))
    state.waiting = {instant: events_of(events) for instant, events in shared.waiting.items()}
    state.seen = {name: Latest(latest.hi, key_of_order(latest.key)) for name, latest in shared.seen.items()}
    state.serials, state.start, state.latest, state.ended = shared.serials, shared.start, shared.latest, shared.ended
    for due, values in part.wakes:
        state.wakes.setdefault(due, set()).add((0, key_of(values, len(program.keys))))
    found = occurrences(part.rows, DEPTH * (1 + len(program.nodes)))
    for values, start, own in part.copies:
        key = key_of(values, len(program.keys))
        states = [_state(node.state_type, data, found) for node, data in zip(program.nodes, own, strict=True)]
        for node, one in zip(program.nodes, states, strict=True):
            node.check(one)
            if not state.ended and any((0, key) not in state.wakes.get(due, ()) for due in node.awaited(one)):
                damaged("a time is waited for at which nobody looks")
        state.copies[0][key] = Copy(states, start)
    return state


def merge(programs: Sequence[Program], found: Mapping[int, PlanState]) -> PlanState:
    """States of single definitions as one."""
    state = fresh(programs)
    for number in sorted(found, key=lambda number: programs[number].order is None):
        _share(state, programs[number], found[number])
    for number, one in found.items():
        state.copies[number] = one.copies[0]
        for due, asked in one.wakes.items():
            state.wakes.setdefault(due, set()).update((number, key) for _, key in asked)
    return state


def _share(state: PlanState, program: Program, one: PlanState) -> None:
    """Definitions may have been in different plans, which had their own: then what they had is put together. The part of one
    whose detections another plan gives out may be that plan's: it only adds what concerns the definition itself."""
    waiting, timers = _waiting(program, one), one.timers.heap
    if program.order is None:
        asked = _asked(waiting, one.wakes) - {timer.payload for timer in state.timers.heap}
        timers = [timer for timer in timers if timer.payload in asked]
    _unite(state, one, waiting, timers)


def _asked(waiting: Iterable[int], wakes: Iterable[int]) -> set[tuple[str, int]]:
    """What timers are for."""
    return {("instant", instant) for instant in waiting} | {("wake", due) for due in wakes}


def _unite(state: PlanState, one: PlanState, waiting: Mapping[int, Sequence[Event]], timers: Iterable[Timer]) -> None:
    """What all definitions and keys have in common, of two states."""
    first = {timer.payload: timer for timer in state.timers.heap}
    for timer in timers:
        first[timer.payload] = min(timer, first.get(timer.payload, timer))
    state.timers = Timers(sorted(first.values()))
    for instant, events in waiting.items():
        known = {event.place: event for event in (*state.waiting.get(instant, ()), *events)}
        state.waiting[instant] = [known[place] for place in sorted(known)]
    latest = {key: one.seen[key] for key in one.seen if key not in state.seen or one.seen[key].hi >= state.seen[key].hi}
    state.seen.update(latest)
    for name, count in one.serials.items():
        state.serials[name] = max(count, state.serials.get(name, 0))
    starts = [start for start in (state.start, one.start) if start is not None]
    state.start, state.latest = min(starts, default=None), max(state.latest, one.latest)
    state.ended = state.ended or one.ended


def _waiting(program: Program, one: PlanState) -> dict[int, list[Event]]:
    every = program.order is not None or program.reads_any
    found = {instant: [e for e in events if every or e.type in program.types] for instant, events in one.waiting.items()}
    return {instant: events for instant, events in found.items() if events}


def _state(kind: type | None, data: bytes, found: Sequence[Occurrence]) -> Any:
    def extension(code: int, content: memoryview) -> Any:
        if code == OCCURRENCE:
            return item(found, msgspec.msgpack.decode(content, type=int))
        if code != PREFIX:
            damaged(f"it has an extension of type {code}")
        return msgspec.convert(msgspec.msgpack.decode(content, ext_hook=extension), Prefix)

    fields = msgspec.msgpack.decode(data, ext_hook=extension)
    return None if kind is None else msgspec.convert(fields, kind)
