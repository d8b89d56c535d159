"""Temporary Arrow files whose columns may change on the way: streams one after another, one for each schema in turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc


class SegmentWriter:
    def __init__(self, path: Path) -> None:
        self.rows = 0
        self._sink = pa.OSFile(str(path), "wb")
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._stream is None or self._schema != batch.schema:
            self._end_stream()
            self._stream, self._schema = pa.ipc.new_stream(self._sink, batch.schema), batch.schema
        self._stream.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        self._end_stream()
        self._sink.close()

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()


def read_segments(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as source:
        while source.tell() < source.size():
            yield from pa.ipc.open_stream(source)
