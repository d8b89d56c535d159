"""Programs of conditions (registers.py), compiled: what each operation does to a stack of numbers; NaN is null."""

from __future__ import annotations

from math import isfinite, isnan, nan
from typing import Any

import numpy as np

from coincide.detection.columns.compiling import inner

# Operations. Plain numbers: compiled code compares them.
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
OP_NOT = 10
OP_NEGATE = 11
OP_IS_NULL = 12
OP_IS_NOT_NULL = 13
OP_IN_PLACE = 14  # null in place of the top
OP_ABSOLUTE = 15
OP_IF = 16
OP_AND = 20  # from here on: of the two on top
OP_OR = 21
OP_EQUAL = 22
OP_UNEQUAL = 23
OP_LESS = 24
OP_LESS_EQUAL = 25
OP_MORE = 26
OP_MORE_EQUAL = 27
OP_ADD = 28
OP_SUBTRACT = 29
OP_MULTIPLY = 30
OP_DIVIDE = 31
OP_REMAINDER = 32
OP_COALESCE = 33
OP_LEAST = 34
OP_GREATEST = 35
OP_NEITHER = 36  # null in place of two


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
OF_TWO = {
    "=": OP_EQUAL,
    "!=": OP_UNEQUAL,
    "<": OP_LESS,
    "<=": OP_LESS_EQUAL,
    ">": OP_MORE,
    ">=": OP_MORE_EQUAL,
    "+": OP_ADD,
    "-": OP_SUBTRACT,
    "*": OP_MULTIPLY,
    "/": OP_DIVIDE,
    "%": OP_REMAINDER,
}

DEPTH = 64
"""Of the stack; deeper conditions are for the interpreter."""


@inner
def take(groups: Any, members: Any, columns: Any, before: Any, after: Any, variable: int, row: int) -> None:
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
def fold(kind: int, after: Any, first: int, value: float) -> None:
    after[first] += 1
    if kind == GROUP_SUM:
        after[first + 1] += value
    elif kind >= GROUP_MIN:
        least = kind in (GROUP_MIN, GROUP_EVERY)
        if after[first] == 1 or (value < after[first + 1] if least else value > after[first + 1]):
            after[first + 1] = value


@inner
def of_slots(op: int, a: int, b: int, c: int, slots: Any, columns: Any, labels: Any, low: int, high: int) -> float:
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
def of_one(op: int, x: float) -> float:
    if op in (OP_IS_NULL, OP_IS_NOT_NULL):
        return 1.0 if isnan(x) == (op == OP_IS_NULL) else 0.0
    if op == OP_IN_PLACE:
        return nan
    if op == OP_NOT:
        return 1.0 - x
    return abs(x) if op == OP_ABSOLUTE else -x


@inner
def of_two(op: int, x: float, y: float) -> float:
    if op == OP_AND:
        return 0.0 if x == 0 or y == 0 else nan if isnan(x) or isnan(y) else 1.0
    if op == OP_OR:
        return 1.0 if x == 1 or y == 1 else nan if isnan(x) or isnan(y) else 0.0
    if op == OP_COALESCE:
        return y if isnan(x) else x
    if isnan(x) or isnan(y) or op == OP_NEITHER:
        return nan
    if op <= OP_MORE_EQUAL:
        if op == OP_EQUAL:
            holds = x == y
        elif op == OP_UNEQUAL:
            holds = x != y
        elif op == OP_LESS:
            holds = x < y
        elif op == OP_LESS_EQUAL:
            holds = x <= y
        elif op == OP_MORE:
            holds = x > y
        else:
            holds = x >= y
        return 1.0 if holds else 0.0
    if op == OP_ADD:
        value = x + y
    elif op == OP_SUBTRACT:
        value = x - y
    elif op == OP_MULTIPLY:
        value = x * y
    elif op == OP_LEAST:
        value = min(x, y)
    elif op == OP_GREATEST:
        value = max(x, y)
    elif y == 0:
        value = nan
    else:
        value = x / y if op == OP_DIVIDE else float(np.fmod(x, y))
    return value if isfinite(value) else nan


@inner
def holds(
    program: Any, columns: Any, constants: Any, labels: Any, slots: Any, stack: Any, row: int, low: int, high: int, number: int
) -> bool:
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
