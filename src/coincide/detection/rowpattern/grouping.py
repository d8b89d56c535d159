"""Rows by partition: each row's number of its partition, and the rows put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.numbers import comparable
from coincide.detection.columns.records import Integers
from coincide.model.column import Column

Numbers = npt.NDArray[np.int64]


def partition_codes(columns: Sequence[Column], length: int) -> tuple[Numbers, Numbers]:
    """The number of each row's partition, in order of their first rows, and those first rows. Null is a key like any other;
    a list counts as null."""
    if not columns:
        return np.zeros(length, np.int64), np.zeros(min(length, 1), np.int64)
    combined = np.zeros(length, np.int64)
    size = 1
    for column in columns:
        codes, count = _codes(column)
        if size * (count + 1) >= 1 << 62:
            combined, size = _renumbered(combined)
        combined, size = combined * (count + 1) + codes + 1, size * (count + 1)
    numbers, count = _renumbered(combined)
    first = np.full(count, length, np.int64)
    _fill_first(numbers, first)
    return numbers, first


def _codes(column: Column) -> tuple[Any, int]:
    """Numbers from 0, -1 for null; values of different kinds have different ones."""
    codes, size = np.full(len(column), -1, np.int64), 0
    if column.codes is not None:
        codes, size = column.codes.astype(np.int64), len(column.texts)
    if column.flags is not None:
        codes, size = np.where(column.flags >= 0, column.flags.astype(np.int64) + size, codes), size + 2
    if column.numbers is not None:
        numbers = comparable([column])[0]
        encoded = pa.array(numbers + 0.0, from_pandas=True).dictionary_encode()  # + 0.0: -0.0 is 0.0
        own = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        codes, size = np.where(own >= 0, own + size, codes), size + len(encoded.dictionary)
    if column.compounds is not None:  # a list of one value is a value elsewhere
        codes = np.where([compound is None for compound in column.compounds], codes, -1)
    return codes, size


def _renumbered(values: Numbers) -> tuple[Numbers, int]:
    """In order of first appearance."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


@compiled
def _fill_first(numbers: Integers, first: Numbers) -> None:
    for row in range(len(numbers) - 1, -1, -1):
        first[numbers[row]] = row


@compiled
def _fill_order(numbers: Integers, ends: Numbers, order: Numbers) -> None:
    for row in range(len(numbers) - 1, -1, -1):
        ends[numbers[row]] -= 1
        order[ends[numbers[row]]] = row


def grouped(numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The rows of each partition one after the other, in their order, and where each begins."""
    sizes = np.bincount(numbers, minlength=count)
    bounds = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    order = np.empty(len(numbers), np.int64)
    _fill_order(numbers, bounds[1:].copy(), order)
    return order, bounds
