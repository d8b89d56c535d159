"""Detections to a folder of Parquet files, one for each checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from coincide.adapters.parquet import ParquetDetections
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.streams.base import Made, Position, Sink

MOST = 1_000_000
"""Detections of a file."""


class ParquetFolder(Sink):
    """A file is there as a whole when a checkpoint is. After a restart those that the checkpoint does not know are removed, so
    each detection is there once. A position is the number of files."""

    once = True

    def __init__(self, url: str, keys: bool = False) -> None:
        super().__init__(url)
        self.folder = Path(url)
        self._shown = keys
        self._keys: list[str] = []
        self._files = self._safe = self._rows = 0
        self._writer: ParquetDetections | None = None

    def open(self, position: Position) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._files = self._safe = int(position or 0)
            for path in self._paths(self._files):
                path.unlink()
        except OSError as error:
            raise InputError(f"cannot write to '{self.url}': {error.strerror}") from error

    def write(self, made: Sequence[Made]) -> None:
        raise NotImplementedError  # it takes batches

    def take(self, batch: EventBatch, made: Sequence[Made]) -> None:
        if self._writer is None:
            self._writer = ParquetDetections(self._path(self._files + 1), keys=self._keys_of if self._shown else None)
        self._keys = [each.key for each in made]
        self._writer.write(batch)
        self._rows += len(made)
        if self._rows >= MOST:
            self._end_file()

    def commit(self) -> Position:
        self._end_file()
        return self._files

    def make_safe(self) -> None:
        """The files, and then their names."""
        end = self._files
        for path in [*(self._path(number) for number in range(self._safe + 1, end + 1)), self.folder]:
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
        self._safe = end

    def close(self) -> None:
        self._end_file()

    def _keys_of(self, batch: EventBatch) -> Sequence[str]:
        return self._keys

    def _end_file(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.commit()
            self._files, self._rows = self._files + 1, 0

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:08}.parquet"

    def _paths(self, after: int) -> Iterator[Path]:
        """Those of our files that stand behind a number, and those that a run which was killed had begun."""
        yield from (path for path in sorted(self.folder.glob("part-*.parquet")) if path > self._path(after))
        yield from self.folder.glob(".part-*.parquet.*.part")
