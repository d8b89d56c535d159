"""What is computed of each detection's candidates: compiled loops over groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.records import Doubles, Numbers
from coincide.detection.columns.worlds import compiled

FOLDS = ("count", "sum", "avg", "lowest", "highest", "first", "last")


@compiled
def folded(how: int, numbers: Doubles, offsets: Numbers) -> Any:
    """An aggregate of each group of numbers; nan is null."""
    out = np.full(len(offsets) - 1, np.nan)
    for group in range(len(offsets) - 1):
        count, total, lowest, highest, first, last = 0, 0.0, np.nan, np.nan, np.nan, np.nan
        for entry in range(offsets[group], offsets[group + 1]):
            number = numbers[entry]
            if np.isnan(number):
                continue
            if count == 0:
                lowest = highest = first = number
            lowest, highest, last = min(lowest, number), max(highest, number), number
            total += number
            count += 1
        if how == 0:
            out[group] = count
        elif count:
            average = total / count
            out[group] = (total, total, average, lowest, highest, first, last)[how]
            if not np.isfinite(out[group]):
                out[group] = np.nan
    return out


@compiled
def fill_latest(selected: Numbers, offsets: Numbers, rows: Numbers, operand: int, refs: Numbers) -> None:
    for number in range(len(rows)):
        for entry in range(offsets[rows[number]], offsets[rows[number] + 1]):
            if selected[entry, 0] == operand:
                refs[number] = selected[entry, 1]


@compiled
def sort(hi: Numbers, flat: Numbers, offsets: Numbers) -> Any:
    """Sorts in place, by insertion: what comes is nearly in order. Returns which detections have two events of one hi."""
    unclear = np.zeros(len(offsets) - 1, np.bool_)
    for number in range(len(offsets) - 1):
        start, end = offsets[number], offsets[number + 1]
        if end - start > 64:
            part = flat[start:end]
            flat[start:end] = part[np.argsort(hi[part])]
        for i in range(start + 1, end):
            entry, at = flat[i], i
            while at > start and hi[flat[at - 1]] > hi[entry]:
                flat[at] = flat[at - 1]
                at -= 1
            flat[at] = entry
        for i in range(start + 1, end):
            unclear[number] |= hi[flat[i]] == hi[flat[i - 1]]
    return unclear
