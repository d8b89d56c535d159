"""Numbers, counts and durations of all languages: one table of units, one conversion, one set of bounds."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from coincide.errors import nearest
from coincide.model.stamp import LIMIT, MILLISECOND, milliseconds

UNITS = {
    **dict.fromkeys(("us", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ms", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("d", "day", "days"), 8.64e7),
    **dict.fromkeys(("w", "week", "weeks"), 6.048e8),
}
"""Milliseconds of each."""

UNIT_HINT = "units: us, ms, s, min, h, d, w, or these written out (5 minutes, 2 hrs)"

MOST = 10**18 - 1
"""Of a count: it must fit the integers of every engine."""


class QuantityError(ValueError):
    """What is wrong with a number, in words that can stand in a diagnostic."""


def number_of(text: str) -> float:
    """A number as written."""
    number = float(text)
    if not isfinite(number):
        raise QuantityError(f"the number '{shortened(text)}' is too large")
    return number


def count_of(text: str, least: int = 0, most: int = MOST) -> int:
    """A whole number as written, in digits."""
    # A number of thousands of digits is not a number to Python, and takes long to become one.
    digits = text.lstrip("0") or "0"
    if not (text.isascii() and text.isdecimal()) or (number := int(digits[: len(str(most)) + 1])) < least:
        raise QuantityError(f"expected a whole number from {least}, found '{shortened(text)}'")
    if number > most:
        raise QuantityError(f"expected a whole number of at most {most:,}, found '{shortened(text)}'")
    return number


def unit_of(word: str) -> float:
    """Milliseconds of a unit."""
    if word not in UNITS:
        raise QuantityError(f"unknown unit of time '{shortened(word)}'")
    return UNITS[word]


def unit_hint(word: str) -> str:
    near = nearest(word, UNITS) if len(word) > 2 else None
    return f"{near} {UNIT_HINT}" if near else UNIT_HINT


def microseconds_of(given: float, zero: bool = True) -> int:
    """A duration in milliseconds as stamps count. One that is too short or too long for them is an error. `zero`: may it be 0?"""
    if (zero and given == 0) or 1 <= given * MILLISECOND <= LIMIT:
        return round(given * MILLISECOND)
    raise QuantityError(f"a duration is {'0 or ' if zero else ''}from 1 µs to 2^62 µs")


def whole_units(microseconds: int, units: Iterable[str] = ("d", "h", "min", "s")) -> tuple[int, str] | None:
    """A duration as a number of the largest of these units, given from large to small, of which it is a whole number; nothing if
    there is none."""
    sizes = ((unit, round(UNITS[unit] * MILLISECOND)) for unit in units)
    return next(((microseconds // size, unit) for unit, size in sizes if microseconds and microseconds % size == 0), None)


def duration_text(microseconds: int, small: str = "ms") -> str:
    """As people and parsers read it: `5min`, `1.5ms`. `small`: how milliseconds are told."""
    number, unit = whole_units(microseconds) or (milliseconds(microseconds), small)
    return f"{number}{unit}"


def counted(number: int, noun: str) -> str:
    """`1 event`, `2,000 events`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shortened(text: str) -> str:
    """So much of a text as a message can bear."""
    return text if len(text) <= 40 else f"{text[:40]}…"
