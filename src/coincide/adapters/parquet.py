"""Detections to Parquet. All columns are known only when the last detection was made, so batches wait in a temporary file."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide.adapters.files import CompleteFile
from coincide.adapters.frames import ENVELOPE_COLUMNS, arrow_batch, free_name
from coincide.adapters.scratch import remove, scratch_folder
from coincide.adapters.segments import SegmentWriter, read_segments
from coincide.adapters.write import KEY, DetectionWriter, Keys
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import MIXED


class ParquetDetections(DetectionWriter):
    """A column for each attribute; one of several types is a struct with a field for each (MIXED)."""

    def __init__(self, path: str | os.PathLike[str], *, ids: bool = False, keys: Keys | None = None) -> None:
        self._keys = keys
        self._file = CompleteFile(path)
        self._folder = scratch_folder()
        self._segments = SegmentWriter(self._folder / "detections.arrow")
        self._kinds: dict[str, set[pa.DataType]] = {}
        self._made: Counter[str] | None = Counter() if ids else None
        self._note(arrow_batch(EMPTY.table))

    def write(self, batch: EventBatch) -> None:
        if len(batch):
            columns = arrow_batch(batch.table)
            if self._made is not None:
                columns = columns.add_column(1, "id", self._ids(columns.column("type")))
            if self._keys is not None:
                columns = columns.append_column(free_name(KEY, columns.schema.names), pa.array(self._keys(batch), pa.string()))
            self._note(columns)
            self._segments.write(columns)

    def commit(self) -> None:
        try:
            self._segments.close()
            names = [name for name in ENVELOPE_COLUMNS if name in self._kinds]
            names += sorted(self._kinds.keys() - set(names))
            schema = pa.schema([(name, _common(self._kinds[name])) for name in names])
            with pq.ParquetWriter(self._file.stream, schema) as writer:
                for batch in read_segments(self._folder / "detections.arrow"):
                    writer.write_batch(_fitted(batch, schema))
            self._file.commit()
        except BaseException:
            self._file.discard()
            raise
        finally:
            remove(self._folder)

    def discard(self) -> None:
        self._segments.close()
        self._file.discard()
        remove(self._folder)

    def _note(self, columns: pa.RecordBatch) -> None:
        for field in columns.schema:
            self._kinds.setdefault(field.name, set()).add(field.type)

    def _ids(self, types: pa.Array) -> pa.Array:
        assert self._made is not None
        out = []
        for kind in types.to_pylist():
            self._made[kind] += 1
            out.append(f"{kind}#{self._made[kind]}")
        return pa.array(out, pa.string())


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    return next(iter(kinds)) if len(kinds) == 1 else MIXED


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    there = dict(zip(batch.schema.names, batch.columns, strict=True))
    return pa.RecordBatch.from_arrays([_as(there.get(f.name), f.type, len(batch)) for f in schema], schema=schema)


def _as(array: pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    if array is None:
        return pa.nulls(rows, kind)
    if array.type == kind:
        return array
    parts = [array if array.type == f.type else pa.nulls(rows, f.type) for f in MIXED]
    mask = pa.array(np.asarray(array.is_null()))
    return pa.StructArray.from_arrays(parts, fields=list(MIXED), mask=mask)
