"""Events from files: JSON Lines, CSV, Parquet, Arrow, logs of machines. Inputs larger than memory stream through."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from io import BufferedReader
from typing import IO, TYPE_CHECKING, cast

from coincide.adapters.blocks import BLOCK, FIRST, LEAST, Allowance, Readable
from coincide.adapters.files import open_bytes, readable
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.report import Intake, ReadReport
from coincide.errors import Diagnostic, InputError
from coincide.model.batch import EventBatch

if TYPE_CHECKING:
    from coincide.adapters.outlook import Outlook

BATCH = 262_144
"""Rows of a batch of Parquet or Arrow, unless they are large: each batch costs some 2 ms beside its rows."""

JSON_LINES = (".jsonl", ".ndjson", ".json")
ARROW = (".arrow", ".feather", ".ipc")
TEXTS = (*JSON_LINES, ".csv")
EVTX = ".evtx"
ENDINGS = (*TEXTS, ".parquet", *ARROW, EVTX)
PACKED = (".gz", ".zst")
SYSLOG, JOURNAL, WINLOG = LOGS = ("syslog", "journal", "winlog")
"""Texts whose files have no ending of their own: they are named by `--format`."""
FORMATS = {
    **{"jsonl": ".jsonl", "json": ".json", "csv": ".csv", "parquet": ".parquet", "arrow": ".arrow", "evtx": EVTX},
    **{log: log for log in LOGS},
}

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
    format: str | None = None,
    attributes: frozenset[str] | None = None,
    outlook: Outlook | None = None,
) -> EventReader:
    """A reader of files, one after another; of a folder, all files below it whose endings are known, by path. Endings tell the
    formats, `-` is JSON Lines from standard input; a `format` (jsonl, csv, parquet, arrow, syslog, journal, winlog, evtx) is that
    of all files and of `-`.

    Bad records are counted and kept in the file `rejects` (JSON Lines unchanged, others as JSON); with `strict` the first
    one stops the reading with an InputError. `block_size` is that of text inputs in bytes: what fits in one block is read
    as objects. `batch_size` is that of Parquet and Arrow in rows, at most. Of Parquet and CSV, columns of other `attributes` than
    these are left out where their values make no difference to anything else; the report tells which (`unread`). An `outlook` is
    told what is known of the times in what is still to be read."""
    names = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    names = [file for name in names for file in _files(name, format)]
    for name in names:
        format_of(name, format)
    read = partial(read_files, names, mapping, format=format, batch_size=batch_size, block_size=block_size, attributes=attributes)
    read = partial(read, outlook=outlook)
    return EventReader(read, Intake(strict=strict, rejects=rejects))


def read_files(
    names: Sequence[str],
    mapping: FieldMapping,
    intake: Intake,
    format: str | None = None,
    *,
    batch_size: int = BATCH,
    block_size: int = BLOCK,
    attributes: frozenset[str] | None = None,
    outlook: Outlook | None = None,
) -> Iterator[EventBatch]:
    """The batches of files, one after another."""
    allowance, endings = Allowance(block_size), [format_of(name, format) for name in names]

    def batches(number: int, intake: Intake) -> Iterator[EventBatch]:
        return read_file(names[number], endings[number], mapping, intake, allowance, batch_size, attributes)

    if outlook is None:
        yield from (batch for number in range(len(names)) for batch in batches(number, intake))
    else:
        from coincide.adapters.foresight import read_foreseen

        yield from read_foreseen(names, endings, mapping, intake, outlook, batches)


def read_as_it_comes(name: str, mapping: FieldMapping, intake: Intake, format: str | None = None) -> Iterator[EventBatch]:
    """Batches of a text that is still being written, such as standard input, each as soon as its lines are there."""
    with readable(name), open_bytes(name) as stream:
        yield from read_lines(AsItComes(stream), name, format_of(name, format), mapping, intake)


def read_lines(stream: Readable, name: str, ending: str, mapping: FieldMapping, intake: Intake) -> Iterator[EventBatch]:
    """Batches of a text stream that gives what it has: small ones are read as objects, however many come."""
    if ending == ".csv":
        from coincide.adapters.csvfile import read_growing_csv

        return read_growing_csv(stream, name, mapping, intake, BLOCK)
    if ending in LOGS:
        return _read_log(stream, name, ending, mapping, intake, Allowance(least=LEAST, first=FIRST))
    if ending not in JSON_LINES:
        raise InputError(f"'{name}' cannot be read while it is written: JSON Lines, CSV, {', '.join(LOGS)} can")
    from coincide.adapters.jsonlines import read_json_lines

    return read_json_lines(stream, name, mapping, intake, Allowance(least=LEAST, first=FIRST))


ROOM = 1 << 20
"""Bytes that a pipe is asked to hold: whoever writes need not wait so often, and larger blocks cost less."""


def _read_log(
    stream: Readable, name: str, format: str, mapping: FieldMapping, intake: Intake, allowance: Allowance
) -> Iterator[EventBatch]:
    from coincide.adapters.jsonlines import read_json_lines, read_text_lines

    if format == SYSLOG:
        from coincide.adapters.syslog import syslog_reader

        return read_text_lines(stream, name, mapping, intake, allowance, syslog_reader(_last_written(name)))
    if format == JOURNAL:
        from coincide.adapters.journal import journal_record as change
    else:
        from coincide.adapters.winlog import windows_record as change
    return read_json_lines(stream, name, mapping, intake, allowance, change)


def _last_written(name: str) -> datetime:
    """When the file was; what is written just now is of now."""
    moment = os.stat(name).st_mtime if name != "-" and os.path.exists(name) else time.time()
    return datetime.fromtimestamp(moment, UTC)


class AsItComes:
    """A stream that is read as far as there is something to read, not further."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = cast(BufferedReader, stream)
        with suppress(OSError, ValueError, AttributeError):  # no pipe, or no Linux
            fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, ROOM)

    def read(self, size: int) -> bytes:
        return self._stream.read1(min(size, ROOM))


