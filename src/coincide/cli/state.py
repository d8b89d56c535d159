"""A run's state and its counts in files: what `--snapshot` and `--stats` write and `--resume` reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from coincide.cli.report import note


class Continued(Protocol):
    """An engine whose run can go on later."""

    def snapshot(self) -> bytes: ...

    def restore(self, snapshot: bytes, /) -> None: ...


def restore_state(engine: Continued, path: Path) -> None:
    import msgspec

    from coincide.adapters.files import readable
    from coincide.errors import Diagnostic, InputError

    with readable(str(path)):
        data = path.read_bytes()
    try:
        engine.restore(data)
    except (ValueError, msgspec.DecodeError) as error:
        hint = "give a file that `coincide run --snapshot` has written"
        raise InputError(Diagnostic(f"'{path}' is not a snapshot: {error}", hint=hint)) from error


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
