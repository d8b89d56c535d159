"""When a timer is due: after a duration, at an instant, or at a time of day (OP-13, OP-14)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo

from coincide.expr.parse import parse_duration
from coincide.model.stamp import EPOCH, parse_instant

TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s+(\S+))?")


DAY = 86_400_000_000
CYCLE = 146_097 * DAY  # the days of 400 years: they come again on the same dates and days of the week
CALENDAR = 1_900 * 365 * DAY  # at least so far to both sides of the epoch there are dates


@dataclass(frozen=True)
class Duration:
    """A relative time, in microseconds; `text` is how it was written."""

    microseconds: int
    text: str = field(compare=False, repr=False)

    def due(self, hi: int) -> int:
        return hi + self.microseconds


@dataclass(frozen=True)
class At:
    """An absolute time: an ISO-8601 instant, or `HH:MM[:SS] [ZONE]`."""

    text: str

    def due(self, hi: int) -> int:
        """Of an instant that has passed: at once (decision D-12). Of a time of day: the next one."""
        if (instant := self._instant) is not None:
            return max(instant, hi)
        return self._next_of_day(hi)

    @cached_property
    def _instant(self) -> int | None:
        return None if TIME_OF_DAY.fullmatch(self.text) else parse_instant(self.text)

    @property
    def of_day(self) -> int | None:
        """Microseconds since midnight, of a time of day."""
        if self._instant is not None:
            return None
        hour, minute, second, _ = self._of_day
        return ((hour * 60 + minute) * 60 + second) * 1_000_000

    @property
    def zone(self) -> tzinfo:
        return self._of_day[3]

    @cached_property
    def _of_day(self) -> tuple[int, int, int, tzinfo]:
        found = TIME_OF_DAY.fullmatch(self.text)
        assert found is not None
        hour, minute, second, zone = found.groups(default="")
        return int(hour), int(minute), int(second or 0), ZoneInfo(zone) if zone else UTC

    def _next_of_day(self, hi: int) -> int:
        if not -CALENDAR < hi < CALENDAR:  # no calendar of Python's goes so far, but calendars repeat
            whole = hi // CYCLE * CYCLE
            return whole + self._next_of_day(hi - whole)
        hour, minute, second, zone = self._of_day
        today = (EPOCH + timedelta(microseconds=hi)).astimezone(zone).date()
        for days in range(-1, 3):
            day = today + timedelta(days=days)
            # fold 0: in a gap the offset before the change, of a time that comes twice the first.
            moment = datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=zone)
            due = (moment - EPOCH) // timedelta(microseconds=1)
            if due > hi:
                return due
        raise AssertionError("a time of day comes every day")

    def check(self) -> None:
        """Raises ValueError (a bad time) or KeyError (an unknown zone)."""
        if TIME_OF_DAY.fullmatch(self.text):
            hour, minute, second, _ = self._of_day_checked()
            datetime(2000, 1, 1, hour, minute, second)
        else:
            parse_instant(self.text)

    def _of_day_checked(self) -> tuple[int, int, int, tzinfo]:
        try:
            return self._of_day
        except (KeyError, ValueError, OSError) as unknown:  # ZoneInfo raises any of these for what is not a zone
            raise KeyError(self.text.split(None, 1)[1]) from unknown


TimeSpec = Duration | At


def written(text: str) -> str:
    """A duration as it is printed: no space between a number and its unit, and never without one, since a name may follow."""
    together = re.sub(r"(\d) (?=[a-z])", r"\1", " ".join(text.split()))
    return f"{together}ms" if together[-1].isdecimal() else together


def time_of(text: str) -> TimeSpec:
    """What a text in quotes names. Raises ValueError (no time; a QuantityError if it is meant as a duration) or KeyError (an
    unknown zone)."""
    if re.match(r"\s*\d+(\.\d+)?(\s+[A-Za-z]|[a-z]|\s*$)", text):
        return Duration(parse_duration(text), written(text))
    time = At(text)
    time.check()
    return time
