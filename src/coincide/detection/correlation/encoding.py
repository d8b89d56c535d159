"""The state as bytes: versioned, readable by every tier. Messages stand in one table; instances refer to them by number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from coincide.detection.correlation.live import Instance
from coincide.detection.correlation.program import GroupProgram, Program, SourceProgram
from coincide.detection.correlation.state import State, expiry_of, fresh
from coincide.detection.correlation.view import Message
from coincide.detection.eventwise import Timer
from coincide.detection.snapshots import check_stamp, damaged, decoded, item, items, place_of, timer_place_of
from coincide.model.bounds import Instant
from coincide.model.event import Place, StoredValue
from coincide.model.space import Space
from coincide.model.stamp import order_key

VERSION = 2
READABLE = (1, 2)
TABLES = 3
"""What is in tables instead (kernel/relations.py)."""


class Written(msgspec.Struct, array_like=True):
    """A message. Keys of the total order follow from stamps and ids, and may be numbers that no format holds."""

    type: str
    lo: Instant
    hi: Instant
    id: str | None
    source: str | None
    space: Space | None
    origin: list[tuple[Instant, Instant, str]]
    place: Any
    values: dict[str, StoredValue]
    trigger: Any


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    messages: list[Written]
    live: list[list[tuple[list[int], list[tuple[int, int]]]]]  # terms; source and message
    history: list[list[int]]
    consumed: list[list[tuple[int, Any]]]
    last: list[list[tuple[str | None, list[Any]]]]
    seen: list[list[tuple[tuple[list[Any], Instant, Instant], Instant]]]
    timers: list[tuple[Any, int, int]]  # place, time event, trigger
    partial: bool = False  # only instances of one message are in `live`: all others follow from them


def encode(program: Program, state: State) -> bytes:
    table = _Table()
    live = [[(list(i.terms), _slots(i, table)) for i in group.instances.values()] for group in state.live]
    history = [[table.number(source, m) for m in messages] for source, messages in enumerate(state.history)]
    timers = []
    for timer in state.timers.live():
        time, message = timer.payload
        timers.append((timer.place, time, table.number(program.sources[time].trigger, message)))
    return msgspec.msgpack.encode(
        Snapshot(
            VERSION,
            table.written,
            live,
            history,
            [sorted(consumed) for consumed in state.consumed],
            [list(last.items()) for last in state.last],
            [list(seen.items()) for seen in state.seen],
            timers,
        )
    )


def _slots(instance: Instance, table: _Table) -> list[tuple[int, int]]:
    return [(source, table.number(source, m)) for source, m in enumerate(instance.messages) if m is not None]


class _Table:
    def __init__(self) -> None:
        self.written: list[Written] = []
        self._numbers: dict[Any, int] = {}

    def number(self, source: int, message: Message) -> int:
        key = source, message.place
        if key not in self._numbers:
            self._numbers[key] = len(self.written)
            self.written.append(_written(message))
        return self._numbers[key]


def _written(m: Message) -> Written:
    origin = [(lo, hi, identifier) for hi, lo, _, _, identifier in m.origin]
    return Written(m.type, m.lo, m.hi, m.id, m.source, m.space, origin, m.place, m.values, m.trigger)


def decode(program: Program, data: bytes) -> tuple[State, bool]:
    """The state, and whether it is partial."""
    snapshot = decoded(data, Snapshot, *READABLE)
    return _Reader(program, snapshot).read(), snapshot.partial


class _Reader:
    """Messages are such as their sources match; instances have those of their group."""

    def __init__(self, program: Program, snapshot: Snapshot) -> None:
        self.program = program
        self.snapshot = snapshot
        self._messages: dict[tuple[int, int], Message] = {}

    def read(self) -> State:
        snapshot, state = self.snapshot, fresh(self.program)
        for group, live, instances in zip(self.program.groups, state.live, snapshot.live, strict=True):
            for terms, slots in instances:
                instance = self._instance(group, terms, slots)
                live.add(instance, expiry_of(self.program, instance.messages))
        for source, numbers in enumerate(snapshot.history):
            for number in numbers:
                item(state.history, source).add(self._message(source, number))
        state.consumed = self._each(state.consumed, ({self._member(*m) for m in members} for members in snapshot.consumed))
        state.last = self._each(state.last, ({who: frozen(content) for who, content in last} for last in snapshot.last))
        state.seen = self._each(state.seen, ({frozen(content): lo for content, lo in seen} for seen in snapshot.seen))
        for raw, time, number in snapshot.timers:
            trigger = self._message(self._time(time).trigger, number)
            state.timers.add(Timer(timer_place_of(raw), (time, trigger)))
            state.pending.add((time, trigger.place))
        return state

    def _each(self, fresh: list[Any], found: Iterable[Any]) -> list[Any]:
        return [one for _, one in zip(fresh, found, strict=True)]

    def _instance(self, group: GroupProgram, terms: list[int], slots: list[tuple[int, int]]) -> Instance:
        items(group.terms, terms)
        mapping: list[Message | None] = [None] * self.program.slots
        for source, number in slots:
            if source not in group.pos:
                damaged("an instance has a message of another group")
            mapping[source] = self._message(source, number)
        if not terms or not slots:
            damaged("an instance is of nothing")
        return Instance(tuple(mapping), tuple(terms))

    def _member(self, source: int, place: Any) -> tuple[int, Place]:
        item(self.program.sources, source)
        return source, place_of(place)

    def _time(self, number: int) -> SourceProgram:
        source = item(self.program.sources, number)
        if not source.is_time:
            damaged("a timer is of no time event")
        return source

    def _message(self, source: int, number: int) -> Message:
        """A message is of one source; several instances have it."""
        known = self._messages.get((source, number))
        if known is None:
            written = item(self.snapshot.messages, number)
            known = self._messages[source, number] = self._checked(item(self.program.sources, source), written)
        return known

    def _checked(self, source: SourceProgram, w: Written) -> Message:
        check_stamp(w.lo, w.hi)
        if len(w.values) != len(source.declared) or not all(source.declares(name, value) for name, value in w.values.items()):
            damaged("a message is none of its source")
        if source.is_time != (w.trigger is not None):
            damaged("a time event has a message that sets it, and no other message has")
        origin = tuple(order_key(lo, hi, identifier) for lo, hi, identifier in w.origin)
        trigger = None if w.trigger is None else place_of(w.trigger)
        return Message(w.type, w.lo, w.hi, w.id, w.source, w.space, origin, place_of(w.place), w.values, trigger)


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, (list, tuple)) else value
