"""Programs of conditions (registers.py), compiled: what is read for them; NaN is null."""

from __future__ import annotations

from math import isfinite, isnan, nan

from coincide.detection.columns.compiling import inner
from coincide.detection.columns.operations import (
    OP_ABSOLUTE,
    OP_AND,
    OP_COALESCE,
    OP_GREATEST,
    OP_IF,
    OP_LEAST,
    OP_NOT,
    of_one,
    of_two,
)
from coincide.detection.columns.records import Doubles, Integers, Mask

# Operations that put something on the stack (others: columns/operations.py).
OP_NULL = 0
OP_CONSTANT = 1
OP_COLUMN = 2  # at the row under test
OP_AT = 3  # slot, shift, column: at a row of the path, or a neighbour
OP_LABEL = 4  # slot
OP_MATCH_NUMBER = 5
OP_COUNTED = 6  # aggregates: slot
OP_SUMMED = 7
OP_AVERAGE = 8
OP_BEST = 9


# Slots: rows of the path, or what an aggregate has taken in.
GROUP_LAST = 0
GROUP_FIRST = 1
GROUP_ROWS = 2
GROUP_COUNT = 3
GROUP_SUM = 4
GROUP_MIN = 5
GROUP_MAX = 6
GROUP_EVERY = 7
GROUP_SOME = 8


FOLDS = {
    "rows": GROUP_ROWS,
    "count": GROUP_COUNT,
    "sum": GROUP_SUM,
    "avg": GROUP_SUM,
    "min": GROUP_MIN,
    "max": GROUP_MAX,
    "bool_and": GROUP_EVERY,
    "bool_or": GROUP_SOME,
}
FOLDED = {
    "rows": OP_COUNTED,
    "count": OP_COUNTED,
    "sum": OP_SUMMED,
    "avg": OP_AVERAGE,
    "min": OP_BEST,
    "max": OP_BEST,
    "bool_and": OP_BEST,
    "bool_or": OP_BEST,
}
OF_ONE = {"abs": OP_ABSOLUTE}
JOINING = {"coalesce": OP_COALESCE, "least": OP_LEAST, "greatest": OP_GREATEST, "if": OP_IF}

DEPTH = 64
"""Of the stack; deeper conditions are for the interpreter."""


@inner
def take(groups: Integers, members: Mask, columns: Doubles, before: Doubles, after: Doubles, variable: int, row: int) -> None:
    """The slots after a row is taken."""
    for slot in range(len(before)):
        after[slot] = before[slot]
    for number in range(len(groups)):
        if not members[number, variable]:
            continue
        kind, first, size = groups[number, 0], groups[number, 1], groups[number, 2]
        if kind == GROUP_LAST:
            for slot in range(first + size - 1, first, -1):
                after[slot] = after[slot - 1]
                if groups[number, 3]:
                    after[slot + size] = after[slot + size - 1]
            after[first] = row
            if groups[number, 3]:
                after[first + size] = variable
        elif kind == GROUP_FIRST:
            for slot in range(first, first + size):
                if after[slot] < 0:
                    after[slot] = row
                    if groups[number, 3]:
                        after[slot + size] = variable
                    break
        else:
            value = 0.0 if kind == GROUP_ROWS else columns[groups[number, 4], row]
            if not isnan(value):
                fold(kind, after, first, value)


@inner
def fold(kind: int, after: Doubles, first: int, value: float) -> None:
    after[first] += 1
    if kind == GROUP_SUM:
        after[first + 1] += value
    elif kind >= GROUP_MIN:
        least = kind in (GROUP_MIN, GROUP_EVERY)
        if after[first] == 1 or (value < after[first + 1] if least else value > after[first + 1]):
            after[first + 1] = value


@inner
def of_slots(op: int, a: int, b: int, c: int, slots: Doubles, columns: Doubles, labels: Integers, low: int, high: int) -> float:
    if op == OP_AT:
        if slots[a] < 0:
            return nan
        at = int(slots[a]) + b
        return columns[c, at] if low <= at < high else nan
    if op == OP_LABEL:
        return labels[int(slots[a])] if slots[a] >= 0 else nan
    count, total = float(slots[a]), float(slots[a + 1])
    if op == OP_COUNTED:
        return count
    if count == 0:
        return nan
    value = total / count if op == OP_AVERAGE else total
    return value if isfinite(value) else nan


@inner
def holds(
    program: Integers, columns: Doubles, constants: Doubles, labels: Integers, slots: Doubles, stack: Doubles,
    row: int, low: int, high: int, number: int,
) -> bool:  # fmt: skip
    """Is the condition true at the row?"""
    top = 0
    for at in range(len(program)):
        op, a = program[at, 0], program[at, 1]
        if op >= OP_AND:
            top -= 1
            stack[top - 1] = of_two(op, stack[top - 1], stack[top])
        elif op == OP_IF:
            top -= 2
            stack[top - 1] = stack[top] if stack[top - 1] == 1 else stack[top + 1]
        elif op >= OP_NOT:
            stack[top - 1] = of_one(op, stack[top - 1])
        else:
            if op == OP_NULL:
                value = nan
            elif op == OP_CONSTANT:
                value = constants[a]
            elif op == OP_COLUMN:
                value = columns[a, row]
            elif op == OP_MATCH_NUMBER:
                value = float(number)
            else:
                value = of_slots(op, a, program[at, 2], program[at, 3], slots, columns, labels, low, high)
            stack[top] = value
            top += 1
    return bool(stack[top - 1] == 1)
