"""Blocks of CSV as columns. What Arrow reads otherwise than row by row is left to that way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from coincide.adapters.columns import CODED, events_of_columns, named
from coincide.adapters.csvtypes import FLAGS, NUMBER, PADDED, ColumnTypes, Kinds
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
    """Columns of these types; of those that are `guessed` every block has to bear it out."""

    def __init__(
        self, mapping: FieldMapping, header: list[str], types: Mapping[str, str], unread: Kinds, guessed: Container[str] = ()
    ) -> None:
        self._mapping = mapping
        self._types = types
        self._guessed = guessed
        self._header = header
        self._instants = {mapping.time, mapping.end, mapping.arrival}
        self._texts = {mapping.type, mapping.source, f"{mapping.space}.zone"}
        self._unread = unread
        coded = {name for name in header if types.get(name) == "text"} | {mapping.type}
        self._kinds = {name: CODED if name in coded else pa.string() for name in header}
        self._kinds |= {name: pa.float64() for name, kind in unread.items() if kind == "number"}
        self._read = [name for name in header if unread.get(name) != "text"]

    def batch(self, block: bytes, intake: Intake) -> EventBatch | None:
        """A block's events; None: read it row by row."""
        try:
            if self._unread and not block.isascii():
                block.decode()  # Arrow looks only at columns that it reads
            table = self._table(block, self._kinds, self._read)
            columns = named(table)
            unread = Counter(dict.fromkeys(self._unread, table.num_rows))
            for name in self._unread.keys() & columns.keys():
                unread[name] -= _finite(columns.pop(name)).null_count
            columns = {name: self._typed(name, array) for name, array in columns.items()}
        except (pa.ArrowException, UnicodeDecodeError, _Unclear):
            return None
        huge: Counter[str] = Counter()
        events, faults = events_of_columns(columns, table.num_rows, self._mapping, intake.position, huge)
        if faults:
            return None
        intake.counted(table.num_rows)
        intake.report.huge.update(huge)
        intake.report.unread.update(unread)
        return EventBatch(table=events)

    def breaks(self, block: bytes) -> int:
        return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))

    def kinds(self, block: bytes, names: Collection[str]) -> Kinds:
        """What is known of columns by the first rows: those in which something stands that is no number are texts, or flags."""
        found = {}
        try:
            some = named(self._table(_first_rows(block), self._kinds, list(names))) if names else {}
        except (pa.ArrowException, _Unclear):
            return {}
        for name, cells in some.items():
            if cells.null_count < len(cells):
                found[name] = "text" if _cast(cells, pa.float64()) is None else "number"
        return found

    def note(self, block: bytes, types: ColumnTypes) -> bool:
        """What a block says of the types of columns; false: only the way row by row can tell. Often its first rows say it all."""
        return self.note_head(block, types) and (not types.undecided or self._note(block, types))

    def note_head(self, block: bytes, types: ColumnTypes) -> bool:
        """The same of its first rows alone."""
        return self._note(_first_rows(block), types)

    def _note(self, block: bytes, types: ColumnTypes) -> bool:
        try:
            columns = named(self._table(block, dict.fromkeys(self._header, pa.string()), list(types.undecided)))
        except (pa.ArrowException, _Unclear):
            return False
        for name, kinds in types.undecided.items():
            cells = columns[name]
            if "number" not in kinds or not _are_numbers(cells):
                types.add(name, cells.drop_null().unique().to_pylist())
            elif "boolean" in kinds and cells.null_count < len(cells):
                kinds.discard("boolean")
        return True

    def _table(self, block: bytes, kinds: Mapping[str, pa.DataType], names: Sequence[str]) -> pa.Table:
        """Columns of a block. An empty cell is null."""
        if not _well_quoted(block) or (b"\r" in block and b"\r" in block.replace(b"\r\n", b"\n")):
            raise _Unclear
        return pcsv.read_csv(
            pa.BufferReader(block),
            pcsv.ReadOptions(column_names=self._header, use_threads=False, block_size=len(block) + 1),
            pcsv.ParseOptions(newlines_in_values=b'"' in block),
            pcsv.ConvertOptions(column_types=kinds, null_values=[""], strings_can_be_null=True, include_columns=names),
        )

    def _typed(self, name: str, cells: pa.Array) -> pa.Array:
        kind = self._types.get(name)
        if name in self._texts:
            return cells
        if name == self._mapping.id:
            return _plain_numbers(cells)
        if kind == "text":
            return cells
        if kind == "boolean":
            return _flags(cells)
        typed = _whole_numbers(cells)
        if name in self._guessed and not (typed is not None and _are_plain(typed, cells)) and not _are_numbers(cells):
            raise _Unclear
        if typed is None:
            typed = _numbers(cells)
        if typed is None and kind == "number":
            raise _Unclear
        if typed is None:
            typed = _mixed(cells)
        if typed.type == MIXED and name in self._instants:
            raise _Unclear
        return typed


def _finite(numbers: pa.Array) -> pa.Array:
    if not np.isfinite(numbers.fill_null(0.0).to_numpy(zero_copy_only=False)).all():
        raise _Unclear
    return numbers


def _plain_numbers(cells: pa.Array) -> pa.Array:
    """Whole numbers, if all are spelt as we would spell them."""
    numbers = _whole_numbers(cells)
    return cells if numbers is None or not _are_plain(numbers, cells) else numbers


def _are_plain(numbers: pa.Array, cells: pa.Array) -> bool:
    """Whether whole numbers are spelt in as few bytes as they can be."""
    return bool(_spelling(numbers) == (pc.sum(pc.binary_length(cells)).as_py() or 0))


def _spelling(cells: pa.Array) -> int:
    """The bytes of whole numbers."""
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
    filled = cells.drop_null()
    if _cast(filled, pa.float64()) is None:
        return False
    if _text_of(filled).translate(None, b"0123456789.+-") and pc.any(pc.match_substring_regex(filled, r"[A-DF-Za-df-z]")).as_py():
        return False
    zeros = filled.filter(pc.match_substring_regex(filled, "^[+-]?0"))
    return not pc.any(pc.match_substring_regex(zeros, f"^(?:{PADDED})")).as_py()


def _text_of(cells: pa.Array) -> bytes:
    """Of all cells together."""
    _, ends, text = cells.buffers()
    return text.to_pybytes()[: np.frombuffer(ends, np.int32)[cells.offset + len(cells)]] if text is not None else b""


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
    if numbers is None or b"x" in (text := _text_of(cells)) or b"X" in text:  # hexadecimal
        return None
    return numbers


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
