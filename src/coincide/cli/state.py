"""A run's state and its counts in files: what `--snapshot` and `--stats` write and `--resume` reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coincide.cli.report import note

if TYPE_CHECKING:
    from coincide.rulebook import Rulebook


class Continued(Protocol):
    """An engine whose run can go on later."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes, *, changed: bool = False) -> None: ...


def restore_state(engine: Continued, path: Path) -> None:
    from dataclasses import replace

    from coincide.adapters.files import readable
    from coincide.errors import InputError

    with readable(str(path)):
        data = path.read_bytes()
    try:
        engine.restore(data, changed=True)
    except InputError as error:
        named = (replace(d, message=f"'{path}' is {d.message}") for d in error.diagnostics)
        raise InputError(*named) from error


def report_new_definitions(book: Rulebook, path: Path) -> None:
    """Names the definitions for which a snapshot has no state. It has been read before, so it is known to be one."""
    from coincide.engines.snapshots import GraphSnapshot, read_snapshot

    parts = read_snapshot(path.read_bytes(), GraphSnapshot).parts
    if new := [detector.name for detector in book.detectors if detector.part_of(parts) is None]:
        shown = ", ".join(new[:10]) + (f" and {len(new) - 10:,} more" if len(new) > 10 else "")
        print(f"note: new or changed since '{path}' was taken, so starting afresh: {shown}", file=sys.stderr)


def keep_state(engine: Continued, path: Path) -> None:
    from coincide.adapters.files import CompleteFile

    with CompleteFile(path) as file:
        file.stream.write(engine.snapshot())
    note(f"state kept in {path}")


class Counted(Protocol):
    def statistics(self) -> Mapping[str, Any]: ...


@contextmanager
def statistics_file(engine: Counted, path: Path | None) -> Iterator[None]:
    """Writes the engine's counts once the run inside is over. The file is opened before: a run should not end in vain."""
    import msgspec

    from coincide.adapters.files import CompleteFile

    if path is None:
        yield
        return
    with CompleteFile(path) as file:
        yield
        file.stream.write(msgspec.json.format(msgspec.json.encode(engine.statistics())) + b"\n")
