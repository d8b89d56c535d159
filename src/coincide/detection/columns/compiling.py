"""Compiled code that is kept on disk.

Numba keeps a function until the file changes that it stands in, by the time of that file. Our loops call functions of other
files, which are compiled into them: so every file counts that theirs imports, directly or not. What counts is its text: a new
clone or environment with the same files need not compile again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime import rtsys

from coincide.detection.columns.stamps import archive_of, kernel_folder, source_stamp

F = TypeVar("F", bound=Callable[..., Any])

VERSIONS = 12
"""Of so many states of its sources a module's compiled code is kept."""


class _Locator(_CacheLocator):  # type: ignore[misc]
    """A folder for each state of the files that the code was made from."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.folder = kernel_folder(file)

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
            made = cls(Path(file) if archive_of(Path(file)) else Path(file).resolve(strict=True))
            made.ensure_cache_path()
            return made
        return None


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (UserProvidedCacheLocator, _Locator, *CompileResultCacheImpl._locator_classes)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Implementation

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What is kept is machine code: it needs the runtime, and none of Numba's declarations, which take longer to load than it
        does. Whatever has to be compiled loads them."""
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)

    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        file = Path(self._py_func.__code__.co_filename)
        return (*super()._index_key(signature, codegen), source_stamp(file) if file.exists() else "")


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that only compiled code calls. It becomes part of what calls it, to be optimised and translated
    there: done on its own, too, that would be repeated for each level of calls above it, for the same result."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> _Part:
        """Who asks for it wants to set what machine code needs that raises Python's errors."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _PartCompiler(Compiler):  # type: ignore[misc]
    def compile_extra(self, function: Any) -> Any:
        self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        return super().compile_extra(function)


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
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": everywhere, "pipeline_class": _PartCompiler}
    made: F = numba.njit(nogil=True, _nrt=allocates, **options)(function)
    return made


inlined = partial(inner, everywhere=True)
