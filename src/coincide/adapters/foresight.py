"""How early events of files can be, before these are read: by the statistics of Parquet, or by the first event of a file whose
disorder is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import IO

from coincide.adapters.blocks import BLOCK, Allowance
from coincide.adapters.files import open_bytes, readable
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.outlook import Opened, Outlook
from coincide.adapters.report import Intake
from coincide.errors import InputError
from coincide.model.batch import EventBatch

FEW_BYTES, FEW_ROWS = 1 << 16, 1 << 10
"""Of the beginning of a file."""

MOST_OPEN = 64
"""Files that are read side by side."""


def read_foreseen(
    names: Sequence[str],
    endings: Sequence[str],
    mapping: FieldMapping,
    intake: Intake,
    outlook: Outlook,
    batches: Callable[[int, Intake], Iterator[EventBatch]],
) -> Iterator[EventBatch]:
    """Files one after another; or side by side, by time, where they do not follow one another and that changes no id."""
    files, after = _foreseen(names, endings, mapping, outlook.delay)
    overlap = any(file.floors and file.floors[-1][1] > rest for file, rest in zip(files, after, strict=True))
    if overlap and len(files) <= MOST_OPEN and all(file.numbered for file in files):
        yield from _side_by_side(files, intake, outlook, batches)
        return
    for number, file in enumerate(files):
        outlook.begins([file], after[number])
        yield from outlook.watched(file, batches(number, intake), intake.report)


def _side_by_side(
    files: Sequence[Opened], intake: Intake, outlook: Outlook, batches: Callable[[int, Intake], Iterator[EventBatch]]
) -> Iterator[EventBatch]:
    """Always from the file that has the earliest left. Positions count over all files, as they are given."""
    starts = accumulate((file.floors[-1][0] for file in files), initial=intake.position - 1)
    intakes = [intake.apart(before) for before, _ in zip(starts, files, strict=False)]
    outlook.begins(files, inf)
    readers = {file: outlook.watched(file, batches(n, intakes[n]), intakes[n].report) for n, file in enumerate(files)}
    while readers:
        file = min(readers, key=lambda file: file.bound(outlook.delay))
        batch = next(readers[file], None)
        if batch is None:
            del readers[file]
        else:
            yield batch
    for own in intakes:
        intake.report.add(own.report)


def _foreseen(
    names: Sequence[str], endings: Sequence[str], mapping: FieldMapping, delay: int | None
) -> tuple[list[Opened], list[float]]:
    """What is known of each file, and how early events of the files after it can be. Where that is of no use since all is read
    first anyway, nobody looks."""
    if delay is None and not (set(endings) == {".parquet"} and sum(map(_size, names)) > BLOCK):
        return [Opened(name) for name in names], [-inf] * len(names)
    files = [
        _parquet(name, mapping) if ending == ".parquet" else Opened(name) for name, ending in zip(names, endings, strict=True)
    ]
    firsts = [
        file.floor if file.floors else _first(file.name, ending, mapping, delay)
        for file, ending in zip(files[1:], endings[1:], strict=True)
    ]
    return files, [*accumulate(reversed(firsts), min, initial=inf)][::-1]


def _size(name: str) -> int:
    return os.path.getsize(name) if os.path.isfile(name) else 0


def _parquet(name: str, mapping: FieldMapping) -> Opened:
    """What cannot be read is told when it is its turn."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from coincide.adapters.parquetcolumns import floors, has_no_ids

    try:
        metadata = pq.read_metadata(name)
    except (OSError, pa.ArrowException):
        return Opened(name)
    return Opened(name, found := floors(metadata, mapping), numbered=bool(found) and has_no_ids(metadata, mapping))


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
