"""How time passes in a stream: how late events may come, how far ahead they may be, and what happens when none come."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from coincide.engines.ahead import Guard
from coincide.errors import Diagnostic, InputError
from coincide.expr.parse import parse_duration
from coincide.expr.quantities import QuantityError

AHEAD = "1 day"
"""So far an event may be beyond the others unless it is said otherwise."""


@dataclass(frozen=True)
class Timing:
    """Microseconds. Without a guard the time of every event is believed. `idle`: after so long without an event, the clock
    follows the wall, and a source that is silent for so long is not waited for."""

    delay: int = 0
    guard: Guard | None = None
    idle: int | None = None

    @property
    def mode(self) -> str:
        """Whether Spark is to look at its timers: with these it runs micro-batches when nothing has come, too."""
        return "None" if self.idle is None else "ProcessingTime"

    def wall(self) -> Column:
        """The instant of the micro-batch, which stays the same when it is repeated."""
        needed = self.guard is not None or self.idle is not None
        return F.unix_micros(F.current_timestamp()) if needed else F.lit(None).cast("bigint")


BELIEVED = Timing()
"""Every time is believed, and none passes by itself."""


def timing(delay: str, ahead: str | None = AHEAD, idle: str | None = None) -> Timing:
    guard = None if ahead is None else Guard(_parsed(ahead, "ahead"))
    return Timing(parse_delay(delay), guard, None if idle is None else _parsed(idle, "idle"))


def guarded(ahead: str) -> Timing:
    return Timing(guard=Guard(_parsed(ahead, "ahead")))


def parse_delay(text: str) -> int:
    """`10 seconds`, `5min`, `1 hour 30 minutes`: microseconds."""
    return _parsed(text, "the delay")


def _parsed(text: str, what: str) -> int:
    try:
        return parse_duration(text)
    except QuantityError as error:
        raise InputError(Diagnostic(f"{what}: {error}", hint="such as '10 seconds', '5 min', '1 hour 30 minutes'")) from None
