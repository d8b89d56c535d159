"""What rules may read beside their own text: regular files below their own folder. More only where whoever runs them says so,
for rules may come from somebody else."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

FILES_OPTION = "allow it with --allow-path DIR (in Python: load(…, allow_paths=[DIR]))"
DATABASES_OPTION = "allow it with --allow-db (in Python: load(…, allow_db=True))"


@dataclass(frozen=True)
class Access:
    """`folders`: these may be read from, too. `closed`: nothing is read, for all was read elsewhere."""

    folders: tuple[Path, ...] = ()
    databases: bool = False
    closed: bool = False


_access: ContextVar[Access] = ContextVar("access", default=Access())  # noqa: B039 (it is frozen)


@contextmanager
def allowing(folders: Iterable[str | PathLike[str]] = (), databases: bool = False) -> Iterator[None]:
    """Rules that are loaded meanwhile may read this as well as what they may read already."""
    now = _access.get()
    wider = Access((*now.folders, *(Path(folder).resolve() for folder in folders)), now.databases or databases, now.closed)
    token = _access.set(wider)
    try:
        yield
    finally:
        _access.reset(token)


@contextmanager
def reading_nothing() -> Iterator[None]:
    token = _access.set(Access(closed=True))
    try:
        yield
    finally:
        _access.reset(token)


def permitted_file(base: str | PathLike[str], name: str) -> Path:
    """Where the file is that rules in the folder `base` name. OSError: it is not there, or they must not read it."""
    access, folder = _access.get(), Path(base).resolve()
    path = (folder / name).resolve()
    _check_open(access)
    if not any(path.is_relative_to(allowed) for allowed in (folder, *access.folders)):
        raise PermissionError(errno.EACCES, f"it is not below the folder of the rules; {FILES_OPTION}")
    if not stat.S_ISREG(path.stat().st_mode):
        raise PermissionError(errno.EACCES, "it is not a regular file")
    return path


def check_databases() -> None:
    """OSError: rules must not ask databases."""
    access = _access.get()
    _check_open(access)
    if not access.databases:
        raise PermissionError(errno.EACCES, f"rules may ask a database only where that is allowed; {DATABASES_OPTION}")


def _check_open(access: Access) -> None:
    if access.closed:
        raise PermissionError(errno.EACCES, "what rules read is read where they are loaded first, and was not sent with them")
