"""Messages of a network: composites as ordinary events with an order key and a source, heartbeats, reports, commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.detection.snapshots import carried_key_of, key_of_order, stored_key
from coincide.distribution.brokers import Broker
from coincide.model.event import HEARTBEAT, Event, Place, attributes_of, record
from coincide.model.stamp import milliseconds

LARGEST = 65_536
"""Bytes of a command."""

MARK = "_detection"
"""The field of a composite's record with what ordinary events do not have."""


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """`number` counts the detections of its detector, `turn` is the number of the message on which it was made. Stamps and keys
    are in microseconds, which the record's times may not show."""

    number: int
    turn: int
    key: tuple[Any, ...]
    lo: int
    hi: int
    origin: tuple[tuple[int, int, int, int, str], ...]
    hidden: bool = False  # other detectors see it, applications do not


class Progress(msgspec.Struct, frozen=True):
    """A detector's heartbeat: nothing that it detects later has a time before `frontier`; the messages of the stream up to number
    `through`, which came at `clock`, are dealt with; it has made `count` detections so far."""

    source: str
    frontier: int
    through: int
    clock: int
    count: int
    time: float = 0.0
    type: str = HEARTBEAT


class Announcement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a publisher: what it publishes, under which name, where, and how much, as measured."""

    type: str
    source: str
    node: str = ""
    rate: float = 0.0
    size: float = 100.0
    gone: bool = False


class Report(msgspec.Struct, frozen=True):
    """A node's heartbeat. `offer` is what it may carry. `links` and `latency` (to the broker) are milliseconds, `busy` the share
    of its time that detection takes; `rates` are events a second by type, as its detectors have seen them, `sizes` the bytes of
    their states. What it `carried` when it spoke is advertised thereby; `violated` are restrictions of descriptions that do not
    hold any more."""

    name: str
    offer: Broker = Broker()
    links: dict[str, float] = {}
    latency: float = 0.0
    busy: float = 0.0
    rates: dict[str, float] = {}
    delays: dict[str, float] = {}
    sizes: dict[str, int] = {}
    resources: dict[str, Any] = {}
    carried: list[str] = []
    violated: dict[str, list[str]] = {}
    leaving: bool = False


class Command(msgspec.Struct, frozen=True, omit_defaults=True, rename={"sender": "from"}, tag_field="type", tag="admin"):
    """A message of the administration topic."""

    command: str
    target: str = "*"
    value: str = ""
    sender: str = ""
    expr: str = ""
    rules: str = ""
    ending: str = ""
    detection: str = "best-effort"
    restart: bool = False
    keep: tuple[str, ...] = ()
    name: str = ""
    node: str = ""
    answers: int = 0


def encoded(message: msgspec.Struct) -> bytes:
    return msgspec.json.encode(message)


def composite_record(detection: Event, name: str, number: int, turn: int, key: Place) -> bytes:
    """A detection as it travels."""
    carried = (*stored_key((*key[:4], key[4])), *key[5:])
    mark = Mark(number, turn, carried, detection.lo, detection.hi, tuple(map(stored_key, detection.origin)), detection.hidden)
    return msgspec.json.encode({**record(detection), "source": name, MARK: mark})


def composite_of(raw: Mapping[str, Any], source: str) -> Event:
    """The event, which carries its order key. Raises ValueError."""
    mark = msgspec.convert(raw[MARK], Mark)
    plain = {name: value for name, value in raw.items() if name not in (MARK, "from")}
    checked = event_of({**plain, "id": "0"}, DEFAULT, 0)
    origin = tuple(map(key_of_order, mark.origin))
    key = carried_key_of(mark.key)
    return Event(
        checked.type, mark.lo, mark.hi, None, attributes_of(plain), origin, source, checked.space, key, None, mark.hidden
    )


def heartbeat(source: str | None, time: int, arrival: int) -> Event:
    return Event(HEARTBEAT, time, time, None, {}, (), source, None, (), arrival)


def is_shown(raw: Mapping[str, Any]) -> bool:
    """Is it a detection that applications see?"""
    return MARK in raw and not raw[MARK][-1]


def shown(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A composite's record as applications see it: as detections are written elsewhere."""
    return {name: value for name, value in raw.items() if name not in (MARK, "source")}


def progress_message(source: str, frontier: int, through: int, clock: int, count: int) -> bytes:
    return encoded(Progress(source, frontier, through, clock, count, milliseconds(frontier)))
