"""Keys of rows as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.keys import Key, key_part
from coincide.model.column import Column
from coincide.model.numbers import EXACT
from coincide.model.sorting import first_rows, without_gaps

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64] | npt.NDArray[np.int32]


class Keys(Sequence[Key]):
    """Keys of the rows of some columns, no part of which is null. They are made when somebody looks at one: that takes longer
    than to number them, and who steps once never looks."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Key]:
        return iter(self.made)

    @overload
    def __getitem__(self, number: int) -> Key: ...
    @overload
    def __getitem__(self, number: slice) -> list[Key]: ...
    def __getitem__(self, number: int | slice) -> Key | list[Key]:
        return self.made[number]

    @cached_property
    def made(self) -> list[Key]:
        return list(zip(*map(_key_parts, self._columns), strict=True))

    def take(self, numbers: npt.NDArray[np.int64]) -> Keys:
        return Keys([column.take(numbers) for column in self._columns])


def key_codes(columns: Sequence[Column]) -> tuple[Codes, Keys]:
    """The number of each row's key (-1: some part of it is null), and the keys by number."""
    first = columns[0]
    if len(columns) == 1 and first.codes is not None and first.numbers is None and first.flags is None:
        every = np.arange(len(first.texts), dtype=np.int32)
        return first.codes, Keys([Column(len(every), codes=every, texts=first.texts)])  # a dictionary has done it already
    combined, size = _codes(first)
    for column in columns[1:]:
        codes, values = _codes(column)
        if size * values >= 1 << 62:
            combined, size = _numbered(combined, size)
        product = combined.astype(np.int64) * values + codes
        combined, size = np.where((combined < 0) | (codes < 0), -1, product), size * values
    return _distinct(combined, size, columns)


def _codes(column: Column) -> tuple[Codes, int]:
    """Values as numbers from 0; equal values have equal numbers, values of different type have different ones."""
    parts: list[tuple[Codes, int]] = []
    if column.codes is not None:
        parts.append((column.codes, len(column.texts)))
    if column.numbers is not None:
        parts.append(_number_codes(column.numbers) if column.rests is None else _exact_codes(column.numbers, column.rests))
    if column.flags is not None:
        parts.append((column.flags.astype(np.int32), 2))
    if not parts:
        return np.full(len(column), -1, np.int32), 1
    codes, size = parts[0]
    for more, values in parts[1:]:
        codes, size = np.where(more >= 0, more + size, codes), size + values
    return codes, max(size, 1)


def _number_codes(numbers: npt.NDArray[np.float64]) -> tuple[Codes, int]:
    """Whole numbers of a modest range stand for themselves, of any other they are sorted; what is not whole is hashed."""
    low, high = (np.fmin.reduce(numbers), np.fmax.reduce(numbers)) if len(numbers) else (0.0, 0.0)
    if high - low < EXACT:  # not so if all are nan
        absent = np.isnan(numbers)
        size = int(high - low) + 1
        modest = size <= 4 * len(numbers) + 1024
        offsets = np.where(absent, -1.0, numbers - low)
        codes: Codes = offsets.astype(np.int32) if modest else offsets.astype(np.int64)
        if ((codes + low == numbers) | absent).all():
            return (codes, size) if modest else _numbered(codes, size)
    return _hashed(numbers)


def _exact_codes(numbers: npt.NDArray[np.float64], rests: npt.NDArray[np.int16]) -> tuple[Codes, int]:
    """By both what numbers are nearest to, and their rests."""
    codes, size = _hashed(numbers)
    least = int(rests.min(initial=0))
    width = int(rests.max(initial=0)) - least + 1
    return _numbered(np.where(codes < 0, -1, codes * width + (rests - least)), size * width)


def _hashed(numbers: npt.NDArray[np.float64]) -> tuple[Codes, int]:
    encoded = pa.array(numbers + 0.0, from_pandas=True).dictionary_encode()  # + 0.0: -0.0 is 0.0
    return encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), max(len(encoded.dictionary), 1)


def _numbered(codes: Codes, size: int) -> tuple[Codes, int]:
    """Without gaps; -1 stays."""
    if codes.min(initial=0) >= 0:
        return without_gaps(codes, size)
    numbers, count = without_gaps(codes + 1, size + 1)
    return numbers - 1, count - 1


def _key_parts(column: Column) -> Sequence[object]:
    """Parts of keys, none of which is null."""
    plain = column.singles if column.numbers is None else replace(column.singles, numbers=column.numbers + 0.0)  # -0.0 is 0.0
    return plain.values() if plain.flags is None else [*map(key_part, plain.values())]


def _distinct(combined: Codes, size: int, columns: Sequence[Column]) -> tuple[Codes, Keys]:
    """Numbers without gaps, and the key of each."""
    numbers, count = _numbered(combined, size)
    rows = first_rows(numbers, count)
    return numbers, Keys([column.take(rows) for column in columns])


def value_codes(column: Column) -> tuple[npt.NDArray[np.int64], int]:
    """Values as numbers, null among them, and how many there can be: equal values have equal numbers. A set is
    a value of its own."""
    codes, size = _codes(column.singles)
    codes, size = codes.astype(np.int64) + 1, size + 1
    if column.compounds is None:
        return codes, size
    met: dict[object, int] = {}
    for row in np.flatnonzero([compound is not None for compound in column.compounds]).tolist():
        compound = column.compounds[row]
        spelled = (compound, *(type(member) for member in getattr(compound, "members", ())))  # true is not 1
        codes[row] = size + met.setdefault(spelled, len(met))
    return codes, size + len(met)


def combined_codes(columns: Sequence[Column]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The number of each row's combination of values, without gaps, and a row that has it."""
    combined, size = value_codes(columns[0])
    for column in columns[1:]:
        codes, values = value_codes(column)
        if size * values >= 1 << 62:
            numbers, size = without_gaps(combined, size)
            combined = numbers.astype(np.int64)
        combined, size = combined * values + codes, size * values
    numbers, count = without_gaps(combined, size)
    return numbers.astype(np.int64, copy=False), first_rows(numbers, count)
