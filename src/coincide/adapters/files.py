"""Files: inputs that may be compressed, outputs that are complete or absent."""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from coincide.adapters.scratch import release, remove, scratch_file
from coincide.errors import InputError

WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Failures to read `name`, as errors that name it."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read '{name}': {reason}") from error


def open_bytes(name: str) -> IO[bytes]:
    """A file to read, `-` for standard input, `.gz` and `.zst` unpacked."""
    if name == "-":
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb") if _is_real(sys.stdin) else sys.stdin.buffer
    if name.lower().endswith(".gz"):
        import gzip

        return cast(IO[bytes], gzip.open(name, "rb"))
    if name.lower().endswith(".zst"):
        import pyarrow as pa

        return cast(IO[bytes], pa.input_stream(name, compression="zstd"))
    return open(name, "rb")


def _is_real(stream: IO[str]) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def check_writable(path: str | os.PathLike[str]) -> None:
    """A file that is read-only is so on purpose: that its folder lets it be replaced is no permission."""
    target = Path(os.path.realpath(path))
    if target.is_file():
        if not target.stat().st_mode & WRITE_BITS or not os.access(target, os.W_OK):
            raise InputError(f"cannot write '{path}': it is read-only")
    elif not target.exists():
        if not target.parent.is_dir():
            raise InputError(f"cannot write '{path}': {os.strerror(errno.ENOENT)}")
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"cannot write '{path}': its folder is read-only")


class CompleteFile:
    """A file that appears under its name only when it is complete: written beside it, then renamed. What a symbolic link names is
    replaced, not the link. What is there and no file, such as a pipe or /dev/null, is written to at once: to rename would put a
    file in its place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_writable(path)
        self._target = Path(os.path.realpath(path))
        direct = self._target.exists() and not self._target.is_file()
        self.part = self._target if direct else scratch_file(self._target)
        try:
            self.stream = cast(IO[bytes], self.part.open("wb" if direct else "xb"))
        except OSError as error:
            release(self.part)
            raise InputError(f"cannot write '{self.path}': {error.strerror}") from error

    def commit(self) -> None:
        self.stream.close()
        if self.part != self._target:
            if self._target.exists():
                os.chmod(self.part, stat.S_IMODE(self._target.stat().st_mode))
            os.replace(self.part, self._target)
            release(self.part)

    def discard(self) -> None:
        self.stream.close()
        if self.part != self._target:
            remove(self.part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()
