"""Events from files: JSON Lines, CSV, Parquet, Arrow. Inputs larger than memory stream through."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from coincide.adapters.blocks import BLOCK, Allowance
from coincide.adapters.files import open_bytes, readable
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.report import Intake, ReadReport
from coincide.errors import Diagnostic, InputError
from coincide.model.batch import EventBatch

BATCH = 65_536
"""Rows of a batch of Parquet or Arrow."""

JSON_LINES = (".jsonl", ".ndjson", ".json")
ARROW = (".arrow", ".feather", ".ipc")
ENDINGS = (*JSON_LINES, ".csv", ".parquet", *ARROW)

Path = str | os.PathLike[str]


class EventReader:
    """Batches of events in the order of the input; `report` tells what became of the records.

    It can be iterated once. Batches are neither sorted nor numbered. Of a table, `kinds` are the types of its attributes
    (number, string, boolean, or None for what is unknown); files have none before they are read."""

    def __init__(
        self, batches: Callable[[Intake], Iterator[EventBatch]], intake: Intake, kinds: Mapping[str, str | None] | None = None
    ) -> None:
        self._batches = batches
        self._intake = intake
        self.kinds = kinds

    @property
    def report(self) -> ReadReport:
        return self._intake.report

    @property
    def warnings(self) -> list[str]:
        return self.report.warnings

    def __iter__(self) -> Iterator[EventBatch]:
        complete = False
        try:
            for batch in self._batches(self._intake):
                if len(batch):
                    yield batch
            complete = True
        finally:
            self._intake.close(complete=complete)


def open_events(
    paths: Path | Iterable[Path],
    mapping: FieldMapping = DEFAULT,
    *,
    strict: bool = False,
    rejects: Path | None = None,
    batch_size: int = BATCH,
    block_size: int = BLOCK,
) -> EventReader:
    """A reader of files, one after another; their endings tell the formats, `-` is JSON Lines from standard input.

    Bad records are counted and kept in the file `rejects` (JSON Lines unchanged, others as JSON); with `strict` the first
    one stops the reading with an InputError. `block_size` is that of text inputs in bytes: what fits in one block is read
    as objects. `batch_size` is that of Parquet and Arrow in rows."""
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    for name in names:
        ending_of(name)

    def batches(intake: Intake) -> Iterator[EventBatch]:
        allowance = Allowance(block_size)
        for name in names:
            yield from _read(name, mapping, intake, allowance, batch_size)

    return EventReader(batches, Intake(strict=strict, rejects=rejects))


def ending_of(name: str) -> str:
    """The ending that tells a file's format. Raises InputError."""
    if name == "-":
        return ".jsonl"
    base, packed = (name[:-3], True) if name.lower().endswith(".gz") else (name, False)
    ending = os.path.splitext(base)[1].lower()
    if ending in (ENDINGS[:4] if packed else ENDINGS):
        return ending
    known = " ".join(ENDINGS)
    raise InputError(Diagnostic(f"cannot tell the format of '{name}' by its ending", hint=f"known: {known}; text also with .gz"))


def _read(name: str, mapping: FieldMapping, intake: Intake, allowance: Allowance, batch_size: int) -> Iterator[EventBatch]:
    ending = ending_of(name)
    with readable(name):
        if ending not in (*JSON_LINES, ".csv"):
            from coincide.adapters.arrowfile import read_arrow_file

            yield from read_arrow_file(name, ending == ".parquet", mapping, intake, batch_size)
            return
        with open_bytes(name) as stream:
            if ending == ".csv":
                from coincide.adapters.csvfile import read_csv

                yield from read_csv(stream, name, mapping, intake, allowance)
            else:
                from coincide.adapters.jsonlines import read_json_lines

                yield from read_json_lines(stream, name, mapping, intake, allowance)
