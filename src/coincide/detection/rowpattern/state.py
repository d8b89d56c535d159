"""The state of a query, and its encoding. Searches are not written: the rows from the pending start on bring them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detection.eventwise import Timers
from coincide.detection.rowpattern.partition import Key, Partition
from coincide.model.event import Event, Value
from coincide.model.stamp import order_key

VERSION = 1
FOREVER = 2**63 - 1
NEVER = -(2**63)


@dataclass
class State:
    """`waiting` are rows that are not in order yet. `passed` is how far the clock has come; `held` what the rules that make the
    table still hold back, by the name of the rule; `told` what this query has told of itself."""

    partitions: dict[Key, Partition] = field(default_factory=dict)
    waiting: list[Event] = field(default_factory=list)
    timers: Timers = field(default_factory=Timers)
    passed: int = NEVER
    held: dict[str, int] = field(default_factory=dict)
    told: int = FOREVER
    level: int = 0  # at the end: how many queries have ended before, one after the other


class WrittenRow(msgspec.Struct, array_like=True):
    """Keys of the total order follow from stamps and ids, and may be numbers that no format holds."""

    type: str
    lo: int
    hi: int
    id: str | None
    source: str | None
    attributes: dict[str, Value]
    origin: list[tuple[int, int, str]]
    place: Any


class WrittenPartition(msgspec.Struct, array_like=True):
    key: list[Value]
    base: int
    start: int
    number: int
    covered: int
    rows: list[WrittenRow]


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    partitions: list[WrittenPartition]
    waiting: list[WrittenRow]
    passed: int
    held: dict[str, int]
    told: int


def encode(state: State, back: int, columns: frozenset[str] | None) -> bytes:
    def rows(events: list[Event]) -> list[WrittenRow]:
        return [_written(event, columns) for event in events]

    partitions = []
    for p in state.partitions.values():
        gone = max(0, p.start - back - p.base)
        key = [value for _, value in p.key]
        partitions.append(WrittenPartition(key, p.base + gone, p.start, p.number, p.covered, rows(p.rows[gone:])))
    return msgspec.msgpack.encode(Snapshot(VERSION, partitions, rows(state.waiting), state.passed, state.held, state.told))


def decode(data: bytes, key_part: Callable[[Value], tuple[bool, Value]]) -> State:
    version, *_ = msgspec.msgpack.decode(data)
    if version != VERSION:
        raise ValueError(f"state of version {version}; this release reads version {VERSION}")
    snapshot = msgspec.msgpack.decode(data, type=Snapshot)
    state = State(waiting=[_row(w) for w in snapshot.waiting], passed=snapshot.passed, held=snapshot.held, told=snapshot.told)
    for w in snapshot.partitions:
        key = tuple(key_part(value) for value in w.key)
        state.partitions[key] = Partition(key, [_row(r) for r in w.rows], w.base, w.start, w.number, w.covered)
    return state


def _written(event: Event, columns: frozenset[str] | None) -> WrittenRow:
    attributes = event.attributes
    if columns is not None:
        attributes = {name: value for name, value in attributes.items() if name in columns}
    origin = [(lo, hi, identifier) for hi, lo, _, _, identifier in event.origin]
    return WrittenRow(event.type, event.lo, event.hi, event.id, event.source, attributes, origin, event.place)


def _row(w: WrittenRow) -> Event:
    origin = tuple(order_key(lo, hi, identifier) for lo, hi, identifier in w.origin)
    return Event(w.type, w.lo, w.hi, w.id, w.attributes, origin, w.source, None, frozen(w.place))


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, list) else value
