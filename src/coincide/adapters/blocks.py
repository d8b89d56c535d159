"""Text inputs in blocks of whole lines."""

from __future__ import annotations

from typing import Protocol

BLOCK = 4 << 20
"""Bytes of a block, and of the input that is read record by record before columns are worth importing Arrow for."""

FIRST = 768 << 10
"""Bytes of a live input that are read record by record before that."""

LEAST = 24 << 10
"""Bytes of a block of a live input for which columns are worth their making."""

_MARK = b"\xef\xbb\xbf"  # of UTF-8, which some editors write


class Readable(Protocol):
    """A stream of bytes. It may give less than it is asked for, and nothing only at its end."""

    def read(self, size: int, /) -> bytes: ...


class Blocks:
    """Blocks of whole lines of one stream, each ending in a line break but for the last one's."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream = stream
        self._size = size
        self._rest = b""  # the beginning of a line
        self._back = b""  # lines that were put back
        self._ended = False
        self._started = False

    def next(self) -> bytes:
        """The next block; empty at the end."""
        if self._back:
            back, self._back = self._back, b""
            return back
        before, self._rest = self._rest, b""
        parts: list[bytes | memoryview] = [before]
        while not self._ended:
            chunk = self._read(max(1, self._size // 2, self._size - len(before)))
            cut = chunk.rfind(b"\n") + 1
            if cut:
                self._rest = chunk[cut:]
                parts.append(memoryview(chunk)[:cut])
                break
            parts.append(chunk)
        return b"".join(parts)

    def put_back(self, lines: bytes) -> None:
        self._back = lines + self._back

    def _read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._ended = not chunk
        if not self._started:
            self._started = True
            return chunk.removeprefix(_MARK)
        return chunk


class Allowance:
    """How much input is read record by record, as objects, over all files: small inputs never import Arrow."""

    def __init__(self, size: int = BLOCK, least: int = 0, first: int | None = None) -> None:
        self.size = size
        self._least = least  # a smaller block is always covered
        # Less than a full block: what goes on after the first is columns from its start.
        self._left = size - size // 4 if first is None else first

    def covers(self, block: bytes, price: int = 1) -> bool:
        """Whether this block, too, is within the allowance; each of its bytes counts so many times."""
        self._left -= price * len(block)
        return self._left > 0 or len(block) < self._least
