"""Rows of tables in compiled loops: getting and freeing them, noting that they were written, and lists that run through them.

A row in a list has a column for the row before it and, next to that, one for the row after it; an owner has a column for the
first row and, next to that, one for the last. -1: none."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.compiling import inner
from coincide.detection.columns.tables import CHANGED, CHANGES, COUNT, EPOCH, FIRST_FREE, FREE, IN_USE, NOW, UNASKED
from coincide.detection.columns.worlds import inner as allocating


@allocating
def grown(rows: Any) -> Any:
    """A copy with more than twice the room."""
    more = np.empty((16 + 2 * len(rows), rows.shape[1]), rows.dtype)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            more[row, column] = rows[row, column]
    return more


@inner
def next_row(head: Any) -> Any:
    """The row that `occupy` will take. If the table ends before it, it has to grow."""
    return head[FIRST_FREE] if head[FIRST_FREE] >= 0 else head[COUNT]


@inner
def occupy(rows: Any, head: Any) -> Any:
    row = head[FIRST_FREE]
    if row >= 0:
        head[FIRST_FREE] = rows[row, FREE]
    else:
        row = head[COUNT]
        head[COUNT] += 1
        rows[row, EPOCH] = UNASKED
    rows[row, FREE] = IN_USE
    touch(rows, head, row)
    return row


@inner
def added(rows: Any, head: Any) -> Any:
    """A new row of a table from which none are freed one by one: which are new is known by their numbers."""
    row = head[COUNT]
    head[COUNT] += 1
    rows[row, FREE] = IN_USE
    return row


@inner
def touch(rows: Any, head: Any, row: int) -> None:
    """The row has been written."""
    if rows[row, EPOCH] != head[NOW]:
        rows[row, EPOCH] = head[NOW]
        rows[head[CHANGES], CHANGED] = row
        head[CHANGES] += 1


@inner
def free(rows: Any, head: Any, row: int) -> None:
    touch(rows, head, row)
    rows[row, FREE] = head[FIRST_FREE]
    head[FIRST_FREE] = row


@inner
def append(rows: Any, column: int, row: int, owners: Any, owner: int, first: int) -> None:
    before = owners[owner, first + 1]
    rows[row, column] = before
    rows[row, column + 1] = -1
    if before >= 0:
        rows[before, column + 1] = row
    else:
        owners[owner, first] = row
    owners[owner, first + 1] = row


@inner
def take_out(rows: Any, column: int, row: int, owners: Any, owner: int, first: int) -> None:
    before, after = rows[row, column], rows[row, column + 1]
    if before >= 0:
        rows[before, column + 1] = after
    else:
        owners[owner, first] = after
    if after >= 0:
        rows[after, column] = before
    else:
        owners[owner, first + 1] = before
