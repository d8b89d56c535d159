"""Numbers as the loop compares them: themselves, or, once some are no doubles, their ranks among all that there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coincide.detection.columns.numbers import comparable
from coincide.detection.situation.kernel.state import Tables
from coincide.model.column import Column, concatenated


def ranked(state: Tables, size: int, by_number: Mapping[int, Column]) -> dict[int, Any]:
    """What stands for the numbers of new events, nan for null; ranks of those before, up to `size`, may change."""
    columns = [*by_number.values()]
    state.numeric.update(number for number, column in by_number.items() if column.numbers is not None)
    if state.numbers is None and all(column.rests is None for column in columns):
        return dict(zip(by_number, comparable(columns), strict=True))
    used = _used(state, size)
    known = _numbers(state, used)
    ranks, *own = comparable([known, *columns])
    for number in state.numeric:
        values = state.values[number, :size]
        there = np.flatnonzero(~np.isnan(values))
        values[there] = ranks[np.searchsorted(used, values[there])]
    everything = concatenated([known, *(Column(len(c), c.numbers, rests=c.rests) for c in columns)])
    distinct, first = np.unique(np.concatenate([ranks, *own]), return_index=True)
    state.numbers = everything.take(first[~np.isnan(distinct)])
    return dict(zip(by_number, own, strict=True))


def _used(state: Tables, size: int) -> Any:
    """Each value that some event has, in order."""
    used = np.unique(np.concatenate([np.zeros(0), *(state.values[number, :size] for number in state.numeric)]))
    return used[~np.isnan(used)]


def _numbers(state: Tables, values: Any) -> Column:
    """What they stand for."""
    if state.numbers is not None:
        return state.numbers.take(values.astype(np.int64))
    return Column(len(values), values, rests=np.zeros(len(values), np.int16))
