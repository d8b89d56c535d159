"""Gaps in time that no rule can cross: windows of a second do not close one after another until the year 9999."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from coincide.detection.base import DetectorPlan, State, Ticking
from coincide.detection.snapshots import NEVER
from coincide.errors import Diagnostic, RunError
from coincide.expr.quantities import duration_text
from coincide.model.batch import EventBatch
from coincide.model.stamp import iso_instant

MOST = 10_000_000
"""Times that a definition may act of itself between two events: more than anybody reads, less than any memory holds."""


class Gaps:
    """Watches how far time goes on at once."""

    def __init__(self, plans: Sequence[DetectorPlan]) -> None:
        self._plans = plans

    @property
    def are_watched(self) -> bool:
        """Does anything act of itself, again and again?"""
        return bool(self._ticking)

    @cached_property
    def _ticking(self) -> list[tuple[int, Ticking]]:
        """With the numbers of their plans, the most frequent first."""
        found = [(number, ticking) for number, plan in enumerate(self._plans) for ticking in plan.ticking]
        return sorted(found, key=lambda pair: pair[1].every)

    def find(self, hi: int, batch: EventBatch) -> int | None:
        """The number of the first event that is too long after the one before it; `hi` is that of the last one consumed."""
        if not self._ticking or not len(batch):
            return None
        most = self._ticking[0][1].every * MOST
        if batch.has_table:
            return _first_jump(batch.table.hi, hi, most)
        for number, event in enumerate(batch.events):
            if hi != NEVER and event.hi - hi > most:
                return number
            hi = event.hi
        return None

    def check(self, states: Sequence[State], hi: int, then: int) -> None:
        """Raises RunError if a definition would act too often before time has come from `hi` to `then`."""
        for number, ticking in self._ticking:
            if then - hi > ticking.every * MOST and self._plans[number].pending(states[number]) is not None:
                raise _too_far(ticking, hi, then)


def _first_jump(instants: Any, hi: int, most: int) -> int | None:
    import numpy as np

    before = np.concatenate(([instants[0] if hi == NEVER else hi], instants[:-1]))
    far = np.flatnonzero(instants - before > most)
    return int(far[0]) if len(far) else None


def _too_far(ticking: Ticking, hi: int, then: int) -> RunError:
    times = f"{(then - hi) // ticking.every:.1e}".replace("e+", "·10^")
    message = f"time goes on from {iso_instant(hi)} to {iso_instant(then)} at once"
    reason = f"'{ticking.name}' acts every {duration_text(ticking.every)}, so {times} times before"
    return RunError(
        Diagnostic(f"{message}; {reason}", ticking.span, hint="is the time of an event wrong, or `until` too far off?")
    )
