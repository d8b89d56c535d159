"""Instants in lanes, and how many of them fall where: what a timeline is drawn of, however many there are.

Time is cut into buckets of 2**level microseconds that begin at multiples of their width; a tile has so many for each lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

BUCKETS = 256
"""Of a tile."""
MOST = 120
"""Lanes; what is beyond shares the last one."""
OTHERS = "(other types)"
HIGHEST = 53
"""A bucket of this level is longer than any time that there is."""

Instants = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Lanes:
    """`times[n]` has the lane `codes[n]`. A lane's own instants are sorted once, when they are asked for."""

    names: tuple[str, ...]
    times: Instants
    codes: Codes

    @cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        return np.bincount(self.codes, minlength=len(self.names))

    @cached_property
    def rows(self) -> list[npt.NDArray[np.int64]]:
        """Of each lane, the numbers of its instants in the order of time."""
        order = np.lexsort((self.times, self.codes))
        return np.split(order, np.cumsum(self.counts)[:-1]) if self.names else []

    @cached_property
    def _sorted(self) -> list[Instants]:
        return [self.times[rows] for rows in self.rows]

    def sort(self) -> None:
        """Now, so that the first tile need not wait for it."""
        _ = self._sorted

    @property
    def span(self) -> tuple[int, int] | None:
        return (int(self.times.min()), int(self.times.max())) if len(self.times) else None

    def tile(self, level: int, index: int) -> npt.NDArray[np.uint32]:
        """How many of each lane are in each bucket of a tile."""
        edges = (np.arange(BUCKETS + 1, dtype=np.int64) + index * BUCKETS) << level
        found = [np.diff(np.searchsorted(own, edges)) for own in self._sorted]
        return np.array(found, np.uint32).reshape(len(self.names), BUCKETS)

    def between(self, first: int, last: int, most: int, lanes: frozenset[int] | None = None) -> npt.NDArray[np.int64] | None:
        """The numbers of all in a stretch of time, both ends included, in its order; None if these are more than `most`."""
        found, count = [], 0
        for lane, (own, rows) in enumerate(zip(self._sorted, self.rows, strict=True)):
            if lanes is None or lane in lanes:
                a, b = np.searchsorted(own, first), np.searchsorted(own, last, "right")
                found.append(rows[a:b])
                count += int(b - a)
                if count > most:
                    return None
        picked = np.concatenate(found) if found else np.empty(0, np.int64)
        return picked[np.argsort(self.times[picked], kind="stable")]

    def only(self, mask: npt.NDArray[np.bool_]) -> Lanes:
        """The same lanes with some of the instants. Their numbers are other ones."""
        return Lanes(self.names, self.times[mask], self.codes[mask])


def lanes_of(kinds: Sequence[str], numbers: Codes, times: Instants, stable: bool = False) -> Lanes:
    """`numbers` say which of the `kinds` each instant is of. The most frequent kinds come first; in a `stable` order, in which a
    lane stays where it is when more instants come, those that came first."""
    counts = np.bincount(numbers, minlength=len(kinds))
    order = list(range(len(kinds))) if stable else sorted(range(len(kinds)), key=lambda n: (-counts[n], kinds[n]))
    order = [n for n in order if counts[n] or stable]
    shown = order if len(order) <= MOST else order[: MOST - 1]
    names = tuple(kinds[n] for n in shown) + ((OTHERS,) if len(order) > len(shown) else ())
    place = np.full(max(1, len(kinds)), len(names) - 1, np.int32)
    place[shown] = np.arange(len(shown), dtype=np.int32)
    return Lanes(names, times, place[numbers] if len(numbers) else numbers)
