"""Arrays that are lent to compiled functions.

Numba counts references to each array that is passed to a function, by atomic instructions: with eighteen of them, that adds up. Who lends an array must hold it until the functions have returned."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator]
def unowned(typing: Any, array: Any) -> Any:
    """The array without its owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        return made._getvalue()

    return array(array), generate
