"""The state as bytes: versioned, readable by every tier. Messages stand in one table; instances refer to them by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from coincide.detection.correlation.live import Instance
from coincide.detection.correlation.program import Program
from coincide.detection.correlation.state import State, fresh
from coincide.detection.correlation.view import Message
from coincide.detection.eventwise import Timer
from coincide.model.event import Value
from coincide.model.space import Space
from coincide.model.stamp import order_key

VERSION = 2
READABLE = (1, 2)


class Written(msgspec.Struct, array_like=True):
    """A message. Keys of the total order follow from stamps and ids, and may be numbers that no format holds."""

    type: str
    lo: int
    hi: int
    id: str | None
    source: str | None
    space: Space | None
    origin: list[tuple[int, int, str]]
    place: Any
    values: dict[str, Value]
    trigger: Any


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    messages: list[Written]
    live: list[list[tuple[list[int], list[tuple[int, int]]]]]  # terms; source and message
    history: list[list[int]]
    consumed: list[list[Any]]
    last: list[list[Any]]
    seen: list[list[Any]]
    timers: list[tuple[Any, int, int]]  # place, time event, trigger
    partial: bool = False  # only instances of one message are in `live`: all others follow from them


def encode(program: Program, state: State, partial: bool = False) -> bytes:
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
            [[[source, place] for source, place in sorted(consumed)] for consumed in state.consumed],
            [[[publisher, content] for publisher, content in last.items()] for last in state.last],
            [[[content, lo] for content, lo in seen.items()] for seen in state.seen],
            timers,
            partial,
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
    version, *_ = msgspec.msgpack.decode(data)
    if version not in READABLE:
        raise ValueError(f"state of version {version}; this release reads versions {', '.join(map(str, READABLE))}")
    snapshot = msgspec.msgpack.decode(data, type=Snapshot)
    state = fresh(program)
    messages = [_message(written) for written in snapshot.messages]
    for live, instances in zip(state.live, snapshot.live, strict=True):
        for terms, slots in instances:
            instance = Instance(_mapping(program, slots, messages), tuple(terms))
            live.add(instance, expiry_of(program, instance.messages))
    for history, numbers in zip(state.history, snapshot.history, strict=True):
        for number in numbers:
            history.add(messages[number])
    state.consumed = [{(source, frozen(place)) for source, place in members} for members in snapshot.consumed]
    state.last = [{publisher: frozen(content) for publisher, content in last} for last in snapshot.last]
    state.seen = [{frozen(content): lo for content, lo in seen} for seen in snapshot.seen]
    for place, time, number in snapshot.timers:
        state.timers.add(Timer(frozen(place), (time, messages[number])))
        state.pending.add((time, messages[number].place))
    return state, snapshot.partial


def _message(w: Written) -> Message:
    origin = tuple(order_key(lo, hi, identifier) for lo, hi, identifier in w.origin)
    return Message(w.type, w.lo, w.hi, w.id, w.source, w.space, origin, frozen(w.place), w.values, frozen(w.trigger))


def _mapping(program: Program, slots: Sequence[tuple[int, int]], messages: Sequence[Message]) -> tuple[Message | None, ...]:
    mapping: list[Message | None] = [None] * program.slots
    for source, number in slots:
        mapping[source] = messages[number]
    return tuple(mapping)


def expiry_of(program: Program, messages: Sequence[Message | None]) -> int | None:
    """The instant after which one of the messages is too old, and the instance goes (4.2, forget)."""
    pairs = zip(program.sources, messages, strict=True)
    return min((m.lo + source.within for source, m in pairs if m is not None and source.within is not None), default=None)


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, list) else value
