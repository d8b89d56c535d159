"""Rows by whole numbers, and such numbers without gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64] | npt.NDArray[np.int32]


def stable_order(*keys: npt.NDArray[Any]) -> Rows:
    """How rows come in order of some whole numbers, the last one first; equal ones as they are."""
    order: Rows | None = None
    for key in keys:
        if order is None:
            order = _order(key)
        elif len(key) and key.min() != key.max():
            order = order[_order(key[order])]
    assert order is not None
    return order


def _order(numbers: npt.NDArray[Any]) -> Rows:
    """One sort of plain integers, number and row in one, is many times faster than a sort of rows."""
    if not len(numbers):
        return np.zeros(0, np.int64)
    first, bits = int(numbers.min()), (len(numbers) - 1).bit_length()
    room, wide = 63 - bits, int(numbers.max()) - first
    if wide >> room:
        if wide >> 63 or wide // 1000 >> room or ((numbers - first) % 1000).any():
            return np.argsort(numbers, kind="stable")
        numbers, first = (numbers - first) // 1000, 0  # instants of whole milliseconds leave room for more
    both = ((numbers.astype(np.int64, copy=False) - first) << bits) | np.arange(len(numbers))
    both.sort()
    return both & ((1 << bits) - 1)


def without_gaps(numbers: Codes, size: int) -> tuple[Codes, int]:
    """The ranks of numbers from 0 to `size`, and how many there are: through a table, if it is not much longer than they are."""
    if size > 4 * len(numbers) + 1024:
        return _ranked(numbers)
    present = np.zeros(size, np.bool_)
    present[numbers] = True
    if present.all():
        return numbers, size
    ranks = np.cumsum(present, dtype=np.int32) - 1
    return ranks[numbers], int(ranks[-1]) + 1


def _ranked(numbers: Codes) -> tuple[Codes, int]:
    order = stable_order(numbers)
    found = numbers[order]
    ranks = np.empty(len(numbers), np.int32)
    ranks[order] = np.cumsum(np.diff(found, prepend=found[:1]) != 0, dtype=np.int32)
    return ranks, int(ranks[order[-1]]) + 1 if len(order) else 0


def first_rows(numbers: Codes, count: int) -> Rows:
    """For each of the numbers, none of which is missing, the first row that has it. Any row may have -1."""
    rows = np.empty(count + 1, np.int64)
    rows[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return rows[:count]
