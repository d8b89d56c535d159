"""Compiled code that is kept on disk.

Numba keeps a function until the file changes that it stands in, by the time of that file. Our loops call functions of other
files, which are compiled into them: so every file counts that theirs imports, directly or not. What counts is its text: a new
clone or environment with the same files need not compile again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator, _CacheLocator

from coincide.folders import cache_directory

F = TypeVar("F", bound=Callable[..., Any])

IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*|[^#\n]*)|import[ \t]+([\w.]+))", re.MULTILINE)
VERSIONS = 12
"""Of so many states of its sources a module's compiled code is kept."""


class _Locator(_CacheLocator):  # type: ignore[misc]
    """A folder for each state of the files that the code was made from."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = cache_directory() / "kernels" / ".".join(_module(file)) / source_stamp(file)

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return ""  # the folder's name says it all

    def get_disambiguator(self) -> str:
        return ""  # so does it here

    def ensure_cache_path(self) -> None:
        super().ensure_cache_path()
        os.utime(self.folder)
        _drop_unused(self.folder.parent)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        """None where there are no plain files, or no folder to write to: then Numba's own habits serve."""
        with suppress(OSError):
            made = cls(Path(file).resolve(strict=True))
            made.ensure_cache_path()
            return made
        return None


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (UserProvidedCacheLocator, _Locator, *CompileResultCacheImpl._locator_classes)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        file = Path(self._py_func.__code__.co_filename)
        return (*super()._index_key(signature, codegen), source_stamp(file) if file.exists() else "")


@lru_cache
def source_stamp(file: Path) -> str:
    """Of the text of a file and of all that it imports from the same root."""
    digest = blake2b(digest_size=16)
    for path in sorted(_closure(file), key=_module):
        digest.update("/".join(_module(path)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _closure(file: Path) -> set[Path]:
    found, new = {file}, [file]
    while new:
        reached = imported_files(new.pop()) - found
        found |= reached
        new.extend(reached)
    return found


@lru_cache(maxsize=1024)
def imported_files(file: Path) -> frozenset[Path]:
    """The files that a file imports, of those below its root."""
    root = file.parents[len(_module(file)) - 1]
    names = (name for match in IMPORT.finditer(file.read_text(encoding="utf-8")) for name in _names(match))
    return frozenset(path for name in names if (path := _file_of(root, name)) is not None)


def _names(match: re.Match[str]) -> Iterator[str]:
    """`from a import b` may mean the module a.b."""
    yield match[1] or match[3]
    if match[1]:
        yield from (f"{match[1]}.{name.split()[0]}" for name in match[2].strip("( ").split(",") if name.strip())


def _file_of(root: Path, name: str) -> Path | None:
    path = root.joinpath(*name.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@lru_cache(maxsize=1024)
def _module(file: Path) -> tuple[str, ...]:
    """Its name by the folders that are packages, from the outermost on."""
    parts, folder = [file.stem], file.parent
    while (folder / "__init__.py").exists():
        parts.append(folder.name)
        folder = folder.parent
    return tuple(reversed(parts))


def _drop_unused(folder: Path) -> None:
    versions = sorted((p for p in folder.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime)
    for path in versions[:-VERSIONS]:
        shutil.rmtree(path, ignore_errors=True)


def compiled(function: F, allocates: bool = False) -> F:
    """Compiled at the first call on this machine.

    Code that allocates counts references, which can cost more than all the rest: it has to say so."""
    made: Any = numba.njit(nogil=True, _nrt=allocates)(function)
    made._cache = _Cache(function)
    result: F = made
    return result


def inner(function: F, allocates: bool = False, everywhere: bool = False) -> F:
    """For what only compiled code calls: nothing is made for Python to call it by, which would take its time. `everywhere`: it
    becomes part of all that calls it. A call hands over all arrays, so for a few lines it costs more than they do."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": everywhere}
    made: F = numba.njit(nogil=True, _nrt=allocates, **options)(function)
    return made


inlined = partial(inner, everywhere=True)
