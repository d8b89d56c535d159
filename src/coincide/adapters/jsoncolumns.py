"""Blocks of JSON Lines as columns. What Arrow reads otherwise than record by record is left to that way."""

from __future__ import annotations

import re
from collections import Counter
from functools import reduce

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from coincide.adapters.columns import events_of_columns, named
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.nested import flattened
from coincide.adapters.report import Intake
from coincide.model.batch import EventBatch
from coincide.model.column import Rows
from coincide.model.numbers import EXACT


class JsonColumns:
    """Reads blocks, and learns which texts Arrow would take for timestamps."""

    def __init__(self, mapping: FieldMapping) -> None:
        self.mapping = self._mapping = mapping
        self._texts: dict[str, pa.DataType] = {}

    def batch(self, block: bytes, intake: Intake) -> EventBatch | None:
        """A block's events; None: read it record by record."""
        ends = np.flatnonzero(np.frombuffer(block, np.uint8)[:-1] == LINE_BREAK)
        lines = len(ends) + 1
        fit = _one_object_a_line(block, ends) and _is_utf8(block) and not _is_sparse(block, self._mapping)
        table = self._table(block) if fit else None
        if table is None or table.num_rows != lines or not _faithful(table, self._mapping):
            return None
        huge: Counter[str] = Counter()
        events, faults = events_of_columns(named(table), table.num_rows, self._mapping, intake.position, huge)
        if faults:
            return None
        intake.counted(table.num_rows)
        intake.report.huge.update(huge)
        return EventBatch(table=events)

    def _table(self, block: bytes) -> pa.Table | None:
        try:
            table = _parsed(block, self._texts)
            mistaken = {f.name: text for f in table.schema if (text := _as_text(f.type)) is not None}
            if mistaken:
                self._texts |= mistaken
                table = _parsed(block, self._texts)
            for column in table.columns:
                if pa.types.is_nested(column.type):
                    column.validate(full=True)  # Arrow loses nulls that stand first in lists, which leaves too few values
        except pa.ArrowException:
            return None
        return table


def _parsed(block: bytes, texts: dict[str, pa.DataType]) -> pa.Table:
    schema = pa.schema(list(texts.items())) if texts else None
    return pj.read_json(
        pa.BufferReader(block),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema),
    )


def _as_text(kind: pa.DataType) -> pa.DataType | None:
    """What a column that Arrow took for timestamps, or for something with timestamps in it, really is."""
    real = _with_texts(kind)
    return None if real == kind else real


def _with_texts(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_with_texts(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _with_texts(f.type)) for f in kind])
    return kind


LINE_BREAK, RETURN, OPENING, CLOSING = b"\n\r{}"


def _one_object_a_line(block: bytes, ends: Rows) -> bool:
    """Arrow reads objects wherever they begin and end, we read lines. No valid object has `}` and `{` at two sides of a line
    break, so where every break has them, and there are as many objects as lines, each line is one object."""
    if not block.startswith(b"{") or (len(ends) and ends[0] < 2):
        return False
    text = np.frombuffer(block, np.uint8)
    before = text[ends - 1]
    before = np.where(before == RETURN, text[ends - 2], before)
    return bool((before == CLOSING).all() and (text[ends + 1] == OPENING).all())


SAMPLE = 64
FAR = 512  # bytes from one of them to the next, at least
MANY_NAMES = 256


def _is_sparse(block: bytes, mapping: FieldMapping) -> bool:
    """Whether records have names of their own, so that there would be a column, null nearly everywhere, for almost every row."""
    names: set[str] = set()
    most = 0
    sample = min(SAMPLE, 1 + len(block) // FAR)
    for part in range(sample):
        start = block.rfind(b"\n", 0, len(block) * part // sample) + 1
        try:
            record = msgspec.json.decode(block[start : block.find(b"\n", start)])
            own = flattened(record, mapping).keys() if isinstance(record, dict) else ()
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        names.update(own)
        most = max(most, len(own))
    return len(names) - most > sample // 2 and len(names) > most * 2 and _distinct_names(block) > MANY_NAMES


def _distinct_names(block: bytes) -> int:
    return len(set(_keys(block)))


_keys = re.compile(rb'[{,]\s*("(?:[^"\\]|\\.)*")\s*:').findall


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _faithful(table: pa.Table, mapping: FieldMapping) -> bool:
    """Whether the columns say what the records said."""
    return all(_faithful_column(f.name, f.type, table.column(i), mapping) for i, f in enumerate(table.schema))


def _faithful_column(name: str, kind: pa.DataType, column: pa.ChunkedArray, mapping: FieldMapping) -> bool:
    if pa.types.is_list(kind):
        if name in (mapping.time, mapping.end):
            return _exact_numbers(pc.list_flatten(column))
        return _faithful_list(column)
    if pa.types.is_struct(kind):
        return _faithful_nested(column)
    if pa.types.is_floating(kind) and name in (mapping.type, mapping.id, mapping.source):
        return False  # `1` and `1.0` have one spelling there
    return _exact_numbers(column)


def _faithful_nested(column: pa.ChunkedArray) -> bool:
    """Arrow cannot tell an empty object, which is a range without bounds, from one whose fields are null."""
    kind = column.type
    if pa.types.is_list(kind):
        return _faithful_list(column)
    if not pa.types.is_struct(kind):
        return _exact_numbers(column)
    if not len(kind):
        return False
    fields = [pc.struct_field(column, f.name) for f in kind]
    filled = reduce(pc.or_, [field.is_valid() for field in fields])
    return bool(pc.all(pc.or_(filled, column.is_null())).as_py() is not False) and all(map(_faithful_nested, fields))


def _faithful_list(column: pa.ChunkedArray) -> bool:
    """Arrow stumbles over nulls in lists, all the more below objects in them; an empty list is a set without members."""
    inner = column.type.value_type
    if pa.types.is_null(inner) or pa.types.is_nested(inner) or pc.any(pc.equal(pc.list_value_length(column), 0)).as_py():
        return False
    return _exact_numbers(pc.list_flatten(column))


def _exact_numbers(column: pa.ChunkedArray) -> bool:
    """Arrow takes nan, which is no JSON, and makes doubles of big integers in a column with fractions."""
    if not pa.types.is_floating(column.type):
        return True
    numbers = column.combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    return bool((np.abs(numbers) < EXACT).all())
