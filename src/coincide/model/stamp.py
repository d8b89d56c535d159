"""Time stamps: closed intervals of microseconds, and their orders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

MILLISECOND = 1_000  # of the microseconds that stamps count
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LIMIT = 2**62
"""Instants lie within this many microseconds of the epoch (146,000 years): a duration added to one still fits in 64 bits."""


class Stamp(NamedTuple):
    """`[lo, hi]` in microseconds since the epoch; a point has lo = hi."""

    lo: int
    hi: int


OrderKey = tuple[int, int, int, int, str]
"""Total order of primitive events: (hi, lo, 0 if the id is a whole number else 1, that number, id)."""


def order_key(lo: int, hi: int, identifier: str) -> OrderKey:
    """Whole-number ids come first and compare as numbers, all others as text by code point."""
    if identifier.isascii() and identifier.removeprefix("-").isdecimal():
        return hi, lo, 0, int(identifier), identifier
    return hi, lo, 1, 0, identifier


def parse_instant(text: str) -> int:
    """ISO-8601 (UTC where no zone is given) to microseconds. Raises ValueError."""
    return instant_of(datetime.fromisoformat(text))


def instant_of(moment: datetime) -> int:
    """A datetime (UTC where it has no zone) as microseconds."""
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (zoned - EPOCH) // timedelta(microseconds=1)


def format_instant(microseconds: int, timespec: str = "milliseconds") -> str:
    """Microseconds as ISO-8601 for people; out of the calendar's range, as a plain number of milliseconds."""
    try:
        text = (EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec=timespec)
    except OverflowError:
        return str(milliseconds(microseconds))
    return text.replace("+00:00", "Z")


def iso_instant(microseconds: int) -> str:
    """Microseconds as ISO-8601 without loss, to the millisecond where that is enough; beyond the calendar, a number of
    milliseconds as text."""
    return format_instant(microseconds, "milliseconds" if microseconds % MILLISECOND == 0 else "microseconds")


def milliseconds(microseconds: int) -> int | float:
    """What users see: milliseconds, integral where they are."""
    return microseconds // MILLISECOND if microseconds % MILLISECOND == 0 else microseconds / MILLISECOND
