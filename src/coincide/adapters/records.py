"""One raw record (a mapping of plain Python values) as an event, or the reason why it is none.

This is the definition of a good record. The columnar readers do the same over whole columns and are held to it by tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime
from math import floor, isfinite
from typing import Any

from coincide.adapters.extraction import extracted
from coincide.adapters.mapping import CATEGORY, UNTYPED, FieldMapping, is_type_name
from coincide.adapters.nested import flattened
from coincide.model.compound import ValueRange, ValueSet, compound_of
from coincide.model.event import OWN_TYPE, Event, Value, plain, primitive, record
from coincide.model.numbers import is_beyond, number_of, plain_number
from coincide.model.space import Space
from coincide.model.stamp import LIMIT, MILLISECOND, instant_of, parse_instant

LONGEST_NUMBER = 4_000
"""Digits of an id that is a whole number; Python converts no more than 4,300."""

MISSING_TYPE = "missing type"
TYPE_NOT_TEXT = "type must be text"
TYPE_NOT_NAME = "type must be a name: letters, digits, '_', '-', '.', with a letter or '_' first"
ID_WRONG = "id must be text or a number"
ID_LONG = "id is too long a number"
SOURCE_WRONG = "source must be text or a number"
REVERSED = "time interval ends before it begins"
SPACE_WRONG = "space must have x and y, or lat and lon, or a zone"

_NUMBERS = ("x", "y", "lat", "lon", "z")


class BadRecord(ValueError):
    """A record that is not an event; its text is the reason."""


def missing(field: str) -> str:
    return f"missing {field}"


def no_instant(field: str) -> str:
    return f"{field} must be a number, an ISO-8601 text or [lo, hi] of these"


def too_far_ahead(ahead: str) -> str:
    return f"time is more than {ahead} ahead of other events, or of the wall clock"


def out_of_range(field: str) -> str:
    return f"{field} is out of range"


def no_value(name: str) -> str:
    return f"attribute '{name}' must be a number, a text, true, false or null"


def not_finite(name: str) -> str:
    return f"attribute '{name}' is not a finite number"


def too_many_digits(name: str) -> str:
    return f"attribute '{name}' has more digits than a number with a fraction can hold"


def beyond_64_bits(name: str) -> str:
    return f"attribute '{name}' has integers of more than 64 bits"


def event_of(raw: object, mapping: FieldMapping, position: int, huge: Counter[str] | None = None) -> Event:
    """The event of a record that stands at `position` (from 1). Raises BadRecord.

    `huge` counts, by attribute, the integers that lose digits, having more than 64 bits."""
    if not isinstance(raw, (dict, Mapping)):  # the most likely first: a test for an abstract class takes time
        raise BadRecord(
            "a record must be an object of fields, one a line" if isinstance(raw, list) else "not an object of fields"
        )
    raw = extracted(flattened(raw, mapping), mapping.extracts)
    kind = _type(raw, mapping)
    lo, hi = _interval(raw, mapping)
    identifier = _identifier(_only(raw.get(mapping.id)), position)
    source = None if (given := _only(raw.get(mapping.source))) is None else _label(given, SOURCE_WRONG)
    space = None if (place := raw.get(mapping.space)) is None else space_of(place)
    came = raw.get(mapping.arrival)
    arrival = None if came is None else instant(came, mapping, "arrival")
    attributes = _attributes(raw, mapping.envelope, huge)
    if mapping.untyped and mapping.constant_type is None and _only(raw.get(mapping.type)) and kind == untyped(raw.get(CATEGORY)):
        attributes[OWN_TYPE] = True
    return primitive(kind, lo, hi, identifier, attributes, source, space, arrival)


def _type(raw: Mapping[str, object], mapping: FieldMapping) -> str:
    if mapping.constant_type is not None:
        return mapping.constant_type
    kind = _only(raw.get(mapping.type))
    if isinstance(kind, (int, float)) and not isinstance(kind, bool):
        kind = _label(kind, TYPE_NOT_TEXT)
    if isinstance(kind, str) and kind:
        if is_type_name(kind):
            return kind
        raise BadRecord(TYPE_NOT_NAME)
    if mapping.untyped:
        return untyped(raw.get(CATEGORY))
    raise BadRecord(MISSING_TYPE if kind is None or kind == "" else TYPE_NOT_TEXT)


def record_for(event: Event, mapping: FieldMapping) -> dict[str, Any]:
    """A record that is read as this event: without the type that it has for want of one."""
    made = record(event)
    if is_untyped(event, mapping):
        del made["type"]
    return made


def is_untyped(event: Event, mapping: FieldMapping) -> bool:
    """Has it the type that a record without one gets?"""
    own = event.attributes.get(CATEGORY)
    return mapping.untyped and OWN_TYPE not in event.attributes and event.type == untyped(plain(own))


def _only(value: object) -> object:
    """What is in an array of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def untyped(category: object) -> str:
    """The type of a record that has none: the first of its categories that can be one."""
    values = category if isinstance(category, list) else [category]
    return next((value for value in values if isinstance(value, str) and is_type_name(value)), UNTYPED)


