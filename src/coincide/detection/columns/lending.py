"""Worlds (worlds.py) of arrays that no function replaces: nothing is owned, so nothing has to be collected in the end."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from coincide.detection.columns.worlds import WorldType


@intrinsic  # type: ignore[untyped-decorator]
def lent(typing: Any, arrays: Any) -> Any:
    """A record of the arrays of a named tuple, in the frame of the caller."""
    world = WorldType(tuple(zip(arrays.fields, arrays.types, strict=True)))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record = ir.LiteralStructType([context.get_value_type(kind) for kind in arrays.types])
        address = cgutils.alloca_once(builder, record)
        for number in range(len(arrays.types)):
            builder.store(builder.extract_value(arguments[0], number), cgutils.gep_inbounds(builder, address, 0, number))
        return builder.bitcast(address, cgutils.voidptr_t)

    return world(arrays), generate
