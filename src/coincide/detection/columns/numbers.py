"""Numbers of columns as doubles that compare as they do: what compiled loops, which see doubles only, are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coincide.model.column import Column, Numbers, concatenated


def comparable(columns: Sequence[Column]) -> list[Numbers]:
    """The numbers of columns that are compared with one another, nan for null: themselves, or, where some are no doubles, their
    ranks among all of them."""
    numbers = [np.full(len(c), np.nan) if c.numbers is None else c.numbers for c in columns]
    if all(column.rests is None for column in columns):
        return numbers
    whole = concatenated([Column(len(c), values, rests=c.rests) for c, values in zip(columns, numbers, strict=True)])
    return np.split(_ranks(whole), np.cumsum([len(column) for column in columns])[:-1])


def _ranks(column: Column) -> Numbers:
    assert column.numbers is not None
    assert column.rests is not None
    order = np.lexsort((column.rests, column.numbers))
    numbers, rests = column.numbers[order], column.rests[order]
    differs = (numbers[1:] != numbers[:-1]) | (rests[1:] != rests[:-1])
    ranks = np.empty(len(column), np.float64)
    ranks[order] = np.concatenate(([0], np.cumsum(differs)))[: len(column)]
    return np.where(np.isnan(column.numbers), np.nan, ranks)
