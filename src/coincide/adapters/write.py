"""Detections to files: JSON Lines or Parquet. A file is complete or absent; JSON Lines may go to standard output."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from coincide.adapters.files import CompleteFile
from coincide.collecting import without_collecting
from coincide.errors import Diagnostic, InputError
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.model.stamp import MILLISECOND, iso_instant

Target = str | os.PathLike[str] | None


class DetectionWriter(ABC):
    """Writes batches of detections in the order given. As a context manager it commits at the end, discards on an error."""

    @abstractmethod
    def write(self, batch: EventBatch) -> None: ...

    @abstractmethod
    def commit(self) -> None:
        """The output is complete."""

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


Keys = Callable[[EventBatch], Sequence[str]]
"""Keys of the detections of a batch."""

KEY = "_key"
TIME_FORMATS = ("ms", "iso")


def open_detections(
    path: Target = None, *, ids: bool = False, keys: Keys | None = None, time_format: str = "ms"
) -> DetectionWriter:
    """A writer for a path, by its ending; None or `-` is standard output. `ids`: also write generated ids, `<type>#<n>`; `keys`:
    also write these, as `_key`. JSON Lines have their times in milliseconds or as ISO-8601; Parquet has a type for them."""
    name = "-" if path is None else os.fspath(path)
    if name.lower().endswith(".parquet"):
        from coincide.adapters.parquet import ParquetDetections

        return ParquetDetections(name, ids=ids, keys=keys)
    if name == "-" or name.lower().endswith((".jsonl", ".ndjson", ".json")):
        return JsonDetections(None if name == "-" else name, ids=ids, keys=keys, time_format=time_format)
    raise InputError(Diagnostic(f"cannot tell the format of '{name}' by its ending", hint="known: .jsonl .ndjson .json .parquet"))


class JsonDetections(DetectionWriter):
    """One detection a line."""

    def __init__(self, path: Target = None, *, ids: bool = False, keys: Keys | None = None, time_format: str = "ms") -> None:
        self._keys = keys
        self._iso = time_format == "iso"
        self._file = None if path is None else CompleteFile(path)
        self._made: Counter[str] | None = Counter() if ids else None
        self._encoder = msgspec.json.Encoder()

    def write(self, batch: EventBatch) -> None:
        if not len(batch):
            return
        left = memoryview(self._lines(batch))
        while left:  # an unbuffered standard output (PYTHONUNBUFFERED) may take a part only
            left = left[self._stream.write(left) :]
        if self._file is None:
            self._stream.flush()  # who reads a pipe should see a detection when it is made

    def _lines(self, batch: EventBatch) -> bytes:
        if batch.has_table and self._made is None and not self._iso and self._keys is None:
            from coincide.adapters.tablerecords import table_lines

            return table_lines(batch.table)
        records = records_of(batch)
        if self._made is not None:
            records = (self._identified(r) for r in records)
        if self._iso:
            records = map(with_iso_times, records)
        if self._keys is not None:
            records = ({**r, KEY: key} for r, key in zip(records, self._keys(batch), strict=True))
        with without_collecting():
            return self._encoder.encode_lines(records)

    def commit(self) -> None:
        if self._file is not None:
            self._file.commit()

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()

    @property
    def _stream(self) -> IO[bytes]:
        return sys.stdout.buffer if self._file is None else self._file.stream

    def _identified(self, made: dict[str, Any]) -> dict[str, Any]:
        assert self._made is not None
        if "id" in made:
            return made
        kind = made["type"]
        self._made[kind] += 1
        return {"type": kind, "id": f"{kind}#{self._made[kind]}", **made}


def with_iso_times(made: dict[str, Any]) -> dict[str, Any]:
    """A record with its times as ISO-8601 instead of milliseconds."""
    return {name: _iso(value) if name in ("time", "arrival") else value for name, value in made.items()}


def _iso(time: Any) -> Any:
    return [_iso(end) for end in time] if isinstance(time, list) else iso_instant(round(time * MILLISECOND))


def records_of(batch: EventBatch) -> Iterator[dict[str, Any]]:
    """Detections as they are written, without keys."""
    if batch.has_table:
        from coincide.adapters.tablerecords import table_records

        return table_records(batch.table)
    return map(record, batch.events)
