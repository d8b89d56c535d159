"""CSV with a header row. Small inputs as objects, large ones as columns, with the same result.

An empty cell is null. A column has one type (csvtypes.py): number, boolean or text. Quotes make no difference:
`"12"` is the number 12, `""` is null. The cells of `type`, `id` and `source` are always text; each cell of `time` is a number
or ISO-8601 by itself. Columns `space.x`, `space.y`,
`space.lat`, `space.lon`, `space.z`, `space.zone` make the spacestamp."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Container, Iterator, Mapping
from io import BufferedReader, FileIO
from typing import IO, TYPE_CHECKING

from coincide.adapters.blocks import Allowance, Blocks, Readable
from coincide.adapters.csvtypes import FLAGS, HELD, ColumnTypes, Kinds, matches_number, readable_twice
from coincide.adapters.mapping import FieldMapping, read_by
from coincide.adapters.records import BadRecord, event_of
from coincide.adapters.report import Intake
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.model.space import Space

if TYPE_CHECKING:
    from coincide.adapters.csvcolumns import CsvColumns

PRICE = 4
"""Rows of CSV are short, and to read one by itself takes longer than a line of JSON does."""

_whole = re.compile(r"[+-]?[0-9]+").fullmatch
_not_utf8 = re.compile("[\udc80-\udcff]").search


def read_csv(
    stream: IO[bytes],
    name: str,
    mapping: FieldMapping,
    intake: Intake,
    allowance: Allowance,
    attributes: frozenset[str] | None = None,
) -> Iterator[EventBatch]:
    """The events of a stream, a batch a block, with these attributes (None: all); others may be there, too."""
    stream = readable_twice(stream)
    unread: Kinds = {}
    if attributes is not None and not intake.keeps_rejects:
        unread = _unread(stream, name, mapping, allowance.size, read_by(mapping, attributes) | mapping.column_types.keys())
    if _can_be_held(stream, allowance.size) and (held := _held(stream, name, mapping, intake, allowance, unread)) is not None:
        yield from held
        return
    types = _types(stream, name, mapping, allowance.size, unread)
    stream.seek(0)
    reader = _CsvReader(Blocks(stream, allowance.size), name, mapping, intake, types)
    columns: CsvColumns | None = None
    while block := reader.next_block():
        batch = None
        if not allowance.covers(block, PRICE):
            columns = columns or _columns(mapping, reader.header, types, unread)
            batch = columns.batch(block, intake)
        if batch is not None and columns is not None:
            reader.line += columns.breaks(block)
            yield batch
            continue
        if unread:  # row by row every cell has to be of its type
            types.update(_types(stream, name, mapping, allowance.size))
            unread, columns = {}, None
        yield EventBatch(reader.events(block))


def _can_be_held(stream: IO[bytes], least: int) -> bool:
    """Is it a plain file that is large enough for columns, and not too large to be held?"""
    is_plain = isinstance(stream, BufferedReader) and isinstance(stream.raw, FileIO)
    return is_plain and least < os.fstat(stream.fileno()).st_size < HELD


def _held(
    stream: IO[bytes], name: str, mapping: FieldMapping, intake: Intake, allowance: Allowance, unread: Kinds
) -> list[EventBatch] | None:
    """All events of an input that is read once: they are held until its last row has borne out what the first rows say of the
    types of columns. None: it has not, or a row is bad."""
    stream.seek(0)
    reader = _CsvReader(Blocks(stream, allowance.size), name, mapping, Intake(), {})
    own = Intake(before=intake.position - 1)
    columns: CsvColumns | None = None
    batches = []
    while block := reader.next_block():
        columns = columns or _guessed_columns(block, mapping, reader.header, unread)
        if allowance.covers(block, PRICE) or columns is None or (batch := columns.batch(block, own)) is None:
            return None
        batches.append(batch)
    intake.report.add(own.report)
    return batches


def _guessed_columns(block: bytes, mapping: FieldMapping, header: list[str], unread: Kinds) -> CsvColumns | None:
    types = _column_types(mapping, header, unread)
    if not _columns(mapping, header, {}).note_head(block, types):
        return None
    return _columns(mapping, header, types.found, unread, types.undecided)


def read_growing_csv(stream: Readable, name: str, mapping: FieldMapping, intake: Intake, size: int) -> Iterator[EventBatch]:
    """The same while it is written, so that nobody can look ahead: the type of a column is that of its first cell."""
    reader = _GrowingCsv(Blocks(stream, size), name, mapping, intake, dict(mapping.column_types))
    while block := reader.next_block():
        yield EventBatch(reader.events(block))


def _unread(stream: IO[bytes], name: str, mapping: FieldMapping, size: int, wanted: frozenset[str]) -> Kinds:
    """Columns of a large input that nobody wants, by its first rows: texts need not be read, numbers have to be finite."""
    reader = _CsvReader(Blocks(stream, size), name, mapping, Intake(), {})
    block = reader.next_block()
    found = {} if PRICE * len(block) < size else _columns(mapping, reader.header, {}).kinds(block, set(reader.header) - wanted)
    stream.seek(0)
    return found


def _types(stream: IO[bytes], name: str, mapping: FieldMapping, size: int, unread: Container[str] = ()) -> dict[str, str]:
    """The types of all columns but these. The stream is left where it is."""
    place = stream.tell()
    stream.seek(0)
    reader = _CsvReader(Blocks(stream, size), name, mapping, Intake(), {})
    types: ColumnTypes | None = None
    columns: CsvColumns | None = None
    first = True
    while block := reader.next_block():
        types = types or _column_types(mapping, reader.header, unread)
        small, first = first and PRICE * len(block) < size, False
        if small or not (columns := columns or _columns(mapping, reader.header, {})).note(block, types):
            reader.note(block, types)
        elif not types.undecided:
            break
    stream.seek(place)
    return types.found if types is not None else {}


def _column_types(mapping: FieldMapping, header: list[str], unread: Container[str]) -> ColumnTypes:
    return ColumnTypes((n for n in header if n not in mapping.envelope and n not in unread), mapping.column_types)


def _columns(
    mapping: FieldMapping, header: list[str], types: dict[str, str], unread: Kinds | None = None, guessed: Container[str] = ()
) -> CsvColumns:
    from coincide.adapters.csvcolumns import CsvColumns

    return CsvColumns(mapping, header, types, unread or {}, guessed)


class _CsvReader:
    def __init__(self, blocks: Blocks, name: str, mapping: FieldMapping, intake: Intake, types: dict[str, str]) -> None:
        self.header: list[str] = []
        self.line = 1  # of the next block's first
        self._blocks = blocks
        self._name = name
        self._mapping = mapping
        self._intake = intake
        self._types = types

    def next_block(self) -> bytes:
        block = self._blocks.next()
        while block and not self.header:
            self._read_header(block)
            block = self._blocks.next()
        return block

    def _read_header(self, block: bytes) -> None:
        first, _, rest = block.partition(b"\n")
        self._blocks.put_back(rest)
        feed = _Feed([first], self._blocks)
        try:
            self.header = next(csv.reader(feed))
        except csv.Error as error:
            raise InputError(f"{self._name}: the header is not CSV: {error}") from error
        self.line += feed.used
        repeated = {cell for cell in self.header if self.header.count(cell) > 1}
        if repeated:
            raise InputError(f"{self._name}: the header has '{min(repeated)}' more than once")

    def events(self, block: bytes) -> list[Event]:
        """The block's events, record by record; the last record may reach into the next block."""
        out = []
        for line, cells in self._rows(block):
            position = self._intake.position
            self._intake.counted(1)
            record: object = cells
            try:
                if isinstance(cells, str):
                    raise BadRecord(cells)
                record = self._record(cells)
                out.append(event_of(record, self._mapping, position, self._intake.report.huge))
            except BadRecord as bad:
                self._intake.reject(f"{self._name}:{line}", str(bad), _printable(record))
        return out

    def note(self, block: bytes, types: ColumnTypes) -> None:
        """What the block's good rows say of the types of columns."""
        rows = [cells for _, cells in self._rows(block) if not isinstance(cells, str) and len(cells) == len(self.header)]
        for number, name in enumerate(self.header):
            if types.undecided.get(name):
                types.add(name, (cells[number] for cells in rows))

    def _rows(self, block: bytes) -> Iterator[tuple[int, list[str] | str]]:
        """Line and cells of each row that is not empty; a text says what is wrong with it."""
        lines = _lines(block)
        feed = _Feed(lines, self._blocks)
        rows = csv.reader(feed)
        while feed.used < len(lines):
            line = self.line + feed.used
            try:
                cells: list[str] | str = next(rows)
            except csv.Error as error:
                cells = f"not CSV: {error}"
            if cells:
                yield line, cells
        self.line += feed.used

    def _record(self, cells: list[str]) -> dict[str, object]:
        if len(cells) != len(self.header):
            raise BadRecord(f"has {len(cells)} cells, the header {len(self.header)}")
        if any(map(_not_utf8, cells)):
            raise BadRecord("not UTF-8")
        return record_of(dict(zip(self.header, cells, strict=True)), self._mapping, self._types)


