"""Lines that are kept in files until they are dealt with: what is appended outlives the process, and if need be the machine."""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Condition, Lock

SEGMENT = 32 << 20
"""Bytes after which a new file is begun; what is dealt with goes by whole files."""
CHUNK = 1 << 20
"""Bytes that are read at a time."""


class Spool:
    """Lines in files that are named by the offset of their first byte. Written by many, read by one."""

    def __init__(self, folder: Path, *, safe: bool) -> None:
        self.folder = folder
        self.safe = safe
        folder.mkdir(parents=True, exist_ok=True)
        self.changed = Condition()
        self._syncing = Lock()
        self._starts = sorted(int(path.stem) for path in folder.glob("*.jsonl") if re.fullmatch(r"\d+", path.stem)) or [0]
        self._file = os.open(self._path(self._starts[-1]), os.O_RDWR | os.O_CREAT)
        self.end = self._starts[-1] + self._whole_lines()
        self._synced = self.end

    @property
    def start(self) -> int:
        """Of what is still there."""
        return self._starts[0]

    def append(self, lines: bytes) -> None:
        """Returns when the lines (whole ones) are kept. Many at once are made safe together."""
        with self.changed:
            if self.end - self._starts[-1] >= SEGMENT:
                self._begin()
            os.pwrite(self._file, lines, self.end - self._starts[-1])
            self.end = mine = self.end + len(lines)
            if not self.safe:
                self.changed.notify_all()
        if self.safe:
            self._sync(mine)

    def read(self, offset: int, most: int = CHUNK) -> bytes:
        """Whole lines from an offset: at least one, if there is any."""
        with self.changed:
            end = self._synced if self.safe else self.end
            start = max(start for start in self._starts if start <= offset)
            last = min((other for other in self._starts if other > start), default=end)
        with self._path(start).open("rb") as file:
            file.seek(offset - start)
            block = file.read(min(most, last - offset))
            while block and not block.endswith(b"\n") and (cut := block.rfind(b"\n") + 1) == 0:
                block += file.read(min(most, last - offset - len(block)))
        return block if block.endswith(b"\n") else block[:cut]

    def readable(self, offset: int) -> bool:
        return offset < (self._synced if self.safe else self.end)

    def forget(self, offset: int) -> None:
        """What lies before the offset is not needed any more."""
        with self.changed:
            while len(self._starts) > 1 and self._starts[1] <= offset:
                self._path(self._starts.pop(0)).unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._file)

    def _path(self, start: int) -> Path:
        return self.folder / f"{start:020d}.jsonl"

    def _whole_lines(self) -> int:
        """A line that was being written when the process was killed has been answered to nobody."""
        size = os.fstat(self._file).st_size
        tail = b""
        while size and b"\n" not in tail:
            tail = os.pread(self._file, min(CHUNK, size), max(0, size - CHUNK))
            size = max(0, size - CHUNK) + tail.rfind(b"\n") + 1 if b"\n" in tail else max(0, size - CHUNK)
        os.ftruncate(self._file, size)
        return size

    def _begin(self) -> None:
        if self.safe:
            os.fsync(self._file)
        os.close(self._file)
        self._starts.append(self.end)
        self._file = os.open(self._path(self.end), os.O_RDWR | os.O_CREAT)

    def _sync(self, mine: int) -> None:
        with self._syncing:
            if self._synced < mine:
                with self.changed:
                    end, file = self.end, os.dup(self._file)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
                with self.changed:
                    self._synced = end
                    self.changed.notify_all()
