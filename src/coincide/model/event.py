"""Events as objects: what interpreters see. Kernels see the same events as columns (batch.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from coincide.model.bounds import Finite, Instant, Whole
from coincide.model.compound import Several, compound_of, is_compound, plain_compound
from coincide.model.numbers import is_number, number_of, plain_number
from coincide.model.space import Space
from coincide.model.stamp import LIMIT, OrderKey, Stamp, milliseconds, order_key

Value = float | int | str | bool | Several | None
"""An attribute's value. Numbers are doubles, or whole numbers that no double is equal to (numbers.py). Sets and ranges are null
to every language but CDL."""

StoredValue = Finite | Whole | str | bool | Several | None
"""A value as decoders check it."""

HEARTBEAT = "heartbeat"
"""The type of events that only tell how far time has come: no detector sees them."""

ENVELOPE = frozenset({"type", "time", "id", "source", "space", "from", "arrival"})

OWN_TYPE = "@typed"
"""An attribute of events whose record has the very type that it would get if it had none. Nobody is shown it."""

Place = tuple[Any, ...]
"""Where an event stands in the order of processing. Places compare as tuples:

    external event    (hi, 0, n, 0)                 n: its number in the order of consumption
    timer firing      (due, 1, place of what set it + (definition, k, 1 if it is a recurring one else 0), 0)
    ECCO's instants   (due, 1, (due, 0, -1, 0, 0, 0, 0), 0)   as if they were set before all events of the instant
    detection         as its root's, but with its generation, then (definition, k) for each cause on the way
    another node's    (time, 0, n, 1, ELSEWHERE, the hi of the item that completed it, from 0 on)   consumed as if external

so that a detection comes after its cause and before the next external event or timer, first in first out.

A detection that another node has made waits to be consumed, too. Until then it carries its order key instead (Opera's
distribution, section 3): the key of the item that completed it, then its detector's name and its number, which no place has."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An external event or a detection."""

    type: str
    lo: Instant
    hi: Instant
    id: str | None  # None for a detection: generated ids are not stable, so no rule may see them
    attributes: dict[str, StoredValue]
    origin: tuple[OrderKey, ...]  # the primitive events it was built from, in total order
    source: str | None = None
    space: Space | None = None
    place: Place = ()
    arrival: Instant | None = None
    hidden: bool = False  # a detection that other detectors see but that is not given out (internal ones of CDL and Amit)

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.lo, self.hi)

    @property
    def is_detection(self) -> bool:
        return bool(self.place) and bool(self.place[3] > 0)  # one that is not placed yet is external

    def placed(self, number: int, clock: int | None = None) -> Event:
        """This event as the n-th that is consumed: by its hi, or at the clock of its arrival. What another node has detected
        stays a detection, and is consumed when the item that completed it was."""
        if carries_key(self):
            time, text = self.place[0], self.place[NAMED]
            ended = int(text[1:]) if text.startswith(ENDED) and clock is not None else time
            return msgspec.structs.replace(self, place=(time if clock is None else clock, 0, number, 1, ELSEWHERE, ended + LIMIT))
        return msgspec.structs.replace(self, place=(self.hi if clock is None else clock, 0, number, 0))


NAMED = 4
"""The first part of an order key that is a text."""

ENDED = "@"
"""Where events are consumed as they arrive, that text is this and the hi of the item."""

ELSEWHERE = 2**40
"""The number of definitions on other nodes: no rules have so many."""


def item_end(event: Event) -> int:
    """The hi of the external event or timer that an event is or, made on another node, was completed by."""
    place = event.place
    return int(place[NAMED + 1]) - LIMIT if len(place) == NAMED + 2 and place[NAMED] == ELSEWHERE else event.hi


def carries_key(event: Event) -> bool:
    """Is it a detection of another node, with its order key?"""
    place = event.place
    return len(place) > NAMED and isinstance(place[NAMED], str)


def order_of(event: Event) -> Place:
    """Where an event that waits to be consumed stands in the total order; the first part is its time there."""
    return event.place if carries_key(event) else event.origin[0]


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


def timer_place(due: int, set_at: Place, definition: int, k: int, recurring: bool = False) -> Place:
    """The place of a timer's firing: after every external event with hi <= due; ties by the order of setting."""
    return due, 1, (*_bounded(set_at), definition, k, int(recurring)), 0


