"""Columns as records of JSON Lines, without making events of them: the same records as `model.event.record` gives. Many at once
become text column by column."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from math import isnan
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.model.column import Column, Numbers
from coincide.model.event import OWN_TYPE, plain
from coincide.model.numbers import EXACT, plain_number
from coincide.model.space import Space
from coincide.model.stamp import MILLISECOND
from coincide.model.table import EventTable, Instants

MANY = 200
"""So many rows are worth it to go by columns."""
TEXT = pa.large_string()
Text: TypeAlias = "pa.Array | str"
"""Of each row, or of all."""
PLAIN = bytes(code for code in range(32, 256) if chr(code) not in '"\\')
"""What texts may have inside for JSON to take them as they are."""
_encode_lines = msgspec.json.Encoder().encode_lines


def table_lines(table: EventTable) -> bytes:
    """JSON Lines."""
    types = table.column("type")
    if len(table) < MANY or "space" in table.fields or types.is_null.any():
        return _encode_lines(table_records(table))
    names = [name for name in table.attributes if name != OWN_TYPE]
    envelope = [_member("{", "type", types), _member(",", "id", table.column("id")), _times(table), _made_of(table)]
    others = [_member(",", name, table.column(name)) for name in ("source", *names)]
    lines = _beside(*chain(*envelope, *others), "}\n")
    ends, text = lines.buffers()[1:]
    return bytes(text[: int(np.frombuffer(ends, np.int64)[len(lines)])])


def _beside(*parts: Text) -> pa.Array:
    """Texts, one beside the other, row by row; null where one of them is. What is the same in all rows is one text."""
    runs = [list(run) for _, run in groupby(parts, lambda part: isinstance(part, str))]
    together = chain(*(["".join(run)] if isinstance(run[0], str) else run for run in runs))
    return pc.binary_join_element_wise(*(pa.scalar(p, TEXT) if isinstance(p, str) else p for p in (*together, "")))


def _member(before: str, name: str, column: Column) -> list[Text]:
    """A member of each record, as texts that stand beside each other; none: no record has it."""
    null = column.is_null if column.compounds is None else np.array([column.value(row) is None for row in range(len(column))])
    if null.all():
        return []
    before += f"{msgspec.json.encode(name).decode()}:"
    if column.codes is None or any(part is not None for part in (column.numbers, column.flags, column.compounds)):
        spelt = _spelt(plain_values(column))
    elif len(column.texts) == 1 and not null.any():
        return [before, msgspec.json.encode(column.texts[0]).decode()]
    else:
        spelt = _spelt([*column.texts]).take(pa.array(column.codes, mask=null))
    return [before, spelt] if not null.any() else [pc.if_else(pa.array(null), "", _beside(before, spelt))]


def _spelt(values: list[Any]) -> pa.Array:
    """Each in JSON, which has no line breaks inside."""
    text = np.frombuffer(_encode_lines(values), np.uint8)
    breaks = text == ord("\n")
    ends = np.concatenate(([0], np.flatnonzero(breaks) - np.arange(len(values))))
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(text[~breaks]))


def _times(table: EventTable) -> list[Text]:
    lo = _spelt_times(table.lo)
    if (is_point := table.lo == table.hi).all():
        return [',"time":', lo]
    return [',"time":', pc.if_else(pa.array(is_point), lo, _beside("[", lo, ",", _spelt_times(table.hi), "]"))]


def _spelt_times(instants: Instants) -> pa.Array:
    wholes = instants // MILLISECOND
    return _spelt(_milliseconds(instants)) if (wholes * MILLISECOND != instants).any() else pa.array(wholes).cast(TEXT)


def _made_of(table: EventTable) -> list[Text]:
    """Ids of what detections were made of; external events are made of nothing."""
    if table.places is None or not (made := table.places[:, 2] > 0).any():
        return []
    ids = table.origin().lists()
    text = ids.values.buffers()[2]
    if np.diff(ids.offsets.to_numpy()).all() and not (text is not None and text.to_pybytes().translate(None, PLAIN)):
        spelt: list[Text] = [',"from":["', pc.binary_join(ids, '","').cast(TEXT), '"]']
    else:
        spelt = [',"from":', _spelt(ids.to_pylist())]
    return spelt if made.all() else [pc.if_else(pa.array(made), _beside(*spelt), "")]


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


def _plain_numbers(numbers: Numbers) -> list[Any]:
    """Whole ones without a fraction; what is no number is null."""
    if (np.abs(numbers) > EXACT).any():
        return [None if isnan(number) else plain_number(number) for number in numbers.tolist()]
    none = np.isnan(numbers)
    wholes = np.where(none, 0.0, numbers).astype(np.int64)
    if (whole := wholes == numbers).all():
        return list(wholes.tolist())
    values = numbers.astype(np.object_)
    values[whole] = wholes[whole]
    values[none] = None
    return list(values.tolist())


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
        return _plain_numbers(column.numbers)
    return [plain(column.value(row)) for row in range(len(column))] if any(parts) else [None] * len(column)
