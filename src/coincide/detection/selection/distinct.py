"""A column by its distinct values: tests are made once for each, whatever the number of rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.numbers import comparable
from coincide.detection.columns.rowsets import NO_ROWS, Rows
from coincide.detection.columns.tables import distinct
from coincide.detection.selection.tests import members
from coincide.model.column import Column
from coincide.model.compound import Single


class Distinct:
    """`values` of a column, each once; `rows_of` tells where they stand. A row may have several."""

    def __init__(self, column: Column) -> None:
        self.values: list[Single] = list(column.texts) if column.codes is not None else []
        parts: list[tuple[Rows, Rows]] = []  # rows, and the number of their value
        if column.codes is not None:
            parts.append(_present(column.codes, column.codes >= 0))
        if column.numbers is not None:
            there = np.flatnonzero(~np.isnan(column.numbers))
            numbers = comparable([column])[0][there] + 0.0
            _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
            parts.append((there, inverse.astype(np.int64) + len(self.values)))
            self.values += _numbers(column, there[first])
        if column.flags is not None:
            rows, codes = _present(column.flags, column.flags >= 0)
            parts.append((rows, codes + len(self.values)))
            self.values += [False, True]
        if column.compounds is not None:
            parts.append(self._several(column))
        self.rows = np.concatenate([rows for rows, _ in parts]) if parts else NO_ROWS
        self.codes = np.concatenate([codes for _, codes in parts]) if parts else NO_ROWS

    def _several(self, column: Column) -> tuple[Rows, Rows]:
        assert column.compounds is not None
        known: dict[tuple[type, Single], int] = {}
        rows: list[int] = []
        codes: list[int] = []
        for row in np.flatnonzero([compound is not None for compound in column.compounds]).tolist():
            for value in members(column.compounds[row]):
                code = known.get((type(value), value))
                if code is None:
                    code = known[type(value), value] = len(self.values)
                    self.values.append(value)
                rows.append(row)
                codes.append(code)
        return np.array(rows, np.int64), np.array(codes, np.int64)

    @cached_property
    def _by_code(self) -> tuple[Rows, Rows]:
        order = pc.array_sort_indices(pa.array(self.codes)).to_numpy()  # by counting, where codes are many
        return self.rows[order], np.searchsorted(self.codes[order], np.arange(len(self.values) + 1))

    def rows_of(self, codes: Rows) -> Rows:
        """The rows that have one of these values, in order."""
        rows, starts = self._by_code
        if len(codes) == 1:
            return rows[starts[codes[0]] : starts[codes[0] + 1]]
        pieces = [rows[start:end] for start, end in zip(starts[codes].tolist(), starts[codes + 1].tolist(), strict=True)]
        return distinct(np.concatenate(pieces)) if pieces else NO_ROWS

    @cached_property
    def present(self) -> Rows:
        """The rows that have a value."""
        return distinct(self.rows)


def _numbers(column: Column, rows: Rows) -> list[Single]:
    assert column.numbers is not None
    found: list[Single] = (column.numbers[rows] + 0.0).tolist()
    if column.rests is not None:
        found = [int(n) + rest if rest else n for n, rest in zip(found, column.rests[rows].tolist(), strict=True)]
    return found


def _present(codes: npt.NDArray[np.int32] | npt.NDArray[np.int8], there: npt.NDArray[np.bool_]) -> tuple[Rows, Rows]:
    rows = np.flatnonzero(there)
    return rows, codes[rows].astype(np.int64)
