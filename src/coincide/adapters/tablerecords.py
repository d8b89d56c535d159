"""Columns as records of JSON Lines, without making events of them: the same records as `model.event.record` gives."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import numpy as np

from coincide.model.column import Column
from coincide.model.event import OWN_TYPE, plain
from coincide.model.numbers import EXACT, plain_number
from coincide.model.space import Space
from coincide.model.stamp import MILLISECOND
from coincide.model.table import EventTable, Instants


def table_records(table: EventTable) -> Iterator[dict[str, Any]]:
    types, ids, sources = (plain_values(table.column(name)) for name in ("type", "id", "source"))
    origins = _origins(table)
    lo, hi = _milliseconds(table.lo), _milliseconds(table.hi)
    spaces = table.spaces()
    names = [name for name in table.attributes if name != OWN_TYPE]
    columns = [plain_values(table.column(name)) for name in names]
    for row, kind in enumerate(types):
        out: dict[str, Any] = {"type": kind}
        if ids[row] is not None:
            out["id"] = ids[row]
        out["time"] = lo[row] if lo[row] == hi[row] else [lo[row], hi[row]]
        if (made_of := origins[row]) is not None:
            out["from"] = made_of
        if sources[row] is not None:
            out["source"] = sources[row]
        if (space := spaces[row]) is not None:
            out["space"] = {f: v for f in Space.__struct_fields__ if (v := getattr(space, f)) is not None}
        for name, values in zip(names, columns, strict=True):
            if (value := values[row]) is not None:
                out[name] = value
        yield out


def _origins(table: EventTable) -> list[list[str] | None]:
    """Ids of what detections were made of; external events are made of nothing."""
    if table.places is None:
        return [None] * len(table)
    made = (table.places[:, 2] > 0).tolist()
    lists = table.origin().lists().to_pylist()
    return [ids if is_made else None for ids, is_made in zip(lists, made, strict=True)]


def _milliseconds(instants: Instants) -> list[int | float]:
    if not (instants % MILLISECOND).any():
        whole: list[int | float] = (instants // MILLISECOND).tolist()
        return whole
    return [t // MILLISECOND if t % MILLISECOND == 0 else t / MILLISECOND for t in instants.tolist()]


def plain_values(column: Column) -> list[Any]:
    """The values of a column as JSON spells them."""
    parts = [part is not None for part in (column.numbers, column.codes, column.flags)]
    if column.compounds is not None or column.rests is not None:
        return [plain(column.value(row)) for row in range(len(column))]
    if parts == [False, True, False]:
        assert column.codes is not None
        texts = (*column.texts, None)  # code -1 is the last
        return [texts[code] for code in column.codes.tolist()]
    if parts == [True, False, False]:
        assert column.numbers is not None
        if (np.abs(column.numbers) <= EXACT).all() and ((whole := column.numbers.astype(np.int64)) == column.numbers).all():
            return list(whole.tolist())
        return [None if isnan(number) else plain_number(number) for number in column.numbers.tolist()]
    return [plain(column.value(row)) for row in range(len(column))] if any(parts) else [None] * len(column)
