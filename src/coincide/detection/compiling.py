"""Compiled code that is kept on disk.

Numba keeps a function until the file changes that it stands in. Our loops call functions of the files beside it, which are
compiled into them: so all files of the folder count."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


class _Cache(FunctionCache):  # type: ignore[misc]
    def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(signature, codegen), _stamp(Path(self._py_func.__code__.co_filename).parent))


@lru_cache(maxsize=16)
def _stamp(folder: Path) -> str:
    """Of what the files hold, not of their times: a clone of the same files needs no other code."""
    digest = blake2b(digest_size=16)
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def kept(function: F, **options: Any) -> F:
    """Compiled at the first call in this environment."""
    made: Any = numba.njit(**options)(function)
    made._cache = _Cache(function)
    result: F = made
    return result
