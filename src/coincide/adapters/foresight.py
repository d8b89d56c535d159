"""How early events of files can be, before these are read: by the statistics of Parquet, or by the first event of a file whose
disorder is bounded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import IO

from coincide.adapters.blocks import BLOCK, Allowance
from coincide.adapters.files import open_bytes, readable
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.outlook import Floors
from coincide.adapters.report import Intake
from coincide.errors import InputError
from coincide.model.batch import EventBatch

FEW_BYTES, FEW_ROWS = 1 << 16, 1 << 10
"""Of the beginning of a file."""


def foreseen(
    names: Sequence[str], endings: Sequence[str], mapping: FieldMapping, delay: int | None
) -> list[tuple[Floors, float]]:
    """Of each file what is known of its parts, and how early events of the files after it can be. Where that is of no use since
    all is read first anyway, nobody looks."""
    if delay is None and not (set(endings) == {".parquet"} and sum(map(_size, names)) > BLOCK):
        return [((), -inf)] * len(names)
    files = list(zip(names, endings, strict=True))
    floors = [_floors(name, mapping) if ending == ".parquet" else () for name, ending in files]
    firsts = [own[0][1] if own else _first(*file, mapping, delay) for own, file in zip(floors[1:], files[1:], strict=True)]
    after = [*accumulate(reversed(firsts), min, initial=inf)][::-1]
    return list(zip(floors, after, strict=True))


def _size(name: str) -> int:
    return os.path.getsize(name) if os.path.isfile(name) else 0


def _floors(name: str, mapping: FieldMapping) -> Floors:
    """What cannot be read is told when it is its turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from coincide.adapters.parquetcolumns import floors

    try:
        return floors(pq.read_metadata(name), mapping) if os.path.isfile(name) else ()
    except (OSError, pa.ArrowException):
        return ()


def _first(name: str, ending: str, mapping: FieldMapping, delay: int | None) -> float:
    """Before which no event of a file can be, as the first is there. What can be read only once stays as it is."""
    if delay is None or not os.path.isfile(name):
        return -inf
    try:
        batch = _beginning(name, ending, mapping)
    except InputError:
        return -inf
    if batch is None:
        return inf
    return int(batch.table.hi[0] if batch.has_table else batch.events[0].hi) - delay


def _beginning(name: str, ending: str, mapping: FieldMapping) -> EventBatch | None:
    """The first events."""
    from coincide.adapters.read import LOGS, TEXTS, read_file, read_lines

    if ending not in (*TEXTS, *LOGS):
        return next(filter(len, read_file(name, ending, mapping, Intake(), Allowance(), FEW_ROWS)), None)
    with readable(name), open_bytes(name) as stream:
        return next(filter(len, read_lines(_Sips(stream), name, ending, mapping, Intake())), None)


class _Sips:
    """A stream of which little is read at a time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, FEW_BYTES))
