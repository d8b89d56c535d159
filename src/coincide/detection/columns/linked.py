"""Rows of tables in compiled loops: getting and freeing them, noting that they were written, and lists that run through them.

A row in a list has a column for the row before it and, next to that, one for the row after it; an owner has a column for the
first row and, next to that, one for the last. -1: none."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from coincide.detection.columns.compiling import inlined, inner
from coincide.detection.columns.tables import (
    CHANGED,
    CHANGES,
    COUNT,
    EPOCH,
    FIRST_FREE,
    FREE,
    IN_USE,
    NOW,
    UNASKED,
    Numbers,
    longer,
)
from coincide.detection.columns.worlds import inner as allocating

with_room = allocating(longer)


@allocating
def grown(rows: Numbers) -> Any:
    """A copy with more room."""
    return with_room(rows, len(rows) + 1)


@inner
def next_row(head: Numbers) -> Any:
    """The row that `occupy` will take. If the table ends before it, it has to grow."""
    return head[FIRST_FREE] if head[FIRST_FREE] >= 0 else head[COUNT]


@inner
def occupy(rows: Numbers, head: Numbers) -> Any:
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
def added(rows: Numbers, head: Numbers) -> Any:
    """A new row of a table from which none are freed one by one: which are new is known by their numbers."""
    row = head[COUNT]
    head[COUNT] += 1
    rows[row, FREE] = IN_USE
    return row


@inner
def touch(rows: Numbers, head: Numbers, row: int) -> None:
    """The row has been written."""
    if rows[row, EPOCH] != head[NOW]:
        rows[row, EPOCH] = head[NOW]
        rows[head[CHANGES], CHANGED] = row
        head[CHANGES] += 1


@inner
def free(rows: Numbers, head: Numbers, row: int) -> None:
    touch(rows, head, row)
    rows[row, FREE] = head[FIRST_FREE]
    head[FIRST_FREE] = row


# Lists.


@inlined
def append(rows: Numbers, column: int, row: int, owners: Numbers, owner: int, first: int) -> None:
    put_after(rows, column, owners[owner, first + 1], row, owners, owner, first)


@inlined
def put_after(rows: Numbers, column: int, before: int, row: int, owners: Numbers, owner: int, first: int) -> None:
    """After another; -1: at the front."""
    after = rows[before, column + 1] if before >= 0 else owners[owner, first]
    rows[row, column] = before
    rows[row, column + 1] = after
    if before >= 0:
        rows[before, column + 1] = row
    else:
        owners[owner, first] = row
    if after >= 0:
        rows[after, column] = row
    else:
        owners[owner, first + 1] = row


@inlined
def take_out(rows: Numbers, column: int, row: int, owners: Numbers, owner: int, first: int) -> None:
    before, after = rows[row, column], rows[row, column + 1]
    if before >= 0:
        rows[before, column + 1] = after
    else:
        owners[owner, first] = after
    if after >= 0:
        rows[after, column] = before
    else:
        owners[owner, first + 1] = before


@intrinsic  # type: ignore[untyped-decorator]
def rows_of(typing: Any, records: Any) -> Any:
    """Records of whole numbers as rows, where they are: for lists that run through them."""
    matrix = types.Array(types.int64, records.ndim + 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import populate_array  # kept code runs without it, and it takes its time to load

        source, made = context.make_array(records)(context, builder, arguments[0]), context.make_array(matrix)(context, builder)
        width, size = (context.get_constant(types.intp, number) for number in (records.dtype.size // 8, 8))
        shape = [*cgutils.unpack_tuple(builder, source.shape), width]
        strides = [*cgutils.unpack_tuple(builder, source.strides), size]
        populate_array(made, builder.bitcast(source.data, made.data.type), shape, strides, size, None)
        return made._getvalue()

    return matrix(records), generate
