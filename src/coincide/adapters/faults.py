"""Which rows of a columnar batch are bad, and why: the first reason found stays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


class Faults:
    def __init__(self, rows: int) -> None:
        self.bad: Mask = np.zeros(rows, np.bool_)
        self._reasons: dict[int, str] = {}

    def add(self, mask: Mask, reason: str) -> None:
        if mask.any():
            for row in np.flatnonzero(mask & ~self.bad).tolist():
                self._reasons[row] = reason
            self.bad |= mask

    def add_row(self, row: int, reason: str) -> None:
        self._reasons.setdefault(row, reason)
        self.bad[row] = True

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Bad rows in order."""
        return iter(sorted(self._reasons.items()))
