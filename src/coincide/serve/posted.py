"""Events that are posted: written to a spool first, then read from it as from any other source.

A post is answered when its events are in the spool. Where checkpoints are kept the spool lies beside them and is made safe before
the answer, so what was answered is not lost, whatever happens; else it is a temporary file."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import CoincideError
from coincide.model.batch import EMPTY
from coincide.streams.base import Delivery, Position, Reading, Source
from coincide.streams.spool import Spool

BACKLOG = 64 << 20
"""Bytes that may wait to be read before posts are put off."""


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
