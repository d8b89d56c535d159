"""Detections to a file that grows."""

from __future__ import annotations

import os
from collections.abc import Sequence

from coincide.adapters.files import check_writable
from coincide.errors import InputError
from coincide.streams.base import Made, Position, Sink


class GrowingFile(Sink):
    """JSON Lines, each there when the detection is made. After a restart the file is cut back to where it was at the checkpoint,
    so each detection is there once."""

    once = True

    def open(self, position: Position) -> None:
        check_writable(self.url)
        try:
            self._file = open(self.url, "wb" if position is None else "r+b", buffering=0)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise InputError(f"cannot write '{self.url}': {error.strerror}") from error
        if position is not None:
            if os.fstat(self._file.fileno()).st_size < position:
                raise InputError(f"cannot go on writing '{self.url}': it is shorter than it was at the checkpoint")
            self._file.truncate(position)
            self._file.seek(position)

    def write(self, made: Sequence[Made]) -> None:
        left = memoryview(b"".join(each.line for each in made))
        while left:
            left = left[self._file.write(left) :]

    def commit(self) -> Position:
        if not self._file.seekable():
            return None
        return self._file.tell()

    def make_safe(self) -> None:
        if self._file.seekable():
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
