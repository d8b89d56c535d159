"""Events whose time lies too far in the future: they are set aside, so that they do not move the clock past all that is to come.

What comes together is seen as *runs*: stretches of time in which no two neighbours are more than `ahead` apart. Runs of several
tasks are joined to exactly those of all their events, so that nothing more has to be told to find what is set aside:

- in a stream that is live (its clock is within `ahead` of the wall's): what is more than `ahead` beyond the wall clock;
- else what comes after the run that has the median, so what is more than `ahead` beyond everything up to it, and more than
  `ahead` beyond the stream's clock; and, unless that is there already, what is more than `ahead` beyond the wall clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

DAY = 86_400_000_000
MOST = 1_000
"""So many runs are told apart; what comes after is one."""
FOREVER = 2**63 - 1

Run = tuple[int, int, int]
"""The first instant, the last one, and how many events."""


@dataclass(frozen=True)
class Guard:
    """All times are microseconds."""

    ahead: int = DAY

    def runs(self, instants: Any, wall: int | None) -> list[Run]:
        """Of an array of instants, in any order."""
        if not len(instants):
            return []
        first, last = int(instants.min()), int(instants.max())
        if last - first <= self.ahead and not first <= self._reach(wall) < last:
            return [(first, last, len(instants))]
        return self._cut(instants, self._reach(wall))

    def _cut(self, instants: Any, reach: int) -> list[Run]:
        import numpy as np

        ordered = np.sort(instants)
        lower, upper = ordered[:-1], ordered[1:]
        apart = (upper > lower + self.ahead) | ((lower <= reach) & (upper > reach))
        starts = [0, *(np.flatnonzero(apart)[: MOST - 1] + 1).tolist()]
        stops = [*starts[1:], len(ordered)]
        return [(int(ordered[a]), int(ordered[b - 1]), b - a) for a, b in zip(starts, stops, strict=True)]

    def joined(self, runs: Iterable[Run], wall: int | None) -> list[Run]:
        """The runs of all events of which these are some runs each."""
        reach = self._reach(wall)
        found: list[Run] = []
        for first, last, count in sorted(runs):
            if found and first - found[-1][1] <= self.ahead and not found[-1][1] <= reach < first:
                before = found.pop()
                found.append((before[0], max(before[1], last), before[2] + count))
            else:
                found.append((first, last, count))
        return found

    def limit(self, runs: Sequence[Run], wall: int | None, clock: int | None) -> int:
        """What lies beyond it is set aside. `runs` are those of all that came together, `clock` how far the stream had come."""
        if not runs:
            return FOREVER
        median = median_run(runs)
        at = median[1] if clock is None else clock
        if wall is None or at > self._reach(wall):
            return self._believed(runs, clock)  # simulated time
        if at >= wall - self.ahead:
            return self._reach(wall)
        plausible = [run for run in runs if run[1] <= self._reach(wall)]
        return self._believed(plausible, clock) if plausible else self._reach(wall)

    def _believed(self, runs: Sequence[Run], clock: int | None) -> int:
        """The end of the run that has the median, or of the last to which the clock can go on, if most are late."""
        near = [last for first, last, _ in runs if clock is not None and first - clock <= self.ahead]
        return max([median_run(runs)[1], *near])

    def limit_by_wall(self, wall: int, clock: int) -> int:
        """The same where only the wall clock counts: for events that come one by one. Simulated time may be beyond it."""
        return FOREVER if clock > self._reach(wall) else self._reach(wall)

    def _reach(self, wall: int | None) -> int:
        return FOREVER if wall is None else min(wall + self.ahead, FOREVER)


def median_run(runs: Sequence[Run]) -> Run:
    """The run in which the (lower) median of all events lies."""
    middle = (sum(count for _, _, count in runs) + 1) // 2
    for run in runs:
        middle -= run[2]
        if middle <= 0:
            return run
    return runs[-1]
