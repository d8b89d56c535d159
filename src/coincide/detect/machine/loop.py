"""The compiled loop over rows. It knows arrays of numbers only."""

from __future__ import annotations

from typing import Any

import numba

DONE, UNKNOWN_STATE, FULL = 0, 1, 2


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run(
    classes: Any, slots: Any, row: int, item: int,
    starts: Any, columns: Any, letters: Any,
    states: Any, programs: Any, offsets: Any, widths: Any, delta: Any, outs: Any,
    made_row: Any, made_column: Any, made_out: Any, made: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """From `row` on, and there from entry `item` of its class on (-1: the first): state = delta[state, letter].

    Stops at the end, at a cell that is not known yet, or when the room for detections is used up; the caller sees to it and
    comes back. Returns (why, row, item, detections made)."""
    for i in range(row, len(classes)):
        slot = slots[i]
        if slot < 0:
            continue
        c = classes[i]
        first = item if item >= 0 else starts[c]
        item = -1
        for j in range(first, starts[c + 1]):
            column = columns[j]
            program = programs[column]
            cell = offsets[program] + states[slot, column] * widths[program] + letters[j]
            after = delta[cell]
            if after < 0:
                return UNKNOWN_STATE, i, j, made
            if outs[cell] != 0:
                if made == len(made_row):
                    return FULL, i, j, made
                made_row[made] = i
                made_column[made] = column
                made_out[made] = outs[cell]
                made += 1
            states[slot, column] = after
    return DONE, len(classes), -1, made
