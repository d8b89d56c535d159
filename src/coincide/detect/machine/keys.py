"""Keys of rows as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detect.machine.program import Key, key_part
from coincide.model.column import Column

Codes = npt.NDArray[np.int64] | npt.NDArray[np.int32]


def key_codes(columns: Sequence[Column]) -> tuple[Codes, list[Key]]:
    """The number of each row's key (-1: some part of it is null), and the keys by number."""
    first = columns[0]
    if len(columns) == 1 and first.codes is not None and first.numbers is None and first.flags is None:
        return first.codes, [(text,) for text in first.texts]  # a dictionary has done it already
    combined, size = _codes(first)
    for column in columns[1:]:
        codes, values = _codes(column)
        if size * values >= 1 << 62:
            combined, size = _renumbered(combined)
        combined, size = np.where((combined < 0) | (codes < 0), -1, combined * values + codes), size * values
    return _distinct(combined, columns)


def _codes(column: Column) -> tuple[Codes, int]:
    """Values as numbers from 0; equal values have equal numbers, values of different type have different ones."""
    size = 0
    codes = np.full(len(column), -1, np.int64)
    if column.codes is not None:
        codes, size = np.where(column.codes >= 0, column.codes, codes), len(column.texts)
    if column.numbers is not None:
        present = ~np.isnan(column.numbers)
        encoded = pa.array(column.numbers + 0.0).dictionary_encode()  # + 0.0: -0.0 is 0.0
        codes, size = np.where(present, encoded.indices.to_numpy() + size, codes), size + len(encoded.dictionary)
    if column.flags is not None:
        codes, size = np.where(column.flags >= 0, column.flags + size, codes), size + 2
    return codes, max(size, 1)


def _renumbered(codes: Codes) -> tuple[Codes, int]:
    encoded = pa.array(codes, mask=codes < 0).dictionary_encode()
    return encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), max(len(encoded.dictionary), 1)


def _distinct(combined: Codes, columns: Sequence[Column]) -> tuple[Codes, list[Key]]:
    numbers, size = _renumbered(combined)
    present = np.flatnonzero(numbers >= 0)[::-1]
    rows = np.zeros(size if len(present) else 0, np.int64)
    rows[numbers[present]] = present
    keys = [tuple(key_part(column.value(row)) for column in columns) for row in rows.tolist()]
    return numbers, keys
