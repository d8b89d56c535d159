"""Events by their refs, as expressions see them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import numbered
from coincide.detection.situation.prefilter import fitted
from coincide.expr.vector import Microseconds, Spaces, spaces_of
from coincide.model.column import Column
from coincide.model.event import ENVELOPE

Refs = npt.NDArray[np.int64]


class Gathered:
    """Rows of an expression; a ref of -1: there is none, and all its attributes are null."""

    def __init__(self, store: Store, refs: Refs, kinds: dict[str, type]) -> None:
        self.store = store
        self.refs = refs
        self.kinds = kinds

    @cached_property
    def _distinct(self) -> tuple[Refs, Refs]:
        """Each ref once, and where it is for each row."""
        return numbered(np.maximum(self.refs, 0), max(1, len(self.store)))

    @property
    def length(self) -> int:
        return len(self.refs)

    @property
    def lo(self) -> Microseconds:
        used, index = self._distinct
        return self.store.lo(used)[index]

    @property
    def hi(self) -> Microseconds:
        used, index = self._distinct
        return self.store.hi(used)[index]

    @property
    def space(self) -> Spaces | None:
        if not any("space" in chunk.fields for chunk in self.store.chunks):
            return None
        used, index = self._distinct
        spaces = self.store.spaces(used)
        return spaces_of([spaces[row] for row in index])

    def column(self, name: str) -> Column | None:
        if name not in ENVELOPE and name not in self.kinds:
            return None
        used, index = self._distinct
        column = self.store.column(name, used).take(index)
        return absent(column if name in ENVELOPE else fitted(column, self.kinds[name]), self.refs < 0)


def absent(column: Column, where: Any) -> Column:
    """The column with nulls in some rows."""
    if not where.any():
        return column
    numbers = None if column.numbers is None else np.where(where, np.nan, column.numbers)
    codes = None if column.codes is None else np.where(where, np.int32(-1), column.codes)
    flags = None if column.flags is None else np.where(where, np.int8(-1), column.flags)
    rests = None if column.rests is None else np.where(where, np.int16(0), column.rests)
    return Column(len(column), numbers, codes, column.texts, flags, rests=rests)
