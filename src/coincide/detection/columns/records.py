"""Whole numbers by name: records that compiled loops keep in arrays, and the columns of matrices."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]
Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Records = npt.NDArray[np.void]


def record(names: str) -> np.dtype[np.void]:
    """Python, too, reads a field of one as an attribute."""
    return np.dtype((np.record, np.dtype([(name, np.int64) for name in names.split()], align=True)))


def columns(name: str, fields: str) -> Any:
    """Numbers of columns by name; `width` is how many there are."""
    return namedtuple(name, f"{fields} width")(*range(len(fields.split()) + 1))
