"""What the interpreter keeps of a query, and the reader of states that were written as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detection.eventwise import Timer, Timers
from coincide.detection.keys import Key
from coincide.detection.sequence.program import Program
from coincide.detection.snapshots import NEVER, check_numbers, check_stamp, damaged, decoded, key_of, timer_place_of
from coincide.model.bounds import Began, Count, Finite, Instant, Whole
from coincide.model.event import Event, StoredValue, Value
from coincide.model.stamp import OrderKey, order_key

VERSION = 1


@dataclass(frozen=True)
class Trace:
    """What is kept of one or more events: their time, the primitive events below them, and the first value of each field."""

    lo: int
    hi: int
    origin: tuple[OrderKey, ...]
    shown: tuple[Value, ...]

    def joined(self, other: Trace) -> Trace:
        shown = tuple(b if a is None else a for a, b in zip(self.shown, other.shown, strict=True))
        return Trace(min(self.lo, other.lo), max(self.hi, other.hi), self.origin + other.origin, shown)


def trace_of(event: Event, program: Program) -> Trace:
    return Trace(event.lo, event.hi, event.origin, tuple(read(event) for read in program.readers))


@dataclass(frozen=True)
class Pending:
    """A sequence that is not complete: times of its first and last event; `lower` is that of section 6; `gap` the time of the
    first event of a missing item since the last one."""

    trace: Trace
    first: int
    last: int
    lower: int
    gap: int | None = None
    spoilt: bool = False


@dataclass
class KeyState:
    """Of one key. Sequences: pending ones by stage, complete ones that wait for their timers, and the two latest times of leading
    items. Samples and joins: the events of each item, numbered as they were seen."""

    slots: list[Pending | None] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    leads: tuple[int, int] = (NEVER, NEVER)
    touched: int = NEVER
    taken: list[list[tuple[int, Trace]]] = field(default_factory=list)
    count: int = 0
    closed: bool = False

    @property
    def is_empty(self) -> bool:
        filled = any(self.slots) or any(self.taken) or self.waiting
        return not filled and self.leads[0] == NEVER and not self.closed


@dataclass(eq=False)
class Waiting:
    pending: Pending
    timer: Timer


@dataclass(frozen=True)
class Kept:
    """A detection that `tail` holds back."""

    lo: int
    hi: int
    attributes: dict[str, Value]
    origin: tuple[OrderKey, ...]


@dataclass
class Piped:
    """What each pipe has let through (head), or holds back (tail)."""

    passed: list[int] = field(default_factory=list)
    kept: list[list[Kept]] = field(default_factory=list)


@dataclass
class State(Piped):
    keys: dict[Key, KeyState] = field(default_factory=dict)
    timers: Timers = field(default_factory=Timers)
    swept: int = 0
    """How many keys were left when those that time has passed by were last forgotten."""


def fresh(program: Program) -> State:
    pipes = program.query.pipes
    return State([0] * len(pipes), [[] for _ in pipes])


def fresh_key(program: Program) -> KeyState:
    if program.is_sample:
        return KeyState(taken=[[] for _ in program.query.items])
    return KeyState(slots=[None] * (len(program.stages) - 1))


StoredKey = tuple[Finite | Whole | str | tuple[bool, ...] | None, ...]
"""A key as it is (detection/keys.py); null is a value of keys that are optional."""


# What releases before tables wrote (relations.py).


class WrittenTrace(msgspec.Struct, array_like=True):
    lo: Instant
    hi: Instant
    origin: list[tuple[Instant, Instant, str]]
    shown: list[StoredValue]


class WrittenPending(msgspec.Struct, array_like=True):
    trace: WrittenTrace
    first: Instant
    last: Instant
    lower: Began
    gap: Instant | None
    spoilt: bool


class WrittenKey(msgspec.Struct, array_like=True):
    key: list[StoredValue]
    slots: list[WrittenPending | None]
    waiting: list[tuple[WrittenPending, Any]]
    leads: tuple[Began, Began]
    touched: Began
    taken: list[list[tuple[Count, WrittenTrace]]]
    count: Count
    closed: bool


class WrittenKept(msgspec.Struct, array_like=True):
    lo: Instant
    hi: Instant
    attributes: dict[str, StoredValue]
    origin: list[tuple[Instant, Instant, str]]


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    keys: list[WrittenKey]
    passed: list[Count]
    kept: list[list[WrittenKept]]


def written_detection(made: Kept) -> WrittenKept:
    """Keys of the total order follow from stamps and ids, and may be numbers that no format holds."""
    return WrittenKept(made.lo, made.hi, made.attributes, [(lo, hi, identifier) for hi, lo, _, _, identifier in made.origin])


def kept_detection(k: WrittenKept) -> Kept:
    return Kept(k.lo, k.hi, k.attributes, _origin(k.origin))


def decode(program: Program, data: bytes) -> State:
    """Raises Damaged for what is not a state of this query."""
    snapshot = decoded(data, Snapshot, VERSION)
    pipes = len(program.query.pipes)
    if len(snapshot.passed) != pipes or len(snapshot.kept) != pipes:
        damaged("it has another number of pipes")
    detections = [list(map(kept_detection, pipe)) for pipe in snapshot.kept]
    state = State(snapshot.passed, detections, swept=len(snapshot.keys))
    reader = _Reader(program)
    for written in snapshot.keys:
        key = _key(written.key, len(program.key_names))
        if key in state.keys:
            damaged("two states have one key")
        state.keys[key] = reader.key(key, written, state.timers)
    return state


class _Reader:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.like = fresh_key(program)

    def key(self, key: Key, written: WrittenKey, timers: Timers) -> KeyState:
        if len(written.slots) != len(self.like.slots) or len(written.taken) != len(self.like.taken):
            damaged("it has another number of stages")
        if written.waiting and not self.program.trailing:
            damaged("a sequence waits for nothing")
        own = KeyState(
            [None if pending is None else self._pending(pending) for pending in written.slots],
            leads=written.leads,
            touched=written.touched,
            taken=[self._taken(item, written.count) for item in written.taken],
            count=written.count,
            closed=written.closed,
        )
        for pending, place in written.waiting:
            timer = timers.add(Timer(timer_place_of(place), None))
            own.waiting.append(Waiting(self._pending(pending), timer))
            timer.payload = (key, own.waiting[-1])
        return own

    def _taken(self, item: list[tuple[int, WrittenTrace]], following: int) -> list[tuple[int, Trace]]:
        check_numbers([number for number, _ in item], following)
        return [(number, self._trace(trace)) for number, trace in item]

    def _pending(self, p: WrittenPending) -> Pending:
        return Pending(self._trace(p.trace), p.first, p.last, p.lower, p.gap, p.spoilt)

    def _trace(self, w: WrittenTrace) -> Trace:
        check_stamp(w.lo, w.hi)
        if len(w.shown) != len(self.program.fields):
            damaged("it shows other fields")
        return Trace(w.lo, w.hi, _origin(w.origin), tuple(w.shown))


def _key(values: list[Value], size: int) -> Key:
    """Null is a value of keys that are optional."""
    there = [value for value in values if value is not None]
    found = iter(key_of(there, size - (len(values) - len(there))))
    return tuple(None if value is None else next(found) for value in values)


def _origin(written: list[tuple[int, int, str]]) -> tuple[OrderKey, ...]:
    return tuple(order_key(lo, hi, identifier) for lo, hi, identifier in written)
