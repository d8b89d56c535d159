"""A table of events as the rows that vectorised expressions read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from coincide.expr.vector import Microseconds, Spaces
from coincide.model.column import Column, column_from_arrow
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
        stamps = self.table.fields.get("space")
        if stamps is None:
            return None
        names = [stamps.type.field(number).name for number in range(stamps.type.num_fields)]
        columns = {name: column_from_arrow(pc.struct_field(stamps, [name])) for name in names}
        x, y, lat, lon = (_numbers(columns.get(name), len(stamps)) for name in ("x", "y", "lat", "lon"))
        return Spaces(x, y, lat, lon, columns.get("zone") or Column(len(stamps)))

    def column(self, name: str) -> Column | None:
        return self.table.column(name)

    def take(self, rows: npt.NDArray[np.int64]) -> TableRows:
        return TableRows(self.table.take(rows))

    def nothing(self) -> Column:
        """A column without values."""
        return Column(len(self.table))


def _numbers(column: Column | None, length: int) -> npt.NDArray[np.float64]:
    return np.full(length, np.nan) if column is None or column.numbers is None else column.numbers