def _interval(raw: Mapping[str, object], mapping: FieldMapping) -> tuple[int, int]:
    time = raw.get(mapping.time)
    if time is None and mapping.other_time is not None:
        time = raw.get(mapping.other_time)
    if time is None:
        raise BadRecord(missing("time"))
    if not isinstance(time, (int, float, str)) and isinstance(time, Mapping) and time.keys() == {"lo", "hi"}:
        time = [time["lo"], time["hi"]]
    if isinstance(time, (list, tuple)):
        if len(time) != 2:
            raise BadRecord(no_instant("time"))
        lo, hi = instant(time[0], mapping, "time"), instant(time[1], mapping, "time")
    else:
        lo = hi = instant(time, mapping, "time")
    if mapping.end is not None and (end := raw.get(mapping.end)) is not None:
        hi = instant(end, mapping, "end")
    if lo > hi:
        raise BadRecord(REVERSED)
    return lo, hi


def instant(raw: object, mapping: FieldMapping, field: str) -> int:
    """Microseconds of a number in the mapping's unit, of an ISO-8601 text or of a datetime."""
    if type(raw) not in (str, int, float):
        raw = raw if (plain := _of_numpy(raw)) is None else plain
    if isinstance(raw, str):
        moment = _parsed(raw, field)
    elif isinstance(raw, date):
        moment = microseconds_of(raw)
    elif isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise BadRecord(no_instant(field))
    elif isinstance(raw, int) or raw.is_integer():  # exact, however large: a column of doubles cannot tell 5 from 5.0
        raw = int(raw)
        moment = raw * mapping.per_unit or raw // 1000
    else:
        moment = _rounded(raw, mapping.per_unit)
    if not -LIMIT <= moment <= LIMIT:
        raise BadRecord(out_of_range(field))
    return moment


def _of_numpy(value: Any) -> object:
    """A scalar of NumPy, as tables that are taken apart hold them, as Python's; None for anything else."""
    if type(value).__module__ != "numpy" or not hasattr(value, "item"):
        return None
    moment = type(value).__name__ == "datetime64"
    return (value.astype("datetime64[us]") if moment else value).item()


def microseconds_of(moment: date) -> int:
    """Of a datetime, or of the beginning of a day."""
    return instant_of(moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day))


def _rounded(number: float, per_unit: int) -> int:
    scaled = number * per_unit if per_unit else number / 1000
    if not isfinite(scaled):
        return LIMIT + 1
    return round(scaled) if per_unit else floor(scaled)


def _parsed(text: str, field: str) -> int:
    try:
        return parse_instant(text)
    except OverflowError:
        raise BadRecord(out_of_range(field)) from None
    except ValueError:
        raise BadRecord(no_instant(field)) from None


def _identifier(raw: object, position: int) -> str:
    if raw is None:
        return str(position)
    identifier = _label(raw, ID_WRONG)
    if len(identifier) > LONGEST_NUMBER and identifier.isascii() and identifier.removeprefix("-").isdecimal():
        raise BadRecord(ID_LONG)
    return identifier


def _label(raw: object, reason: str) -> str:
    """A name: a text, or a number by its JSON spelling."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise BadRecord(reason)
    if isinstance(raw, float):
        if not isfinite(raw):
            raise BadRecord(reason)
        raw = plain_number(raw)
    try:
        return str(raw)
    except ValueError:  # more digits than Python spells out
        raise BadRecord(ID_LONG) from None


def space_of(raw: object) -> Space:
    if not isinstance(raw, Mapping) or any(name not in Space.__struct_fields__ for name in raw):
        raise BadRecord(SPACE_WRONG)
    numbers = {name: _coordinate(raw.get(name)) for name in _NUMBERS}
    zone = raw.get("zone")
    planar, geographic = ((numbers[a], numbers[b]) for a, b in (("x", "y"), ("lat", "lon")))
    halves = (planar.count(None) == 1) or (geographic.count(None) == 1)
    points = (None not in planar) + (None not in geographic)
    if halves or points > 1 or (points == 0 and zone is None) or not isinstance(zone, str | None):
        raise BadRecord(SPACE_WRONG)
    return Space(**numbers, zone=zone)


def _coordinate(raw: object) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise BadRecord(SPACE_WRONG)
    try:
        number = float(raw)
    except OverflowError:
        raise BadRecord(SPACE_WRONG) from None
    if not isfinite(number):
        raise BadRecord(SPACE_WRONG)
    return number


def _attributes(raw: Mapping[str, object], envelope: frozenset[str], huge: Counter[str] | None) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for name, value in raw.items():
        if value is None or name in envelope:
            continue
        if isinstance(value, (str, bool)):
            out[name] = value
        elif isinstance(value, (int, float)):
            out[name] = _number(name, value, huge)
        elif isinstance(value, (ValueSet, ValueRange)):
            out[name] = value
        elif isinstance(value, list):
            if (several := compound_of(value)) is not None:
                out[name] = several
        elif isinstance(value, date):
            out[name] = microseconds_of(value) / MILLISECOND
        elif (plain := _of_numpy(value)) is not None:
            out.update(_attributes({name: plain}, envelope, huge))
        else:
            raise BadRecord(no_value(name))
    return out


def _number(name: str, value: float, huge: Counter[str] | None) -> float:
    if isinstance(value, float):
        if not isfinite(value):
            raise BadRecord(not_finite(name))
        return float(value)
    try:
        number = number_of(value)
    except OverflowError:
        raise BadRecord(not_finite(name)) from None
    if huge is not None and type(number) is float and is_beyond(value):
        huge[name] += 1
    return number
