"""What each operation of a condition does to a stack of numbers, in compiled loops. Flags are 0 and 1, NaN is null."""

from __future__ import annotations

from math import isfinite, isnan, nan

import numpy as np

from coincide.detection.columns.compiling import inner

# Plain numbers: compiled code compares them. Those below are for what puts something on the stack, which is each model's own.
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
