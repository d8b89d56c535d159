"""Which row a navigation comes to, for many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.records import Integers, Mask

Numbers = npt.NDArray[np.int64]


def neighbours(bounds: Numbers, shift: int) -> Numbers:
    """For each row of segments the one so many rows on in its segment; -1: there is none."""
    found = np.empty(int(bounds[-1]), np.int64)
    _fill_neighbours(bounds, shift, found)
    return found


@compiled
def _fill_neighbours(bounds: Numbers, shift: int, found: Numbers) -> None:
    for segment in range(len(bounds) - 1):
        low, high = bounds[segment], bounds[segment + 1]
        for row in range(low, high):
            found[row] = row + shift if low <= row + shift < high else -1


def located(offsets: Numbers, labels: Any, wanted: Any, first: bool, back: int) -> Numbers:
    """For each match the place of its row with a wanted label, `back` such rows from the front or the end; -1: there is none."""
    found = np.full(len(offsets) - 1, -1, np.int64)
    _fill_located(offsets, labels, wanted, first, back, found)
    return found


@compiled
def _fill_located(offsets: Numbers, labels: Integers, wanted: Mask, first: bool, back: int, found: Numbers) -> None:
    for match in range(len(offsets) - 1):
        low, size = offsets[match], offsets[match + 1] - offsets[match]
        left = back
        for step in range(size):
            at = low + step if first else low + size - 1 - step
            if wanted[labels[at]]:
                if left == 0:
                    found[match] = at
                    break
                left -= 1
