"""One type for a column of CSV: number, if all its cells are numbers; boolean, if all are true or false; else text.

So the whole input is looked at before the first event is given out. Of a file that can be held, events are made by what its first
rows say and held until the last row bears it out; else it takes a second pass. It costs no time to the first detection: events
are put in order before any of them is consumed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from tempfile import SpooledTemporaryFile
from typing import IO, cast

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
PADDED = r"[+-]?0[0-9]"
"""How a number begins that would lose digits as one: `007`, `01234`."""

HELD = 64 << 20
"""Bytes of an input that are held in memory: more of one that cannot be read twice go to a temporary file."""

Kinds = dict[str, str]
"""Columns that are `text` or `number`."""

matches_number = re.compile(NUMBER).fullmatch
_padded = re.compile(PADDED).match


def readable_twice(stream: IO[bytes]) -> IO[bytes]:
    """The stream, or all that it has, so that one can go back to its beginning."""
    if stream.seekable():
        return stream
    held = SpooledTemporaryFile(max_size=HELD)  # noqa: SIM115 - it is given out
    while chunk := stream.read(1 << 20):
        held.write(chunk)
    held.seek(0)
    return cast(IO[bytes], held)


def is_number(cell: str) -> bool:
    return matches_number(cell) is not None and _padded(cell) is None


class ColumnTypes:
    """What the cells so far leave possible for each column."""

    def __init__(self, names: Iterable[str], given: Mapping[str, str]) -> None:
        self._given = given
        self._open: dict[str, set[str]] = {name: {"number", "boolean"} for name in names if name not in given}

    @property
    def undecided(self) -> dict[str, set[str]]:
        """Columns that may still be something else than text."""
        return {name: kinds for name, kinds in self._open.items() if kinds}

    def add(self, name: str, cells: Iterable[str]) -> None:
        kinds = self._open[name]
        for cell in cells:
            if not cell:
                continue
            if "number" in kinds and not is_number(cell):
                kinds.discard("number")
            if "boolean" in kinds and cell not in FLAGS:
                kinds.discard("boolean")
            if not kinds:
                return

    @property
    def found(self) -> dict[str, str]:
        """A column without any cell is a number as well as anything."""
        guessed = {name: min(kinds, key=("number", "boolean").index, default="text") for name, kinds in self._open.items()}
        return {**guessed, **self._given}
