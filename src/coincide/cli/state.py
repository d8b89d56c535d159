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
        if (taken := _taken_otherwise(engine, data)) is not None:
            raise InputError(f"'{path}' is not a snapshot that this run can go on from: it was taken {taken}") from error
        hint = "give a file that `coincide run --snapshot` has written"
        raise InputError(Diagnostic(f"'{path}' is not a snapshot: {error}", hint=hint)) from error


def _taken_otherwise(engine: Continued, data: bytes) -> str | None:
    """With a policy or without one, and the run goes on the other way: the usual reason why a snapshot cannot be read."""
    import msgspec

    from coincide.engines import graph, policies

    under = isinstance(engine, policies.PolicyEngine)
    try:
        msgspec.msgpack.decode(data, type=graph.Snapshot if under else policies.Snapshot)
    except (ValueError, msgspec.DecodeError):
        return None
    return "without a policy" if under else "under a policy"


def report_afresh(book: Rulebook, path: Path) -> None:
    """Names the definitions for which a snapshot has no state. It has been read before, so it is known to be one."""
    import msgspec

    from coincide.engines.graph import Snapshot

    parts = msgspec.msgpack.decode(path.read_bytes(), type=Snapshot).parts
    if afresh := [detector.name for detector in book.detectors if detector.digest not in parts]:
        shown = ", ".join(afresh[:10]) + (f" and {len(afresh) - 10:,} more" if len(afresh) > 10 else "")
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
