"""Compiled functions, and arrays that are lent to them.

Numba counts references to each array that is passed to a function, by atomic instructions: with eighteen arrays, that adds up.
Who lends an array must hold it until the functions have returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compiled at the first call in this environment, and kept on disk."""
    made: F = numba.njit(cache=True, nogil=True)(function)
    return made


@intrinsic  # type: ignore[untyped-decorator]
def unowned(typing: Any, array: Any) -> Any:
    """The array without its owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        return made._getvalue()

    return array(array), generate
