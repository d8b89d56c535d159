"""The order of rows (MR-2): by the keys of ORDER BY; ties keep the total order of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coincide.detection.rowpattern.expressions import row_field
from coincide.lang.matchrecognize.definition import OrderKey
from coincide.model.compound import Single
from coincide.model.event import Event, Value


def sorter(keys: tuple[OrderKey, ...]) -> Callable[[list[Event]], list[Event]]:
    """Sorts rows; the last key first, as each sort keeps the order of equals."""
    readers = [(key, row_field(key.name)) for key in reversed(keys)]

    def sort(rows: list[Event]) -> list[Event]:
        rows = sorted(rows, key=total_order)
        for key, read in readers:
            rows.sort(key=lambda row, key=key, read=read: rank(read(row), key), reverse=key.descending)  # type: ignore[misc]
        return rows

    return sort


def total_order(row: Event) -> Any:
    """With equal stamps external events, then detections in the order made."""
    return (row.hi, row.lo, 1, row.place) if row.id is None else (row.hi, row.lo, 0, row.origin)


KINDS = {bool: 0, float: 1, int: 1, str: 2}


def rank(value: Value, key: OrderKey) -> tuple[int, int, Any]:
    """Booleans, numbers, texts; null first or last, whichever way the key goes."""
    if not isinstance(value, Single):
        return (0 if key.nulls_first is not key.descending else 2), 0, 0
    return 1, KINDS[type(value)], value
