"""JSON Lines, one event a line, or one array of events. Small inputs as objects, large ones as columns, with the same result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from coincide.adapters.blocks import FIRST, LEAST, Allowance, Blocks, Readable
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import BadRecord, event_of
from coincide.adapters.report import Intake
from coincide.model.batch import EventBatch
from coincide.model.event import Event

if TYPE_CHECKING:
    from coincide.adapters.jsoncolumns import JsonColumns

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


Change = Callable[[object], object]
"""What a format makes of a record, which is then read as any other. Raises BadRecord."""


def read_json_lines(
    stream: Readable, name: str, mapping: FieldMapping, intake: Intake, allowance: Allowance, change: Change | None = None
) -> Iterator[EventBatch]:
    """The events of a stream, a batch a block."""
    blocks = Blocks(stream, allowance.size)
    block = blocks.next()
    if begins_array(block):
        block += b"".join(iter(blocks.next, b""))
        if (records := array_of(block)) is not None:
            yield EventBatch(events_of_records(records, name, mapping, intake, change))
            return
    read = None if change is None else _changed(change)
    yield from _of_blocks(chain([block], iter(blocks.next, b"")), name, mapping, intake, allowance, read)


def read_text_lines(
    stream: Readable, name: str, mapping: FieldMapping, intake: Intake, allowance: Allowance, read: Callable[[bytes], object]
) -> Iterator[EventBatch]:
    """Lines of which each is a record to `read`."""
    yield from _of_blocks(iter(Blocks(stream, allowance.size).next, b""), name, mapping, intake, allowance, read)


def _of_blocks(
    blocks: Iterable[bytes],
    name: str,
    mapping: FieldMapping,
    intake: Intake,
    allowance: Allowance,
    read: Callable[[bytes], object] | None,
) -> Iterator[EventBatch]:
    """Lines of JSON, or what `read` makes of lines."""
    columns: JsonColumns | None = None
    line = 1
    for block in blocks:
        batch = None
        if not allowance.covers(block) and (plain := block if read is None else _as_json(block, read)) is not None:
            columns = columns or _columns(mapping)
            batch = columns.batch(plain, intake)
        if batch is not None:
            yield batch
            line += len(batch) if read is None else block.count(b"\n")  # an event a line, but for what is no JSON
        else:
            yield EventBatch(_events(block, name, line, mapping, intake, read or _record))
            line += block.count(b"\n")


def _as_json(block: bytes, read: Callable[[bytes], object]) -> bytes | None:
    """Lines of another format as lines of JSON; None: some line is bad, and must be told with its place."""
    try:
        return b"\n".join([_encode(read(line)) for line in block.split(b"\n") if line and not line.isspace()])
    except BadRecord:
        return None


RECORDS = ("Records", "records")
"""What holds the array in files of clouds: those of CloudTrail, of Azure's logs."""

begins_array = re.compile(rb'\s*(?:\{\s*"[Rr]ecords"\s*:\s*)?\[\s*\{').match


def array_of(text: bytes) -> list[object] | None:
    """One array of records in the place of lines, or one object that holds it."""
    try:
        records = _decode(text)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    if isinstance(records, dict) and len(records) == 1:
        records = next((records[name] for name in RECORDS if name in records), None)
    return records if isinstance(records, list) else None


def events_of_records(
    records: Iterable[object], name: str, mapping: FieldMapping, intake: Intake, change: Change | None = None
) -> list[Event]:
    out = []
    for number, record in enumerate(records, 1):
        position = intake.position
        intake.counted(1)
        try:
            out.append(event_of(record if change is None else change(record), mapping, position, intake.report.huge))
        except BadRecord as bad:
            intake.reject(f"{name}: record {number}", str(bad), record)
    return out


def _columns(mapping: FieldMapping) -> JsonColumns:
    from coincide.adapters.jsoncolumns import JsonColumns

    return JsonColumns(mapping)


def _events(
    block: bytes, name: str, first: int, mapping: FieldMapping, intake: Intake, read: Callable[[bytes], object]
) -> list[Event]:
    return events_of_lines(block.split(b"\n"), name, mapping, intake, first, read)


class Messages:
    """Messages as events, each a record, or several, one a line: many at once as columns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._allowance = Allowance(least=LEAST, first=FIRST)
        self._columns: JsonColumns | None = None

    def batch(self, messages: Sequence[bytes], mapping: FieldMapping, intake: Intake) -> EventBatch:
        block = messages[0] if len(messages) == 1 else b"\n".join(messages)
        if not self._allowance.covers(block):
            if self._columns is None or self._columns.mapping is not mapping:
                self._columns = _columns(mapping)
            if (batch := self._columns.batch(block, intake)) is not None:
                return batch
        return EventBatch(events_of_lines(block.split(b"\n"), self.name, mapping, intake, intake.position))


def events_of_lines(
    lines: Iterable[bytes],
    name: str,
    mapping: FieldMapping,
    intake: Intake,
    first: int = 1,
    read: Callable[[bytes], object] | None = None,
) -> list[Event]:
    read = read or _record
    out = []
    huge = intake.report.huge
    for line, text in enumerate(lines, first):
        if not text or text.isspace():
            continue
        position = intake.position
        intake.counted(1)
        try:
            out.append(event_of(read(text), mapping, position, huge))
        except BadRecord as bad:
            intake.reject(f"{name}:{line}", str(bad), text)
    return out


def _changed(change: Change) -> Callable[[bytes], object]:
    return lambda text: change(_record(text))


def _record(text: bytes) -> object:
    try:
        return _decode(text)
    except UnicodeDecodeError:
        raise BadRecord("not UTF-8") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRecord(f"not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None
