"""Time along a line: where an instant lies, and ticks at round times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coincide.model.stamp import MILLISECOND, format_instant

SECOND, MINUTE, HOUR, DAY = 1_000.0, 60_000.0, 3_600_000.0, 86_400_000.0
STEPS = [
    *(n * 10**e for e in range(4) for n in (1.0, 2.0, 5.0)),
    *(n * SECOND for n in (10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 365, 3650)),
]
MOST_TICKS = 13
CALENDAR = 365 * DAY  # earlier times are counters of a test, not dates


@dataclass(frozen=True)
class Scale:
    """From the first to the last instant, in milliseconds."""

    first: float
    last: float

    def place(self, time: float) -> float:
        """Between 0 and 1."""
        return 0.5 if self.last == self.first else (time - self.first) / (self.last - self.first)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        length = self.last - self.first
        step = next((s for s in STEPS if length / s <= MOST_TICKS), STEPS[-1])
        begin = int(-(-self.first // step))
        return [(n * step, self._words(n * step, step)) for n in range(begin, int(self.last // step) + 1)]

    @property
    def caption(self) -> str:
        if self.first < CALENDAR:
            return f"{self.first:g} to {self.last:g} ms"
        first, last = (_iso(t)[:16].replace("T", " ") for t in (self.first, self.last))
        return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"

    def _words(self, time: float, step: float) -> str:
        if self.first < CALENDAR:
            return f"{time:g}"
        text = _iso(time)
        if step >= DAY:
            return text[:10]
        if time % DAY == 0 and self.last - self.first > DAY:
            return text[5:10]  # where a day begins, which one
        return text[11:16] if step >= MINUTE else text[11:19] if step >= SECOND else text[11:23]


def _iso(time: float) -> str:
    return format_instant(round(time * MILLISECOND))


def time_scale(spans: Iterable[tuple[float, float]]) -> Scale:
    """The scale on which all these have room."""
    ends = [end for span in spans for end in span]
    return Scale(min(ends), max(ends)) if ends else Scale(0.0, 0.0)
