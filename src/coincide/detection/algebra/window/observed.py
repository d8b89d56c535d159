"""Which windows of a SUM or COUNT make something though nothing is in them (5.5): without a key, all; with one, the window
after each filled one, and those in which the key is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from coincide.detection.algebra.kernel.rows import Mask, Numbers
from coincide.detection.algebra.nodes.selection import Windows
from coincide.detection.columns.tables import distinct

NOTHING = np.zeros(0, np.int64)
Ask = tuple[int | None, int]
"""At an instant (None: when the observation starts), the wish to be woken at another."""


@dataclass(frozen=True, eq=False)
class Observed:
    """Keys (by slot) that are observed in a window, since when. Of one key and window the earliest counts."""

    slot: Numbers = field(default_factory=NOTHING.copy)
    window: Numbers = field(default_factory=NOTHING.copy)
    since: Numbers = field(default_factory=NOTHING.copy)

    def take(self, index: Numbers) -> Observed:
        return Observed(self.slot[index], self.window[index], self.since[index])

    def and_then(self, other: Observed) -> Observed:
        return Observed(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in ("slot", "window", "since")))


@dataclass(frozen=True, eq=False)
class Groups:
    """Windows of keys: group i has `size[i]` members from `start[i]` on."""

    window: Numbers
    slot: Numbers
    start: Numbers
    size: Numbers
    member: Numbers
    since: Numbers | None = None

    @property
    def members(self) -> Numbers:
        """Of all groups, one after another."""
        ends = np.cumsum(self.size)
        if len(ends) and ends[-1] == len(self.member) and (self.start == ends - self.size).all():
            return self.member
        flat = np.repeat(self.start - ends + self.size, self.size) + np.arange(int(ends[-1]) if len(ends) else 0)
        return self.member[flat]


def first_asks(observed: Observed, windows: Windows) -> Iterator[Ask]:
    order = np.lexsort((observed.since, observed.window))
    numbers, first = np.unique(observed.window[order], return_index=True)
    return ((at, windows.end(k)) for k, at in zip(numbers.tolist(), observed.since[order][first].tolist(), strict=True))


def throughout(groups: Groups, observed: Observed, windows: range) -> Groups:
    """All windows of a definition without a key."""
    window = np.array(windows, np.int64)
    begins, sizes = np.zeros(len(window), np.int64), np.zeros(len(window), np.int64)
    at = groups.window - windows.start
    begins[at], sizes[at] = groups.start, groups.size
    slot, since = (np.repeat(part[:1], len(window)) for part in (observed.slot, observed.since))
    return Groups(window, slot, begins, sizes, groups.member, since)


def with_empty(groups: Groups, observed: Observed, slots: int, last: int) -> tuple[Groups, Observed]:
    """Windows up to number `last`, and where keys are observed after it."""
    width = slots + 1
    filled, seen = groups.window * width + groups.slot, observed.window * width + observed.slot
    every = distinct(np.concatenate((filled, filled + width, seen)))
    window, slot = every // width, every % width
    at = np.searchsorted(filled, every)
    is_filled = np.append(filled, np.iinfo(np.int64).min)[at] == every
    since = _since(observed, every, seen, np.isin(every - width, filled), width)
    due, later = np.flatnonzero(window <= last), np.flatnonzero(window > last)
    begins, sizes = np.append(groups.start, 0), np.append(groups.size, 0)
    which = np.where(is_filled, at, len(groups.size))[due]
    found = Groups(window[due], slot[due], begins[which], sizes[which], groups.member, since[due])
    return found, Observed(slot, window, since).take(later)


def _since(observed: Observed, every: Numbers, seen: Numbers, goes_on: Mask, width: int) -> Numbers:
    """Since when the key of each window is observed: as in the window before, if that was filled, else since the key was
    first seen in it."""
    order = np.lexsort((observed.since, seen))
    keys, first = np.unique(seen[order], return_index=True)
    since = np.full(len(every), np.iinfo(np.int64).min)
    since[np.searchsorted(every, keys)] = observed.since[order][first]
    by_slot = np.lexsort((every // width, every % width))
    starts = np.maximum.accumulate(np.where(goes_on[by_slot], 0, np.arange(len(by_slot))))
    since[by_slot] = since[by_slot][starts]
    return since
