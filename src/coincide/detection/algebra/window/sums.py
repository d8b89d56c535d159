"""Sums of groups of numbers, exact before they are rounded once: as `math.fsum`, and so the same in every tier."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.records import Doubles, Numbers

MOST = 64
"""Parts of a sum that do not overlap: doubles have no room for more."""


def group_sums(values: Any, offsets: Any) -> Any:
    """nan: no number."""
    found = np.zeros(len(offsets) - 1)
    _sum_groups(np.ascontiguousarray(values), np.ascontiguousarray(offsets, np.int64), found, np.zeros(MOST))
    return found


@compiled
def _sum_groups(values: Doubles, offsets: Numbers, found: Doubles, parts: Doubles) -> None:
    for group in range(len(found)):
        count = 0
        for at in range(offsets[group], offsets[group + 1]):
            if values[at] == values[at]:
                count = _added(parts, count, values[at])
        found[group] = _rounded(parts, count)


@inner
def _added(parts: Doubles, count: int, x: float) -> Any:
    """Shewchuk's exact addition: parts that do not overlap, ascending."""
    length = 0
    for i in range(count):
        y = parts[i]
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            parts[length] = low
            length += 1
        x = high
    parts[length] = x
    return length + 1


@inner
def _rounded(parts: Doubles, count: int) -> Any:
    """The nearest number; of two that are as near the even one, which what is left over decides."""
    if count == 0:
        return 0.0
    count -= 1
    high, low = parts[count], 0.0
    while count > 0:
        count -= 1
        x, y = high, parts[count]
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    if count > 0 and ((low < 0.0 and parts[count - 1] < 0.0) or (low > 0.0 and parts[count - 1] > 0.0)):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high
