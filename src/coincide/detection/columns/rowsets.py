"""Sets of rows: their numbers in order, each once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.tables import distinct

Rows = npt.NDArray[np.int64]
NO_ROWS: Rows = np.zeros(0, np.int64)


def in_both(some: Rows, others: Rows) -> Rows:
    """By search of the fewer among the others."""
    if not len(some) or not len(others):
        return NO_ROWS
    if len(some) > len(others):
        some, others = others, some
    at = np.searchsorted(others, some)
    at[at == len(others)] = 0
    both: Rows = some[others[at] == some]
    return both


def in_any(pieces: Sequence[Rows]) -> Rows:
    if not pieces:
        return NO_ROWS
    return pieces[0] if len(pieces) == 1 else distinct(np.concatenate(pieces))
