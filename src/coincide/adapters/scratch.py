"""Temporary files and folders: whatever ends the program, short of a kill, none is left behind."""

from __future__ import annotations

import atexit
import os
import shutil
from pathlib import Path

_kept: dict[Path, int] = {}
"""What is there, with the process that made it: a fork must not clear away what its parent uses."""


def scratch_file(beside: Path) -> Path:
    """A name for a new file in the same folder. It is known before the file is made: a signal may come in between."""
    return _noted(beside.with_name(f".{beside.name[:100]}.{os.urandom(6).hex()}.part"))


def scratch_folder(prefix: str = "coincide-") -> Path:
    from tempfile import gettempdir

    folder = _noted(Path(gettempdir()) / f"{prefix}{os.urandom(8).hex()}")
    folder.mkdir(mode=0o700)
    return folder


def release(path: Path) -> None:
    """It has been moved to its place."""
    _kept.pop(path, None)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    release(path)


def _noted(path: Path) -> Path:
    _kept[path] = os.getpid()
    return path


@atexit.register
def _remove_all() -> None:
    for path in [path for path, process in _kept.items() if process == os.getpid()]:
        remove(path)