class _GrowingCsv(_CsvReader):
    def _record(self, cells: list[str]) -> dict[str, object]:
        if len(cells) == len(self.header):
            for name, cell in zip(self.header, cells, strict=True):
                if cell and name not in self._types and name not in self._mapping.envelope:
                    first = ColumnTypes([name], {})
                    first.add(name, [cell])
                    self._types |= first.found
        return super()._record(cells)


def _lines(block: bytes) -> list[bytes]:
    lines = block.split(b"\n")
    return lines if lines[-1] else lines[:-1]


class _Feed:
    """Lines for the csv module, which asks for more where a quoted cell goes on."""

    def __init__(self, lines: list[bytes], blocks: Blocks) -> None:
        self.used = 0
        self._lines = lines
        self._blocks = blocks

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._lines[self.used] if self.used < len(self._lines) else self._beyond()
        self.used += 1
        return line.decode("utf-8", "surrogateescape") + "\n"

    def _beyond(self) -> bytes:
        block = self._blocks.next()
        if not block:
            raise StopIteration
        line, _, rest = block.partition(b"\n")
        self._blocks.put_back(rest)
        return line


def record_of(cells: dict[str, str], mapping: FieldMapping, types: Mapping[str, str]) -> dict[str, object]:
    """A row as a record of values. Raises BadRecord for a cell that is not of the type that was asked for."""
    texts = {mapping.type, mapping.id, mapping.source}
    record: dict[str, object] = {}
    space: dict[str, object] = {}
    prefix = f"{mapping.space}."
    for name, cell in cells.items():
        part = name.removeprefix(prefix)
        if part != name and part in Space.__struct_fields__ and mapping.space not in cells:
            if cell:
                space[part] = cell if part == "zone" else value_of(cell)
        elif not cell:
            record[name] = None
        elif name in texts:
            record[name] = cell
        else:
            record[name] = value_of(cell) if name not in types else typed_value(name, cell, types[name])
    if space:
        record[mapping.space] = space
    return record


def typed_value(name: str, cell: str, kind: str) -> object:
    if kind == "text":
        return cell
    if kind == "boolean" and cell in FLAGS:
        return FLAGS[cell]
    if kind == "number" and matches_number(cell) is not None:
        return int(cell) if _whole(cell) and len(cell) < 400 else float(cell)
    raise BadRecord(f"'{name}' must be a {kind}")


def value_of(cell: str) -> object:
    """A cell by itself."""
    if cell in FLAGS:
        return FLAGS[cell]
    if matches_number(cell) is None:
        return cell
    return int(cell) if _whole(cell) and len(cell) < 400 else float(cell)


def _printable(record: object) -> object:
    """Without the marks of bytes that are no UTF-8, which JSON cannot say."""
    if isinstance(record, list):
        return [cell.encode("utf-8", "replace").decode() for cell in record]
    return record
