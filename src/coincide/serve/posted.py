"""Events that are posted: written to a spool first, then read from it as from any other source.

A post is answered when its events are in the spool. Where checkpoints are kept the spool lies beside them and is made safe before
the answer, so what was answered is not lost, whatever happens; else it is a temporary file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Condition, Lock

from coincide.errors import CoincideError
from coincide.model.batch import EMPTY
from coincide.streams.base import Delivery, Position, Reading, Source

SEGMENT = 32 << 20
"""Bytes after which a new file is begun; what is dealt with goes by whole files."""
BACKLOG = 64 << 20
"""Bytes that may wait to be read before posts are put off."""
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


class Posted(Source):
    """A position is an offset in the spool."""

    clock = "wall"

    def __init__(self, reading: Reading, spool: Spool) -> None:
        super().__init__("posted", reading)
        self.spool = spool
        self.repeatable = spool.safe
        self._given = 0
        self._woken = False

    @property
    def backlog(self) -> int:
        """Bytes that wait to be read."""
        return self.spool.end - self._given

    def more(self) -> bool:
        return self.backlog > 0

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        self._given = max(self.spool.start, int(position or 0))
        if self._given > self.spool.end:
            raise CoincideError(f"'{self.spool.folder}' ends before the checkpoint: it is not the one that belongs to it")
        while self._wait():
            if not self.spool.readable(self._given):
                yield self.delivery(EMPTY, self._given)
                continue
            block = self.spool.read(self._given)
            self._given += len(block)
            yield self.delivery(self.events([block.rstrip(b"\n")], self.url), self._given)
            if not self.spool.safe:
                self.spool.forget(self._given)

    def _wait(self) -> bool:
        with self.spool.changed:
            self.spool.changed.wait_for(lambda: self.spool.readable(self._given) or self._woken or self.closed.is_set())
            self._woken = False
            return not self.closed.is_set()

    def wake(self) -> None:
        """Have the run take a turn even if nothing comes."""
        with self.spool.changed:
            self._woken = True
            self.spool.changed.notify_all()

    def acknowledge(self, position: Position) -> None:
        self.spool.forget(int(position))

    def close(self) -> None:
        super().close()
        self.wake()
