"""A table of events as the rows that vectorised expressions read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

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

    def spaces(self, rows: npt.NDArray[np.int64]) -> Spaces | None:
        return TableRows(self.table.narrowed(rows, ())).space

    def take(self, rows: npt.NDArray[np.int64]) -> TableRows:
        return TableRows(self.table.take(rows))

    def nothing(self) -> Column:
        """A column without values."""
        return Column(len(self.table))


class Pickable(Protocol):
    """Rows of which some can be looked at by their numbers."""

    @property
    def lo(self) -> Microseconds: ...
    @property
    def hi(self) -> Microseconds: ...
    def column(self, name: str) -> Column | None: ...
    def spaces(self, rows: npt.NDArray[np.int64]) -> Spaces | None: ...


@dataclass(frozen=True, eq=False)
class Some:
    """Some of these rows, as expressions see them."""

    rows: Pickable
    index: npt.NDArray[np.int64]

    @cached_property
    def space(self) -> Spaces | None:
        return self.rows.spaces(self.index)

    @property
    def length(self) -> int:
        return len(self.index)

    @property
    def lo(self) -> Microseconds:
        return self.rows.lo[self.index]

    @property
    def hi(self) -> Microseconds:
        return self.rows.hi[self.index]

    def column(self, name: str) -> Column | None:
        column = self.rows.column(name)
        return None if column is None else column.take(self.index)


def _numbers(column: Column | None, length: int) -> npt.NDArray[np.float64]:
    return np.full(length, np.nan) if column is None or column.numbers is None else column.numbers