def instant_place(due: int, set_at: Place, definition: int) -> Place:
    """Where all that is detected instant by instant is made (ECCO-39), in whichever plan: after timers that were set before the
    instant, before those that its events set. What comes of a detection made there is a further round, and set by it."""
    place = due, 1, (due, 0, -1, 0, 0, 0, 0), 0
    return place if set_at < place else timer_place(due, set_at, definition, 0)


def is_recurring(place: Place) -> bool:
    """Was this caused, directly or through detections, by a recurring timer?"""
    return bool(place[1] == 1 and place[2][-1] == 1)


LEVELS = 4
"""So many settings of a timer by a timer are kept in places as they are. What lies below, in a chain without end, becomes
a mark: its root, where a newer one comes first (at a common instant it was set before the older one's timer fired), and
a digest of what lies between, so that no two places are equal."""


def _bounded(set_at: Place) -> Place:
    return set_at if set_at[1] == 0 else (*set_at[:2], _cut(set_at[2], LEVELS), *set_at[3:])


def _cut(setting: Place, levels: int) -> Place:
    if setting[1] == 0:
        return setting
    inner = _cut(setting[2], levels - 1) if levels > 1 else _mark(setting[2])
    return (*setting[:2], inner, *setting[3:])


def _mark(setting: Place) -> Place:
    if setting[1] == 0:
        return (-setting[0], *setting[2:], 0)
    *root, between = setting[2]
    data = msgspec.msgpack.encode((between, setting[0], setting[3:]))
    return (*root, int.from_bytes(blake2b(data, digest_size=7).digest(), "big"))


def source_of(value: Value) -> str | None:
    """What a rule gives as `source`, as the name of a publisher: what is not a text is spelt as in JSON."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(plain(value)).decode()


def detection(
    type: str,
    stamp: tuple[int, int],
    attributes: dict[str, Value],
    origin: tuple[OrderKey, ...],
    place: Place,
    source: str | None = None,
    space: Space | None = None,
    hidden: bool = False,
) -> Event:
    """A `source` among the attributes is that of the envelope: a detection has no attribute of this name, or called `from`."""
    if "source" in attributes or "from" in attributes:
        attributes = dict(attributes)
        attributes.pop("from", None)
        source = source_of(attributes.pop("source")) if "source" in attributes else source
    return Event(type, stamp[0], stamp[1], None, attributes, origin, source, space, place, None, hidden)


class HasOrigin(Protocol):
    @property
    def origin(self) -> tuple[OrderKey, ...]: ...


def united_origin(events: Iterable[HasOrigin]) -> tuple[OrderKey, ...]:
    """The primitive events under all of these, in total order, without repeats."""
    return tuple(sorted({key for event in events for key in event.origin}))


def plain(value: Value) -> Any:
    if isinstance(value, Several):
        return plain_compound(value)
    return plain_number(value) if is_number(value) else value


def record(event: Event) -> dict[str, Any]:
    """The event as a record of JSON Lines: the envelope, then the attributes by name. Events that share an id are told once."""
    out: dict[str, Any] = {"type": event.type}
    if event.id is not None:
        out["id"] = event.id
    lo, hi = milliseconds(event.lo), milliseconds(event.hi)
    out["time"] = lo if lo == hi else [lo, hi]
    if event.is_detection:
        out["from"] = list(dict.fromkeys(key[4] for key in event.origin))
    if event.source is not None:
        out["source"] = event.source
    if event.space is not None:
        out["space"] = {f: getattr(event.space, f) for f in Space.__struct_fields__ if getattr(event.space, f) is not None}
    out.update((name, plain(value)) for name, value in sorted(event.attributes.items()) if name != OWN_TYPE)
    return out


def as_value(raw: object) -> Value:
    """A value of a foreign record (JSON, CSV, Python) as ours. Raises TypeError for what is none."""
    if raw is None or isinstance(raw, (bool, str)):
        return raw
    if isinstance(raw, int):
        return number_of(raw)
    if isinstance(raw, float):
        return float(raw) if raw - raw == 0 else None  # inf and nan are not values
    if is_compound(raw):
        return compound_of(raw)
    raise TypeError(f"a value must be a number, a text, true, false or null, not {type(raw).__name__}")


def attributes_of(raw: Mapping[str, object]) -> dict[str, Value]:
    return {name: as_value(value) for name, value in raw.items() if name not in ENVELOPE}
