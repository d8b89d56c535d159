"""Parquet and Arrow files, and Arrow's batches wherever they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.ipc

from coincide.adapters.columns import events_of_columns, named
from coincide.adapters.mapping import FieldMapping, read_by
from coincide.adapters.report import Intake
from coincide.errors import InputError
from coincide.model.batch import EventBatch


def read_arrow_file(
    name: str, parquet: bool, mapping: FieldMapping, intake: Intake, batch_size: int, attributes: frozenset[str] | None = None
) -> Iterator[EventBatch]:
    """The events of a file, batch by batch, with these attributes (None: all); those that cost nothing may be there, too."""
    wanted = None if attributes is None or intake.keeps_rejects else read_by(mapping, attributes)
    chunks = _parquet(name, batch_size, wanted, intake.report.unread) if parquet else _arrow(name)
    try:
        yield from events_of_chunks(chunks, name, mapping, intake)
    except pa.ArrowException as error:
        raise InputError(f"cannot read '{name}': {error}") from error


def chunks_of(name: str, parquet: bool, batch_size: int) -> Iterator[pa.RecordBatch]:
    return _parquet(name, batch_size, None, Counter()) if parquet else _arrow(name)


def _parquet(name: str, batch_size: int, wanted: frozenset[str] | None, unread: Counter[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    from coincide.adapters.parquetcolumns import coded_columns, rows_at_once, unread_columns

    metadata = pq.read_metadata(name)
    left_out = {} if wanted is None else unread_columns(metadata, wanted)
    unread.update(left_out)
    options = {
        "read_dictionary": coded_columns(metadata),
        "pre_buffer": False,
    }  # else Arrow would hold the file from its beginning
    with pq.ParquetFile(name, metadata=metadata, **options) as file:
        names = [column for column in file.schema_arrow.names if column not in left_out] if left_out else None
        yield from file.iter_batches(rows_at_once(metadata, batch_size), columns=names)


def _arrow(name: str) -> Iterator[pa.RecordBatch]:
    """Arrow's file format, which Feather 2 is, or its stream format."""
    with pa.memory_map(name) as source:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            yield from pa.ipc.open_stream(source)
            return
        for index in range(file.num_record_batches):
            yield file.get_batch(index)


def events_of_chunks(
    chunks: Iterable[pa.Table | pa.RecordBatch], name: str, mapping: FieldMapping, intake: Intake
) -> Iterator[EventBatch]:
    row = 1
    for chunk in chunks:
        columns = named(chunk)
        table, faults = events_of_columns(columns, chunk.num_rows, mapping, intake.position, intake.report.huge)
        intake.counted(chunk.num_rows)
        for bad, reason in faults:
            intake.reject(f"{name}:{row + bad}", reason, _raw(columns, bad) if intake.keeps_rejects else None)
        row += chunk.num_rows
        yield EventBatch(table=table)


def _raw(columns: dict[str, pa.Array], row: int) -> dict[str, object]:
    values = {name: _python(array[row]) for name, array in columns.items()}
    return {name: value for name, value in values.items() if value is not None}


def _python(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):  # a timestamp that Python has none for
        return getattr(scalar, "value", None)
