"""The last detections: for whoever asks what there was, and for streams that go on from where they broke off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock

import msgspec

from coincide.detection.snapshots import reading_state
from coincide.streams.base import Made, Position, Sink
from coincide.streams.files import GrowingFile

KEPT = 10_000
"""Detections."""


class Line(msgspec.Struct, array_like=True):
    """A detection as it is kept in a file."""

    key: str
    type: str
    rule: str
    line: str


class History(Sink):
    """Detections are numbered as they are made; the last ones are kept. With a folder they are there after a restart, too: two
    files hold at least as many as memory does, and a third is the next, so that the checkpoint before finds its two."""

    once = True

    def __init__(self, folder: Path | None = None, capacity: int = KEPT) -> None:
        super().__init__("history")
        self.capacity = capacity
        self.notify: Callable[[], object] = lambda: None
        self._folder = folder
        self._file: GrowingFile | None = None
        self._turn = 0
        self._in_file = 0
        self._made: deque[Made] = deque(maxlen=capacity)
        self._numbers: dict[str, int] = {}
        self._next = 0
        self._lock = Lock()

    @property
    def next(self) -> int:
        """The number of the detection that will be made next."""
        return self._next

    def open(self, position: Position) -> None:
        if self._folder is None:
            return
        self._turn, offset = position or (0, None)
        if position is not None and self._path(self._turn - 1).exists():
            self._add(_read(self._path(self._turn - 1)))
        self._begin(offset)
        if offset:
            found = _read(self._path(self._turn))
            self._in_file = len(found)
            self._add(found)

    def write(self, made: Sequence[Made]) -> None:
        if self._file is not None:
            lines = [Line(each.key, each.type, each.rule, each.line.decode()) for each in made]
            self._file.write([Made("", "", msgspec.json.encode(line) + b"\n") for line in lines])
            self._in_file += len(lines)
        self._add(made)
        self.notify()

    def commit(self) -> Position:
        if self._file is None:
            return None
        if self._in_file >= self.capacity:
            self._file.make_safe()
            self._file.close()
            self._turn, self._in_file = self._turn + 1, 0
            self._begin(None)
        return [self._turn, self._file.commit()]

    def make_safe(self) -> None:
        if self._file is not None:
            self._file.make_safe()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def number_after(self, key: str) -> int | None:
        """The number of the detection after the one with this key; None: it is not kept (any more)."""
        with self._lock:
            number = self._numbers.get(key)
        return None if number is None else number + 1

    def since(self, number: int, most: int) -> tuple[int, list[Made]]:
        """Detections from a number on, or from the oldest that is kept, and the number of the first of them."""
        with self._lock:
            first = self._next - len(self._made)
            begin = min(max(number, first), self._next)
            return begin, list(islice(self._made, begin - first, begin - first + most))

    def _add(self, made: Sequence[Made]) -> None:
        with self._lock:
            for each in made:
                if len(self._made) == self.capacity:
                    oldest = self._made[0].key
                    if self._numbers.get(oldest, -1) == self._next - self.capacity:
                        del self._numbers[oldest]
                self._made.append(each)
                self._numbers[each.key] = self._next
                self._next += 1

    def _begin(self, offset: int | None) -> None:
        self._file = GrowingFile(str(self._path(self._turn)))
        self._file.open(offset)

    def _path(self, turn: int) -> Path:
        assert self._folder is not None
        return self._folder / f"detections-{turn % 3}.jsonl"


def _read(path: Path) -> list[Made]:
    with reading_state(f"'{path}' does not hold detections"):
        lines = [msgspec.json.decode(text, type=Line) for text in path.read_bytes().splitlines()]
    return [Made(line.key, line.type, line.line.encode(), line.rule) for line in lines]
