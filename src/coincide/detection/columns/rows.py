"""A table of events as the rows that vectorised expressions read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from coincide.expr.vector import Microseconds, Spaces, spaces_of
from coincide.model.column import Column
from coincide.model.table import EventTable


class TableRows:
    def __init__(self, table: EventTable) -> None:
        self.table = table

    @property
    def length(self) -> int:
        return len(self.table)

    @property
    def lo(self) -> Microseconds:
        return self.table.lo

    @property
    def hi(self) -> Microseconds:
        return self.table.hi

    @property
    def space(self) -> Spaces | None:
        return spaces_of(self.table.spaces()) if "space" in self.table.fields else None

    def column(self, name: str) -> Column | None:
        return self.table.column(name)

    def take(self, rows: npt.NDArray[np.int64]) -> TableRows:
        return TableRows(self.table.take(rows))

    def nothing(self) -> Column:
        """A column without values."""
        return Column(len(self.table))
