"""The compiled loops over rows. They know arrays of numbers only: unsigned where they serve as an index, so that the
compiler need not look for negative ones."""

from __future__ import annotations

import numpy as np

from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.records import Integers

DONE, UNKNOWN_STATE, FULL = 0, 1, 2
OUT, STATE = 32, 0xFFFFFFFF  # a cell is out << OUT | state, or negative if it is not known


@compiled
def run(
    codes: Integers, keys: Integers, slots: Integers, row: int, item: int,
    starts: Integers, ends: Integers, columns: Integers, letters: Integers,
    states: Integers, programs: Integers, offsets: Integers, widths: Integers, cells: Integers,
    made_row: Integers, made_column: Integers, made_out: Integers, made: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """From `row` on, and there from entry `item` of its code on (-1: the first): what each column does on its letter.

    Stops at the end, at a cell that is not known yet, or when the room for detections is used up; the caller sees to it and
    comes back. Returns (why, row, item, detections made)."""
    for i in range(row, len(codes)):
        code = codes[i]
        first = item if item >= 0 else starts[code]
        item = -1
        slot = slots[keys[i]]
        for j in range(first, ends[code]):
            column = columns[j]
            program = programs[column]
            cell = cells[offsets[program] + states[slot, column] * widths[program] + letters[j]]
            if cell < 0:
                return UNKNOWN_STATE, i, j, made
            if cell > STATE:
                if made == len(made_row):
                    return FULL, i, j, made
                made_row[made] = i
                made_column[made] = column
                made_out[made] = cell >> OUT
                made += 1
            states[slot, column] = cell & STATE
    return DONE, len(codes), -1, made


@compiled
def run_one(
    codes: Integers, keys: Integers, slots: Integers, row: int, letters: Integers, states: Integers, width: np.uint32,
    cells: Integers, made_row: Integers, made_out: Integers, made: int,
) -> tuple[int, int, int]:  # fmt: skip
    """The same for a single machine, the common case, without a branch on whether a row matters (the idle letter changes
    nothing): as fast as a loop written by hand for one automaton. Returns (why, row, made)."""
    for i in range(row, len(codes)):
        slot = slots[keys[i]]
        cell = cells[states[slot] * width + letters[codes[i]]]
        if cell > STATE or cell < 0:
            if cell < 0:
                return UNKNOWN_STATE, i, made
            if made == len(made_row):
                return FULL, i, made
            made_row[made] = i
            made_out[made] = cell >> OUT
            made += 1
        states[slot] = cell & STATE
    return DONE, len(codes), made
