"""Events as objects: what interpreters see. Kernels see the same events as columns (batch.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from coincide.model.space import Space
from coincide.model.stamp import OrderKey, Stamp, milliseconds, order_key

Value = float | str | bool | None
"""An attribute's value. Numbers are doubles always, so that every tier and engine computes alike."""

ENVELOPE = frozenset({"type", "time", "id", "source", "space", "from", "arrival"})

Place = tuple[Any, ...]
"""Where an event stands in the order of processing. Places compare as tuples:

    external event    (hi, 0, n, 0)                 n: its number in the order of consumption
    timer firing      (due, 1, place of what set it + (definition, k), 0)
    detection         as its root's, but with its generation, then (definition, k) for each cause on the way

so that a detection comes after its cause and before the next external event or timer, first in first out."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An external event or a detection."""

    type: str
    lo: int
    hi: int
    id: str | None  # None for a detection: generated ids are not stable, so no rule may see them
    attributes: dict[str, Value]
    origin: tuple[OrderKey, ...]  # the primitive events it was built from, in total order
    source: str | None = None
    space: Space | None = None
    place: Place = ()
    arrival: int | None = None

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.lo, self.hi)

    @property
    def is_detection(self) -> bool:
        return bool(self.place) and bool(self.place[3] > 0)  # one that is not placed yet is external

    def placed(self, number: int) -> Event:
        """This external event as the n-th that is consumed."""
        return msgspec.structs.replace(self, place=(self.hi, 0, number, 0))


def primitive(
    type: str,
    lo: int,
    hi: int,
    id: str,
    attributes: dict[str, Value],
    source: str | None = None,
    space: Space | None = None,
    arrival: int | None = None,
) -> Event:
    """An external event, not yet placed."""
    return Event(type, lo, hi, id, attributes, (order_key(lo, hi, id),), source, space, (), arrival)


def caused(place: Place, definition: int, k: int) -> Place:
    """The place of the k-th detection that a definition makes of the event or timer at `place`."""
    return (*place[:3], place[3] + 1, *place[4:], definition, k)


def timer_place(due: int, set_at: Place, definition: int, k: int) -> Place:
    """The place of a timer's firing: after every external event with hi <= due; ties by the order of setting."""
    return due, 1, (*set_at, definition, k), 0


def detection(
    type: str,
    stamp: tuple[int, int],
    attributes: dict[str, Value],
    origin: tuple[OrderKey, ...],
    place: Place,
    source: str | None = None,
    space: Space | None = None,
) -> Event:
    return Event(type, stamp[0], stamp[1], None, attributes, origin, source, space, place)


def united_origin(events: Iterable[Event]) -> tuple[OrderKey, ...]:
    """The primitive events under all of these, in total order, without repeats."""
    return tuple(sorted({key for event in events for key in event.origin}))


def plain_number(value: float) -> int | float:
    """A number as JSON spells it: integral ones without a fraction."""
    return int(value) if value.is_integer() and abs(value) < 1e16 else value


def plain(value: Value) -> int | float | str | bool | None:
    return plain_number(value) if isinstance(value, float) else value


def record(event: Event) -> dict[str, Any]:
    """The event as a record of JSON Lines."""
    out: dict[str, Any] = {"type": event.type}
    if event.id is not None:
        out["id"] = event.id
    lo, hi = milliseconds(event.lo), milliseconds(event.hi)
    out["time"] = lo if lo == hi else [lo, hi]
    if event.is_detection:
        out["from"] = [key[4] for key in event.origin]
    if event.source is not None:
        out["source"] = event.source
    if event.space is not None:
        out["space"] = {f: getattr(event.space, f) for f in Space.__struct_fields__ if getattr(event.space, f) is not None}
    out.update((name, plain(value)) for name, value in event.attributes.items())
    return out


def as_value(raw: object) -> Value:
    """A value of a foreign record (JSON, CSV, Python) as ours. Raises TypeError for lists and mappings."""
    if raw is None or isinstance(raw, (bool, str)):
        return raw
    if isinstance(raw, (int, float)):
        number = float(raw)
        return number if number - number == 0 else None  # inf and nan are no values
    raise TypeError(f"a value must be a number, a text, true, false or null, not {type(raw).__name__}")


def attributes_of(raw: Mapping[str, object]) -> dict[str, Value]:
    return {name: as_value(value) for name, value in raw.items() if name not in ENVELOPE}