def _files(name: str, format: str | None) -> list[str]:
    """The file itself, or the files of a folder."""
    if name == "-" or not os.path.isdir(name):
        return [name]
    below = sorted(os.path.join(folder, file) for folder, _, files in os.walk(name) for file in files if file[0] != ".")
    found = [file for file in below if format is not None or _known(file) is not None]
    if not found:
        raise InputError(Diagnostic(f"the folder '{name}' has no files of events", hint=f"known: {' '.join(ENDINGS)}"))
    return found


def format_of(name: str, format: str | None) -> str:
    """The ending that stands for a file's format."""
    if format is None:
        return ending_of(name)
    if format not in FORMATS:
        raise InputError(f"unknown format '{format}': one of {', '.join(FORMATS)}")
    return FORMATS[format]


def ending_of(name: str) -> str:
    """The ending that tells a file's format. Raises InputError."""
    if name == "-":
        return ".jsonl"
    ending = _known(name)
    if ending is None:
        packed = " ".join(PACKED)
        hint = f"known: {' '.join(ENDINGS)}; text also with {packed}; or say it with --format ({', '.join(FORMATS)})"
        raise InputError(Diagnostic(f"cannot tell the format of '{name}' by its ending", hint=hint))
    return ending


def _known(name: str) -> str | None:
    base, packed = os.path.splitext(name)
    if packed.lower() not in PACKED:
        base, packed = name, ""
    ending = os.path.splitext(base)[1].lower()
    return ending if ending in (TEXTS if packed else ENDINGS) else None


def read_file(
    name: str,
    ending: str,
    mapping: FieldMapping,
    intake: Intake,
    allowance: Allowance,
    batch_size: int,
    attributes: frozenset[str] | None = None,
) -> Iterator[EventBatch]:
    with readable(name):
        if ending == EVTX:
            from coincide.adapters.evtxfile import read_evtx

            yield from read_evtx(name, mapping, intake)
            return
        if ending not in (*TEXTS, *LOGS):
            from coincide.adapters.arrowfile import read_arrow_file

            yield from read_arrow_file(name, ending == ".parquet", mapping, intake, batch_size, attributes)
            return
        with open_bytes(name) as stream:
            if ending == ".csv":
                from coincide.adapters.csvfile import read_csv

                yield from read_csv(stream, name, mapping, intake, allowance, attributes)
            elif ending in LOGS:
                yield from _read_log(stream, name, ending, mapping, intake, allowance)
            else:
                from coincide.adapters.jsonlines import read_json_lines

                yield from read_json_lines(stream, name, mapping, intake, allowance)
