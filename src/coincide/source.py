"""Source texts and places in them: what every diagnostic points at."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

MAXIMUM_DEPTH = 100  # of nesting; deep enough for people, shallow enough for every recursive pass
MAXIMUM_SIZE = 32 * 1024 * 1024  # bytes of one file


@dataclass(frozen=True)
class Reading:
    """How a file of rules is to be read, where its language offers a choice. `mapping` is the text of a mapping file; with
    `keep_going`, rules with errors are left out and reported as warnings; those below a `level` make no detections. `refused`
    are such rules that were left out before the file was read: lines and messages."""

    mapping: SourceText | None = None
    keep_going: bool = False
    level: str | None = None
    refused: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class SourceText:
    """The text of one rule file. Lines and columns count from 1."""

    name: str
    text: str = field(repr=False)
    reading: Reading = field(default=Reading(), repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def span(self, start: int, end: int) -> Span:
        return Span(self, start, end)

    def line_span(self, number: int) -> Span:
        """Of the beginning of a line; of one that is not there, of the end."""
        starts = self._line_starts
        start = starts[number - 1] if number <= len(starts) else len(self.text)
        return Span(self, start, start)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source text."""

    source: SourceText
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.place(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.place(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def file(self) -> str:
        return self.source.name

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """The source line with a caret under the span; long lines are cut around it."""
        line, column = self.source.place(self.start)
        text = self.source.line(line).replace("\t", " ")
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        cut = max(0, min(column - 60, len(text) - 120))
        shown = text[cut : cut + 120]
        caret = " " * (column - 1 - cut) + "^" * min(width, 120)
        return f"    {shown}\n    {caret}"


@contextmanager
def room_for_recursion(frames: int = 10_000) -> Iterator[None]:
    """Recursive descent takes a dozen frames a level: more than the default limit has at the depth that parsers allow."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
