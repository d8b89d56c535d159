"""Aggregates, row by row. What they remember never changes, so that two searches can share it and compare it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from coincide.expr.functions import finite
from coincide.model.compound import Single, ValueList
from coincide.model.event import Value
from coincide.model.numbers import is_number


class Fold(NamedTuple):
    """How an aggregate begins, takes in the values of a row, and what it then is."""

    start: Any
    add: Callable[..., Any]
    result: Callable[[Any], Value]


def _least(better: Callable[[Any, Any], bool]) -> Fold:
    return Fold(None, lambda kept, value: _better(kept, value, value, better), lambda kept: kept and kept[2])


def _least_by(better: Callable[[Any, Any], bool]) -> Fold:
    return Fold(None, lambda kept, value, key: _better(kept, key, value, better), lambda kept: kept and kept[2])


MIXED = ("mixed", None, None)


def _better(best: Any, key: Value, value: Value, better: Callable[[Any, Any], bool]) -> Any:
    """(kind, key, value) of the row kept: the first one with the best key. Kinds that are mixed, or lists, give nothing."""
    if key is None:
        return best
    kind = "float" if is_number(key) else type(key).__name__  # the name that snapshots of earlier releases have
    if not isinstance(key, Single) or (best is not None and best[0] != kind):
        return MIXED
    return (kind, key, value) if best is None or better(key, best[1]) else best


def _sum(total: tuple[int, float], value: Value) -> tuple[int, float]:
    return (total[0] + 1, total[1] + float(value)) if is_number(value) else total


def _flag(both: Callable[[bool, bool], bool]) -> Fold:
    def add(flag: bool | None, value: Value) -> bool | None:
        return flag if not isinstance(value, bool) else value if flag is None else both(flag, value)

    return Fold(None, add, lambda kept: kept)


FOLDS: dict[str, Fold] = {
    "count": Fold(0, lambda kept, value: kept + (value is not None), float),
    "rows": Fold(0, lambda kept: kept + 1, float),
    "sum": Fold((0, 0.0), _sum, lambda kept: finite(kept[1]) if kept[0] else None),
    "avg": Fold((0, 0.0), _sum, lambda kept: finite(kept[1] / kept[0]) if kept[0] else None),
    "min": _least(lambda a, b: a < b),
    "max": _least(lambda a, b: a > b),
    "min_by": _least_by(lambda a, b: a < b),
    "max_by": _least_by(lambda a, b: a > b),
    "array_agg": Fold((), lambda kept, value: (*kept, value), lambda kept: ValueList(kept) if kept else None),
    "bool_and": _flag(lambda a, b: a and b),
    "bool_or": _flag(lambda a, b: a or b),
}
"""By name; `rows` is a count of rows."""
