"""Aggregates over columns: for each row of each match, what an aggregate is after it. Row by row, in order, so that sums are the
same as those of the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.records import Doubles, Integers, Mask
from coincide.detection.rowpattern.aggregates import FOLDS
from coincide.model.column import Column, column_of
from coincide.model.event import Value


def running(function: str, operands: list[Column], match: Any, counted: Any) -> Column:
    """`match` is the number of each row's match, `counted` says which rows belong to the aggregate's variables."""
    if function == "rows":
        return Column(len(match), numbers=_counts(match, counted))
    values = operands[0]
    if function == "count":
        null = values.is_null if values.compounds is None else _no_value(values)
        return Column(len(match), numbers=_counts(match, counted & ~null))
    if function in ("sum", "avg") or (function in ("min", "max") and _is_only(values, "numbers")):
        numbers = np.full(len(match), np.nan) if values.numbers is None else values.numbers
        code = {"sum": 0, "avg": 1, "min": 2, "max": 3}[function]
        return Column(len(match), numbers=_totals(code, match, counted, numbers))
    if function in ("min", "max") and _is_only(values, "codes"):
        return _texts(function, values, match, counted)
    if function in ("bool_and", "bool_or"):
        flags = np.full(len(match), -1, np.int8) if values.flags is None else values.flags
        return Column(len(match), flags=_flags(function == "bool_and", match, counted, flags))
    return _any(function, operands, match, counted)


def _is_only(column: Column, part: str) -> bool:
    others = {"numbers", "codes", "flags", "compounds", "rests"} - {part}
    return all(getattr(column, other) is None for other in others)


def _no_value(column: Column) -> Any:
    assert column.compounds is not None
    return column.is_null & np.array([c is None for c in column.compounds], np.bool_)


def _texts(function: str, values: Column, match: Any, counted: Any) -> Column:
    """By the rank of each text."""
    ranked = sorted(range(len(values.texts)), key=lambda n: values.texts[n])
    rank = np.empty(len(ranked) + 1, np.float64)
    rank[ranked] = np.arange(len(ranked))
    rank[-1] = np.nan
    assert values.codes is not None
    best = _totals(2 if function == "min" else 3, match, counted, rank[values.codes])
    codes = np.full(len(match), -1, np.int32)
    there = ~np.isnan(best)
    codes[there] = np.array(ranked, np.int32)[best[there].astype(np.int64)]
    return Column(len(match), codes=codes, texts=values.texts)


def _any(function: str, operands: list[Column], match: Any, counted: Any) -> Column:
    """Whatever the arrays cannot hold."""
    start, add, result = FOLDS[function]
    out: list[Value] = []
    total, last = start, -1
    for row, (number, there) in enumerate(zip(match.tolist(), counted.tolist(), strict=True)):
        if number != last:
            total, last = start, number
        if there:
            total = add(total, *(column.value(row) for column in operands))
        out.append(result(total))
    return column_of(out)


@compiled
def _fill_counts(match: Integers, counted: Mask, out: Doubles) -> None:
    count, last = 0, -1
    for row in range(len(match)):
        if match[row] != last:
            count, last = 0, match[row]
        count += counted[row]
        out[row] = count


def _counts(match: Any, counted: Any) -> Any:
    out = np.empty(len(match), np.float64)
    _fill_counts(match, counted, out)
    return out


@compiled
def _fill_totals(code: int, match: Integers, counted: Mask, numbers: Doubles, out: Doubles) -> None:
    count, total, last = 0, 0.0, -1
    for row in range(len(match)):
        if match[row] != last:
            count, total, last = 0, 0.0, match[row]
        number = numbers[row]
        if counted[row] and not np.isnan(number):
            count += 1
            if code <= 1:
                total += number
            elif count == 1 or (number < total if code == 2 else number > total):
                total = number
        result = total / count if code == 1 and count else total
        out[row] = result if count and result - result == 0 else np.nan


def _totals(code: int, match: Any, counted: Any, numbers: Any) -> Any:
    out = np.empty(len(match), np.float64)
    _fill_totals(code, match, counted, np.ascontiguousarray(numbers), out)
    return out


@compiled
def _fill_flags(every: bool, match: Integers, counted: Mask, flags: Integers, out: Integers) -> None:
    flag, last = -1, -1
    for row in range(len(match)):
        if match[row] != last:
            flag, last = -1, match[row]
        if counted[row] and flags[row] >= 0:
            if flag < 0:
                flag = flags[row]
            elif every:
                flag = min(flag, flags[row])
            else:
                flag = max(flag, flags[row])
        out[row] = flag


def _flags(every: bool, match: Any, counted: Any, flags: Any) -> Any:
    out = np.empty(len(match), np.int8)
    _fill_flags(every, match, counted, flags, out)
    return out
