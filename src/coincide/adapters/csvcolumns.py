"""Blocks of CSV as columns. What Arrow reads otherwise than row by row is left to that way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from coincide.adapters.columns import events_of_columns, named
from coincide.adapters.csvtypes import FLAGS, NUMBER, PADDED, ColumnTypes
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.report import Intake
from coincide.model.batch import EventBatch
from coincide.model.column import MIXED
from coincide.model.numbers import EXACT

_WHOLLY_NUMBER = f"^(?:{NUMBER})$"
_TRUE = pa.array([text for text, flag in FLAGS.items() if flag])
_FALSE = pa.array([text for text, flag in FLAGS.items() if not flag])
_quoted_cells = re.compile(rb'(?:^|(?<=[,\n]))"[^"]*"(?=,|\r?\n|\r?\Z)').findall


class _Unclear(Exception):
    """Only the way row by row can tell."""


class CsvColumns:
    def __init__(self, mapping: FieldMapping, header: list[str], types: Mapping[str, str]) -> None:
        self._mapping = mapping
        self._types = types
        self._header = header
        self._instants = {mapping.time, mapping.end, mapping.arrival}
        self._texts = {mapping.type, mapping.id, mapping.source, f"{mapping.space}.zone"}

    def batch(self, block: bytes, intake: Intake) -> EventBatch | None:
        """A block's events; None: read it row by row."""
        try:
            table = self._table(block)
            columns = {name: self._typed(name, array) for name, array in named(table).items()}
        except (pa.ArrowException, _Unclear):
            return None
        huge: Counter[str] = Counter()
        events, faults = events_of_columns(columns, table.num_rows, self._mapping, intake.position, huge)
        if faults:
            return None
        intake.counted(table.num_rows)
        intake.report.huge.update(huge)
        return EventBatch(table=events)

    def note(self, block: bytes, types: ColumnTypes) -> bool:
        """What a block says of the types of columns; false: only the way row by row can tell."""
        try:
            table = self._table(block)
        except (pa.ArrowException, _Unclear):
            return False
        columns = named(table)
        for name, kinds in types.undecided.items():
            cells = columns[name]
            if "number" not in kinds or not _are_numbers(cells):
                types.add(name, cells.unique().to_pylist())
            elif "boolean" in kinds and pc.any(pc.not_equal(cells, "")).as_py():
                kinds.discard("boolean")
        return True

    def _table(self, block: bytes) -> pa.Table:
        if not _well_quoted(block) or b"\r" in block.replace(b"\r\n", b"\n"):
            raise _Unclear
        return pcsv.read_csv(
            pa.BufferReader(block),
            pcsv.ReadOptions(column_names=self._header, use_threads=False, block_size=len(block) + 1),
            pcsv.ParseOptions(newlines_in_values=b'"' in block),
            pcsv.ConvertOptions(column_types=dict.fromkeys(self._header, pa.string()), strings_can_be_null=False),
        )

    def _typed(self, name: str, cells: pa.Array) -> pa.Array:
        empty = pc.equal(cells, "")
        if pc.any(empty).as_py():
            cells = pc.if_else(empty, pa.scalar(None, pa.string()), cells)
        kind = self._types.get(name)
        if name in self._texts:
            return cells
        if kind == "text":
            return cells.dictionary_encode()
        if kind == "boolean":
            return _flags(cells)
        typed = _whole_numbers(cells)
        if typed is None:
            typed = _numbers(cells)
        if typed is None and kind == "number":
            raise _Unclear
        if typed is None:
            typed = _mixed(cells)
        if typed.type == MIXED and name in self._instants:
            raise _Unclear
        return typed


def _flags(cells: pa.Array) -> pa.Array:
    true = pc.is_in(cells, _TRUE)
    if not pc.all(pc.or_(pc.or_(true, pc.is_in(cells, _FALSE)), cells.is_null())).as_py():
        raise _Unclear
    return pc.if_else(cells.is_null(), pa.scalar(None, pa.bool_()), true)


def _are_numbers(cells: pa.Array) -> bool:
    """Whether all cells are numbers for certain. Arrow takes hexadecimal ones, `nan` and `inf` for numbers, too."""
    filled = cells.filter(pc.not_equal(cells, ""))
    if _cast(filled, pa.float64()) is None:
        return False
    return not pc.any(pc.match_substring_regex(filled, rf"[A-DF-Za-df-z]|^(?:{PADDED})")).as_py()


def _well_quoted(block: bytes) -> bool:
    """Whether every quote opens or closes a whole cell or is doubled inside one, and all cells end in the block."""
    if b'"' not in block:
        return True
    single = block.replace(b'""', b"")
    return 2 * len(_quoted_cells(single)) == single.count(b'"')


def _cast(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """A few cells are tried first: Arrow goes on to the end of a column whose cast has failed already."""
    try:
        cells.slice(0, 100).cast(kind)
        return cells.cast(kind)
    except pa.ArrowInvalid:
        return None


def _whole_numbers(cells: pa.Array) -> pa.Array | None:
    numbers = _cast(cells, pa.int64())
    if numbers is None:
        return None
    hexadecimal = pc.match_substring(cells, "x", ignore_case=True)
    return None if pc.any(hexadecimal).as_py() else numbers


def _numbers(cells: pa.Array) -> pa.Array | None:
    numbers = _cast(cells, pa.float64())
    if numbers is not None:
        _refuse_unclear(numbers)
    return numbers


def _refuse_unclear(numbers: pa.Array) -> None:
    """Big whole numbers must be counted, infinite ones rejected, and `nan` is a text."""
    plain = numbers.fill_null(0.0).to_numpy(zero_copy_only=False)
    if not (np.abs(plain) < EXACT).all():
        raise _Unclear


def _mixed(cells: pa.Array) -> pa.Array:
    """Texts, booleans, or several types in one column. Decided for each distinct cell."""
    coded = cells.dictionary_encode()
    distinct = coded.dictionary
    flags = pc.or_(pc.is_in(distinct, _TRUE), pc.is_in(distinct, _FALSE))
    digits = pc.match_substring_regex(distinct, _WHOLLY_NUMBER)
    texts = pc.invert(pc.or_(flags, digits))
    if pc.all(texts).as_py():
        return coded
    none = pa.scalar(None, pa.string())
    numbers = pc.if_else(digits, distinct, none).cast(pa.float64())
    _refuse_unclear(numbers)
    parts = [
        numbers,
        pc.if_else(texts, distinct, none),
        pc.if_else(flags, pc.is_in(distinct, _TRUE), pa.scalar(None, pa.bool_())),
    ]
    filled = [part for part in parts if part.null_count < len(part)]
    values = filled[0] if len(filled) == 1 else pa.StructArray.from_arrays(parts, fields=list(MIXED))
    return values.take(coded.indices)
