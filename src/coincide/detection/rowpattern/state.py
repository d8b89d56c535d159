"""What the interpreter keeps of a query, and the reader of states that were written as objects. Searches are not written: the
rows from the pending start on bring them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detection.eventwise import Timers
from coincide.detection.rowpattern.partition import Key, Partition, Program, key_part
from coincide.detection.snapshots import check_stamp, damaged, decoded, place_of
from coincide.model.bounds import Count, Instant, Word
from coincide.model.event import Event, StoredValue
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
    lo: Instant
    hi: Instant
    id: str | None
    source: str | None
    attributes: dict[str, StoredValue]
    origin: list[tuple[Instant, Instant, str]]
    place: Any


class WrittenPartition(msgspec.Struct, array_like=True):
    key: list[StoredValue]
    base: Count
    start: Count
    number: Count
    covered: Count
    rows: list[WrittenRow]


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    partitions: list[WrittenPartition]
    waiting: list[WrittenRow]
    passed: Word
    held: dict[str, Word]
    told: Word


def decode(data: bytes, program: Program) -> State:
    snapshot = decoded(data, Snapshot, VERSION)
    state = State(waiting=[_row(w) for w in snapshot.waiting], passed=snapshot.passed, held=snapshot.held, told=snapshot.told)
    for w in snapshot.partitions:
        if len(w.key) != len(program.clause.partition):
            damaged("a partition has another key")
        if not w.base <= w.start <= w.base + len(w.rows) or w.base > max(0, w.start - program.back):
            damaged("a partition does not have the rows that it goes on from")
        key = tuple(key_part(value) for value in w.key)
        state.partitions[key] = Partition(key, [_row(r) for r in w.rows], w.base, w.start, w.number, w.covered)
    return state


def _row(w: WrittenRow) -> Event:
    check_stamp(w.lo, w.hi)
    origin = tuple(order_key(lo, hi, identifier) for lo, hi, identifier in w.origin)
    if w.id is not None and origin != (order_key(w.lo, w.hi, w.id),):
        damaged("an event is not made of itself")
    return Event(w.type, w.lo, w.hi, w.id, w.attributes, origin, w.source, None, place_of(w.place))
