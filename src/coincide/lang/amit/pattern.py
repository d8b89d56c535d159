"""Time patterns of the operator `at`: dd/mm/yyyy hh:mm:ss.mmm, a field of `*` for any value; UTC."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta

from coincide.model.stamp import EPOCH, MILLISECOND

FORM = re.compile(r"(\d\d?|\*+)/(\d\d?|\*+)/(\d{4}|\*+)\s+(\d\d?|\*+):(\d\d?|\*+):(\d\d?|\*+)\.(\d{1,3}|\*+)", re.ASCII)
FIELDS = ("day", "month", "year", "hour", "minute", "second", "millisecond")
RANGES = ((1, 31), (1, 12), (MINYEAR, MAXYEAR), (0, 23), (0, 59), (0, 59), (0, 999))


class PatternError(ValueError):
    """A pattern that is none; its text is the message."""


@dataclass(frozen=True)
class TimePattern:
    """Fields as in FIELDS; None matches any value."""

    fields: tuple[int | None, ...]

    @property
    def recurring(self) -> bool:
        return self.fields[2] is None

    @property
    def every(self) -> int:
        """The least time between two matching instants (microseconds), at most a day."""
        hour, minute, second, millisecond = (field is None for field in self.fields[3:])
        least = 1 if millisecond else 1000 if second else 60_000 if minute else 3_600_000 if hour else 86_400_000
        return least * MILLISECOND

    def after(self, instant: int) -> int | None:
        """The first matching instant strictly after this one (microseconds), if there is any."""
        first = instant // MILLISECOND + 1  # patterns match whole milliseconds
        try:
            start = EPOCH + timedelta(milliseconds=first)
        except OverflowError:
            if instant > 0:
                return None
            start = datetime(MINYEAR, 1, 1, tzinfo=UTC)
        for day in self._days(start.date()):
            here = start if day == start.date() else datetime(day.year, day.month, day.day, tzinfo=UTC)
            milliseconds = self._time_from(here)
            if milliseconds is not None:
                return ((day - EPOCH.date()) // timedelta(milliseconds=1) + milliseconds) * MILLISECOND
        return None

    def _days(self, start: date) -> Iterator[date]:
        """Matching days from `start` on."""
        day, month, year = self.fields[:3]
        for y in range(start.year, MAXYEAR + 1) if year is None else [year]:
            for m in range(1, 13) if month is None else [month]:
                last = monthrange(y, m)[1]
                for d in range(1, last + 1) if day is None else [day] if day <= last else []:
                    if (y, m, d) >= (start.year, start.month, start.day):
                        yield date(y, m, d)

    def _time_from(self, moment: datetime) -> int | None:
        """The first matching time of day at or after the moment's, in milliseconds."""
        at_least = (moment.hour, moment.minute, moment.second, moment.microsecond // MILLISECOND)
        found = _least(self.fields[3:], at_least, (23, 59, 59, 999))
        if found is None:
            return None
        hour, minute, second, millisecond = found
        return ((hour * 60 + minute) * 60 + second) * 1000 + millisecond


def _least(fields: tuple[int | None, ...], at_least: tuple[int, ...], most: tuple[int, ...]) -> tuple[int, ...] | None:
    """The least tuple that matches the fields and is not below `at_least`; values run from 0 to `most`."""
    if not fields:
        return ()
    low = at_least[0]
    lowest = tuple(0 if field is None else field for field in fields[1:])
    if fields[0] is not None and fields[0] != low:
        return (fields[0], *lowest) if fields[0] > low else None
    rest = _least(fields[1:], at_least[1:], most[1:])
    if rest is not None:
        return (low, *rest)
    return (low + 1, *lowest) if fields[0] is None and low < most[0] else None


def parse_pattern(text: str) -> TimePattern:
    found = FORM.fullmatch(text.strip())
    if found is None:
        raise PatternError(f"time pattern '{text}' is not dd/mm/yyyy hh:mm:ss.mmm")
    fields = tuple(None if part.startswith("*") else int(part) for part in found.groups())
    for name, value, (low, high) in zip(FIELDS, fields, RANGES, strict=True):
        if value is not None and not low <= value <= high:
            raise PatternError(f"time pattern '{text}': {name} out of range")
    pattern = TimePattern(fields)
    if next(pattern._days(date(MINYEAR, 1, 1)), None) is None:
        raise PatternError(f"time pattern '{text}' never matches")
    return pattern
