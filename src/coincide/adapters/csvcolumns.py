"""Blocks of CSV as columns. What Arrow reads otherwise than row by row is left to that way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from coincide.adapters.columns import CODED, events_of_columns, named
from coincide.adapters.csvtypes import FLAGS, NUMBER, PADDED, ColumnTypes
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.report import Intake
from coincide.model.batch import EventBatch
from coincide.model.column import MIXED
from coincide.model.numbers import EXACT

_WHOLLY_NUMBER = f"^(?:{NUMBER})$"
_TRUE = pa.array([text for text, flag in FLAGS.items() if flag])
_FALSE = pa.array([text for text, flag in FLAGS.items() if not flag])
SAMPLE = 10_000
"""Bytes of a block that tell what its columns may be."""
_quoted_cells = re.compile(rb'(?:^|(?<=[,\n]))"[^"]*"(?=,|\r?\n|\r?\Z)').findall


def _first_rows(block: bytes) -> bytes:
    return block[: block.find(b"\n", SAMPLE) + 1] or block


class _Unclear(Exception):
    """Only the way row by row can tell."""


class CsvColumns:
    def __init__(self, mapping: FieldMapping, header: list[str], types: Mapping[str, str]) -> None:
        self._mapping = mapping
        self._types = types
        self._header = header
        self._instants = {mapping.time, mapping.end, mapping.arrival}
        self._texts = {mapping.type, mapping.id, mapping.source, f"{mapping.space}.zone"}
        self._quick: dict[str, pa.DataType] | None = None

    def batch(self, block: bytes, intake: Intake) -> EventBatch | None:
        """A block's events; None: read it row by row."""
        try:
            table = self._typed_table(block)
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

    def breaks(self, block: bytes) -> int:
        return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))

    def _typed_table(self, block: bytes) -> pa.Table:
        """Texts, but for columns that Arrow makes whole numbers or codes of at once: its numbers are exactly ours if they are
        spelt as we would spell them, and so no text of the block is longer or shorter."""
        if b'"' in block or b"\r" in block or _may_be_hexadecimal(block):
            return self._table(block)
        try:
            if self._quick is None:
                self._quick = self._quick_types(block)
            if self._quick and _spelling(table := self._parsed(block, self._quick)) == len(block) + (not block.endswith(b"\n")):
                return table
        except pa.ArrowInvalid:
            pass
        self._quick = {}  # from here on all are texts first
        return self._table(block)

    def _quick_types(self, block: bytes) -> dict[str, pa.DataType]:
        """By the first rows."""
        some = named(self._parsed(_first_rows(block), {}))
        whole = {name for name in self._header if self._types.get(name) == "number"} | {self._mapping.id, *self._instants}
        coded = {name for name in self._header if self._types.get(name) == "text"} | {self._mapping.type}
        found = {name: CODED for name in self._header if name in coded}
        return found | {name: pa.int64() for name, cells in some.items() if name in whole and _is_whole(cells)}

    def note(self, block: bytes, types: ColumnTypes) -> bool:
        """What a block says of the types of columns; false: only the way row by row can tell. Often its first rows say it all."""
        head = _first_rows(block)
        return (len(head) == len(block) or self._note(head, types)) and (not types.undecided or self._note(block, types))

    def _note(self, block: bytes, types: ColumnTypes) -> bool:
        try:
            columns = named(self._table(block, list(types.undecided)))
        except (pa.ArrowException, _Unclear):
            return False
        for name, kinds in types.undecided.items():
            cells = columns[name]
            if "number" not in kinds or not _are_numbers(cells):
                types.add(name, cells.unique().to_pylist())
            elif "boolean" in kinds and pc.any(pc.not_equal(cells, "")).as_py():
                kinds.discard("boolean")
        return True

    def _table(self, block: bytes, names: Sequence[str] | None = None) -> pa.Table:
        if not _well_quoted(block) or (b"\r" in block and b"\r" in block.replace(b"\r\n", b"\n")):
            raise _Unclear
        return self._parsed(block, {}, names)

    def _parsed(self, block: bytes, types: Mapping[str, pa.DataType], names: Sequence[str] | None = None) -> pa.Table:
        return pcsv.read_csv(
            pa.BufferReader(block),
            pcsv.ReadOptions(column_names=self._header, use_threads=False, block_size=len(block) + 1),
            pcsv.ParseOptions(newlines_in_values=b'"' in block),
            pcsv.ConvertOptions(
                column_types={**dict.fromkeys(self._header, pa.string()), **types},
                null_values=[""],
                strings_can_be_null=False,
                include_columns=names,
            ),
        )

    def _typed(self, name: str, cells: pa.Array) -> pa.Array:
        if pa.types.is_integer(cells.type):
            return cells
        cells = _filled(cells)
        kind = self._types.get(name)
        if name in self._texts:
            return cells
        if kind == "text":
            return cells if cells.type == CODED else cells.dictionary_encode()
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


def _filled(cells: pa.Array) -> pa.Array:
    """An empty cell is null."""
    texts = cells.dictionary if cells.type == CODED else cells
    empty = pc.equal(texts, "")
    if not pc.any(empty).as_py():
        return cells
    texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
    return texts.take(cells.indices).dictionary_encode() if cells.type == CODED else texts


def _is_whole(cells: pa.Array) -> bool:
    return _whole_numbers(_filled(cells)) is not None


def _spelling(table: pa.Table) -> int:
    """The bytes of a block with these cells, where whole numbers are spelt without any ado."""
    return int(table.num_rows * table.num_columns) + sum(_bytes_of(column.combine_chunks()) for column in table.columns)


def _bytes_of(cells: pa.Array) -> int:
    if cells.type == CODED:
        lengths = pc.binary_length(cells.dictionary).to_numpy(zero_copy_only=False)
        return int(lengths[cells.indices.to_numpy(zero_copy_only=False)].sum()) if len(lengths) else 0
    if not pa.types.is_integer(cells.type):
        return int(pc.sum(pc.binary_length(cells)).as_py() or 0)
    numbers = cells.drop_null().to_numpy(zero_copy_only=False)
    if not len(numbers):
        return 0
    longest = len(str(max(-int(numbers.min()), int(numbers.max()))))
    digits = len(numbers) + int(np.count_nonzero(numbers < 0))
    for power in range(1, longest):
        digits += int(np.count_nonzero(numbers >= 10**power)) + int(np.count_nonzero(numbers <= -(10**power)))
    return digits


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
    if _has_letters(filled) and pc.any(pc.match_substring_regex(filled, r"[A-DF-Za-df-z]")).as_py():
        return False
    zeros = filled.filter(pc.match_substring_regex(filled, "^[+-]?0"))
    return not pc.any(pc.match_substring_regex(zeros, f"^(?:{PADDED})")).as_py()


def _has_letters(cells: pa.Array) -> bool:
    """Perhaps: the text of all cells is looked at, and what stands beside it."""
    text = cells.buffers()[2]
    return text is not None and bool(text.to_pybytes().translate(None, b"0123456789.+-\0"))


def _well_quoted(block: bytes) -> bool:
    """Whether every quote opens or closes a whole cell or is doubled inside one, and all cells end in the block."""
    if b'"' not in block:
        return True
    single = block.replace(b'""', b"")
    return 2 * len(_quoted_cells(single)) == single.count(b'"')


def _may_be_hexadecimal(block: bytes) -> bool:
    return (b"x" in block and b"0x" in block) or (b"X" in block and b"0X" in block)


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
