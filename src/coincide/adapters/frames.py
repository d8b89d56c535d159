"""Events from Arrow, pandas and Polars, and detections to Arrow. Columns are read as columns.py says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.adapters.arrowfile import events_of_chunks
from coincide.adapters.columns import is_number
from coincide.adapters.instants import is_text
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.read import BATCH, EventReader
from coincide.adapters.records import BadRecord, event_of
from coincide.adapters.report import Intake
from coincide.errors import InputError
from coincide.expr.functions import BOOLEAN, NUMBER, TEXT
from coincide.model.batch import EventBatch
from coincide.model.column import column_from_arrow
from coincide.model.event import OWN_TYPE, Event
from coincide.model.table import EventTable

UTC_MICROSECONDS = pa.timestamp("us", "UTC")

Rejects = str | os.PathLike[str] | None


def from_arrow(
    table: Any, mapping: FieldMapping = DEFAULT, *, strict: bool = False, rejects: Rejects = None, batch_size: int = BATCH
) -> EventReader:
    """A reader of a Table, RecordBatch, RecordBatchReader, or anything that offers Arrow's stream interface."""
    chunks = _chunks(table, batch_size)
    schema = chunks.schema if isinstance(chunks, pa.RecordBatchReader) else table.schema
    return _reader(chunks, schema, "<arrow>", mapping, strict, rejects)


def from_pandas(
    frame: Any, mapping: FieldMapping = DEFAULT, *, strict: bool = False, rejects: Rejects = None, batch_size: int = BATCH
) -> EventReader:
    """A reader of a DataFrame; its index is not read."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # a column of objects of several types
        columns = {str(name): frame[name] for name in frame.columns}
        return _record_reader(_pandas_records(columns, len(frame)), "<pandas>", mapping, strict, rejects, batch_size)
    return _reader(_chunks(table, batch_size), table.schema, "<pandas>", mapping, strict, rejects)


def from_polars(
    frame: Any, mapping: FieldMapping = DEFAULT, *, strict: bool = False, rejects: Rejects = None, batch_size: int = BATCH
) -> EventReader:
    """A reader of a DataFrame or a LazyFrame, which is collected."""
    frame = frame.collect() if hasattr(frame, "collect") else frame
    try:
        table = frame.to_arrow()
    except Exception:  # Polars has its own exceptions for columns of Python objects, which is not imported here
        return _record_reader(frame.iter_rows(named=True), "<polars>", mapping, strict, rejects, batch_size)
    return _reader(_chunks(table, batch_size), table.schema, "<polars>", mapping, strict, rejects)


def _chunks(table: Any, batch_size: int) -> Any:
    if isinstance(table, pa.RecordBatchReader):
        return table
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        try:
            return pa.RecordBatchReader.from_stream(table)
        except TypeError:
            raise InputError(f"events must be a table of Arrow, pandas or Polars, not {type(table).__name__}") from None
    return table.to_batches(max_chunksize=batch_size)


def _reader(
    chunks: Iterable[Any], schema: pa.Schema, name: str, mapping: FieldMapping, strict: bool, rejects: Rejects
) -> EventReader:
    def batches(intake: Intake) -> Iterator[EventBatch]:
        return events_of_chunks(chunks, name, mapping, intake)

    return EventReader(batches, Intake(strict=strict, rejects=rejects), kinds_of(schema, mapping))


def kinds_of(schema: pa.Schema, mapping: FieldMapping) -> dict[str, str | None]:
    """The attributes that rows of a table have (and `source`), with the types of their values; None: unknown or mixed."""
    kinds: dict[str, str | None] = {"source": TEXT} if mapping.source in schema.names else {}
    for field in schema:
        if field.name not in mapping.envelope:
            kinds.update(_kinds(field.name, field.type))
    return kinds


def _kinds(name: str, kind: pa.DataType) -> Iterator[tuple[str, str | None]]:
    """Fields of a struct go by dotted names."""
    yield name, kind_of(kind)
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _kinds(f"{name}.{field.name}", field.type)


def kind_of(kind: pa.DataType) -> str | None:
    """Of the values of a column; None: unknown or mixed."""
    if pa.types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if is_text(kind) or pa.types.is_boolean(kind):
        return BOOLEAN if pa.types.is_boolean(kind) else TEXT
    temporal = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind)
    return NUMBER if is_number(kind) or temporal else None


def _pandas_records(columns: dict[str, Any], rows: int) -> Iterator[dict[str, object]]:
    values = {name: column.tolist() for name, column in columns.items()}
    for row in range(rows):
        yield {name: value for name, column in values.items() if not _is_none(value := column[row])}


def _is_none(value: object) -> bool:
    """None, and what pandas puts in its place: nan, NaT and NA, none of which is equal to itself."""
    if value is None or isinstance(value, (str, list, tuple, dict, np.ndarray)):
        return value is None
    try:
        return not bool(value == value)  # noqa: PLR0124
    except TypeError:  # NA is not even unequal
        return True


def _record_reader(
    records: Iterable[dict[str, object]], name: str, mapping: FieldMapping, strict: bool, rejects: Rejects, batch_size: int
) -> EventReader:
    """The way for frames that have no Arrow columns: record by record."""

    def batches(intake: Intake) -> Iterator[EventBatch]:
        events: list[Event] = []
        for raw in records:
            position = intake.position
            intake.counted(1)
            record = {field: _plain(value) for field, value in raw.items()}
            try:
                events.append(event_of(record, mapping, position, intake.report.huge))
            except BadRecord as bad:
                intake.reject(f"{name}:{position}", str(bad), record)
            if len(events) == batch_size:
                yield EventBatch(events)
                events = []
        yield EventBatch(events)

    return EventReader(batches, Intake(strict=strict, rejects=rejects))


def _plain(value: object) -> object:
    """NumPy's values as Python's, dates and timestamps as ISO-8601."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    spell = getattr(value, "isoformat", None)
    return value if spell is None else spell()


ENVELOPE_COLUMNS = ("type", "id", "time_lo", "time_hi", "from", "source", "space")
"""What a detection has besides attributes, which follow by name."""


def to_arrow(detections: EventBatch) -> pa.Table:
    """Detections as a table: `type`, `time_lo` and `time_hi` (timestamps, UTC), `from` (ids), then `source`, `space` and, by
    name, the attributes that any of them has. An attribute of a name that is taken gets a `_` after it."""
    return pa.Table.from_batches([arrow_batch(detections.table)])


def arrow_batch(table: EventTable) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {
        "type": _text(table, "type"),
        "time_lo": pa.array(table.lo).cast(UTC_MICROSECONDS),
        "time_hi": pa.array(table.hi).cast(UTC_MICROSECONDS),
        "from": table.origin().lists(),
    }
    if "source" in table.fields:
        columns["source"] = _text(table, "source")
    if "space" in table.fields:
        columns["space"] = table.fields["space"]
    for name in (name for name in table.attributes if name != OWN_TYPE):
        values = column_from_arrow(table.fields[name]).to_arrow()
        if values.null_count < len(values):
            columns[free_name(name, columns)] = values
    return pa.RecordBatch.from_pydict(columns)


def free_name(name: str, taken: Iterable[str]) -> str:
    used = set(taken)
    while name in used:
        name += "_"
    return name


def _text(table: EventTable, name: str) -> pa.Array:
    return table.fields[name].cast(pa.string()) if name in table.fields else pa.nulls(len(table), pa.string())
