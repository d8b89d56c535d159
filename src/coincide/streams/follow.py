"""A file that grows: followed as `tail -F` does, also when it is rotated."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from typing import IO

from coincide.adapters.files import readable
from coincide.adapters.read import format_of, read_lines
from coincide.errors import Diagnostic, InputError
from coincide.streams.base import Delivery, Position, Reading, Source

POLL = 0.05
"""Seconds between two looks at a file that has nothing new."""


class Tail(Source):
    """`tail:FILE`: what is in the file, then what is added. A file that takes its place is read from its beginning, once the
    old one is read to its end. A position is the file's number on its disk (inode), and an offset."""

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.path = Path(url.removeprefix("tail:"))
        self._ending = format_of(str(self.path), reading.format)
        self._followed: Followed | None = None

    def more(self) -> bool:
        return self._followed is not None and self._followed.has_more()

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        if position is not None and self._ending == ".csv":
            raise InputError(f"'{self.url}': reading CSV cannot be resumed in the middle; reading JSON Lines can")
        self._followed = followed = Followed(self.path, self.closed, position)
        with readable(str(self.path)):
            for batch in read_lines(followed, str(self.path), self._ending, self.reading.mapping, self.reading.intake):
                yield self.delivery(batch, followed.position)


class Followed:
    """The lines of a file while it grows. A read gives whole lines, and nothing only when it is closed."""

    def __init__(self, path: Path, closed: Flag, position: Position = None) -> None:
        self._path = path
        self._closed = closed
        self._file: IO[bytes] | None = None
        self._number = 0
        self._given = 0  # bytes of whole lines that were read
        self._part = b""  # of a line
        self._older: list[Path] = []  # rotated away since, to be read before the file that has the name now
        if position is not None:
            self._go_on(*position)

    @property
    def position(self) -> Position:
        return [self._number, self._given]

    def has_more(self) -> bool:
        """Is the file longer than what was read of it? May be asked by another thread."""
        try:
            return self._file is not None and os.fstat(self._file.fileno()).st_size > self._given + len(self._part)
        except (OSError, ValueError):  # it has been closed meanwhile
            return False

    def read(self, size: int) -> bytes:
        while True:
            chunk = b"" if self._file is None else self._file.read(size)
            if b"\n" in chunk:
                lines, _, rest = chunk.rpartition(b"\n")
                return self._whole(lines + b"\n", rest)
            self._part += chunk
            if not chunk and not self._change():
                if self._closed.wait(POLL):
                    return b""
            elif not chunk and self._part:  # the last line of a file that was rotated away
                line, self._part = self._part + b"\n", b""
                return line

    def _whole(self, lines: bytes, rest: bytes) -> bytes:
        lines, self._part = self._part + lines, rest
        self._given += len(lines)
        return lines

    def _change(self) -> bool:
        """Has another file taken the place of the one that is read to its end, or was that cut off?"""
        if self._older:
            self._open(self._older.pop(0))
            return True
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        if self._file is None or now.st_ino != self._number:
            if self._file is not None and self._file.seek(0, os.SEEK_END) > self._given + len(self._part):
                self._file.seek(self._given + len(self._part))  # something was added just before it was rotated away
                return True
            self._open(self._path)
            return True
        if now.st_size < self._given:
            self._part = b""
            self._open(self._path)
            return True
        return False

    def _open(self, path: Path, offset: int = 0) -> None:
        if self._file is not None:
            self._file.close()
        self._file = path.open("rb", buffering=0)
        self._number, self._given = os.fstat(self._file.fileno()).st_ino, offset
        self._file.seek(offset)

    def _go_on(self, number: int, offset: int) -> None:
        beside = [path for path in self._path.parent.glob(f"{self._path.name}*") if path.is_file()]
        found = next((path for path in beside if path.stat().st_ino == number), None)
        if found is None or found.stat().st_size < offset:
            hint = "without its checkpoint the run begins with what is there"
            raise InputError(Diagnostic(f"'{self._path}': the file that was being read is gone", hint=hint))
        changed = found.stat().st_mtime_ns
        newer = [path for path in beside if path not in (found, self._path) and path.stat().st_mtime_ns > changed]
        self._older = sorted(newer, key=lambda path: path.stat().st_mtime_ns) if found != self._path else []
        self._open(found, offset)
