"""Files: inputs that may be compressed, outputs that are complete or absent."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from types import TracebackType
from typing import IO, Self, cast

from coincide.errors import InputError


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Failures to read `name`, as errors that name it."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read '{name}': {reason}") from error


def open_bytes(name: str) -> IO[bytes]:
    """A file to read, `-` for standard input, `.gz` unpacked."""
    if name == "-":
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb") if _is_real(sys.stdin) else sys.stdin.buffer
    if name.endswith(".gz"):
        import gzip

        return cast(IO[bytes], gzip.open(name, "rb"))
    return open(name, "rb")


def _is_real(stream: IO[str]) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True


class CompleteFile:
    """A file that appears under its name only when it is complete: written beside it, then renamed. What is there and no
    file, such as a pipe or /dev/null, is written to at once: to rename would put a file in its place."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            if self.path.exists() and not self.path.is_file():
                self.part, self.stream = self.path, cast(IO[bytes], self.path.open("wb"))
            else:
                handle, name = mkstemp(prefix=f".{self.path.name}.", suffix=".part", dir=self.path.parent)
                self.part, self.stream = Path(name), os.fdopen(handle, "wb")
        except OSError as error:
            raise InputError(f"cannot write '{self.path}': {error.strerror}") from error

    def commit(self) -> None:
        self.stream.flush()
        if self.part == self.path:
            self.stream.close()
            return
        os.chmod(self.part, 0o666 & ~_umask())  # a temporary file is private, the result should not be
        self.stream.close()
        os.replace(self.part, self.path)

    def discard(self) -> None:
        self.stream.close()
        if self.part != self.path:
            self.part.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
