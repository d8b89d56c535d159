"""Aggregates over columns: of the argument's values, grouped by windows, the value of each window and where there is one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coincide.detection.algebra.kernel.rows import Mask, Numbers
from coincide.detection.algebra.window.sums import group_sums
from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.numbers import comparable
from coincide.model.column import Column

Values = npt.NDArray[np.float64]
Totals = tuple[Column, Mask]


def _count(column: Column, offsets: Numbers) -> Totals:
    return _throughout(_sums((~column.is_null).astype(np.float64), offsets))


def _total(column: Column, offsets: Numbers) -> Totals:
    return _throughout(group_sums(_numbers(column), offsets))


def _average(column: Column, offsets: Numbers) -> Totals:
    numbers = _numbers(column)
    counts = _present(numbers, offsets)
    return Column(len(counts), group_sums(numbers, offsets) / np.maximum(counts, 1)), counts > 0


def _different(column: Column, offsets: Numbers) -> Totals:
    """How many different values each window has; null does not count."""
    codes = key_codes([column])[0].astype(np.int64)
    windows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[codes >= 0]
    pairs = np.unique(np.stack([windows, codes[codes >= 0]]), axis=1)
    found = np.bincount(pairs[0], minlength=len(offsets) - 1).astype(np.float64)
    return Column(len(found), found), found > 0


def _extreme(extreme: np.ufunc, column: Column, offsets: Numbers) -> Totals:
    """The least or greatest number."""
    if not len(column):
        return Column(len(offsets) - 1, np.zeros(len(offsets) - 1)), np.zeros(len(offsets) - 1, np.bool_)
    numbers = comparable([column])[0]
    found = extreme.reduceat(numbers, offsets[:-1])
    there = _present(numbers, offsets) > 0
    if column.rests is None:
        return Column(len(found), found), there
    known, first = np.unique(numbers, return_index=True)  # ranks: the rows that have them
    return column.take(first[np.searchsorted(known, np.where(there, found, known[0]))]), there


TOTALS: dict[str, Callable[[Column, Numbers], Totals]] = {
    "count": _count,
    "total": _total,
    "average": _average,
    "different": _different,
    "least": lambda column, offsets: _extreme(np.fmin, column, offsets),
    "greatest": lambda column, offsets: _extreme(np.fmax, column, offsets),
}
"""By the names that `aggregates.py` has for them."""


def sizes(offsets: Numbers) -> Totals:
    """Of the windows."""
    return _throughout(np.diff(offsets).astype(np.float64))


def _throughout(found: Values) -> Totals:
    return Column(len(found), found), np.ones(len(found), np.bool_)


def _numbers(column: Column) -> Values:
    return np.full(len(column), np.nan) if column.numbers is None else column.numbers


def _present(numbers: Values, offsets: Numbers) -> Values:
    """How many numbers there are."""
    missing = np.isnan(numbers)
    return _sums((~missing).astype(np.float64), offsets) if missing.any() else np.diff(offsets).astype(np.float64)


def _sums(values: Values, offsets: Numbers) -> Values:
    """Of whole numbers."""
    total = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(total[offsets[1:]] - total[offsets[:-1]])
