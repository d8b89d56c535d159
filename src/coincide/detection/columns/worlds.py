"""Compiled functions, and the world that they share.

The loop works on some thirty arrays. Handed to each function as they are, they would fill the stack at every call, and
Numba would count references to them. So they stand in one record, of which functions get the address: `world.spans` reads an
array from there without owning it, `world.records = more` puts another in its place and lets the old one go. An array that
may be replaced is to be read again after every call that may do so."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.types.containers import Tuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model

from coincide.detection.columns import compiling

compiled = partial(compiling.compiled, allocates=True)
inner = partial(compiling.inner, allocates=True)

ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
NONE: Any = np.int64(-1)
"""Numbers to begin with and to hand over: a function is compiled once more for every number that stands in its call."""


class WorldType(types.Type):
    """The address of a record of arrays."""

    def __init__(self, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        super().__init__(name=f"World({', '.join(f'{name}: {kind}' for name, kind in fields)})")


@register_model(WorldType)
class WorldModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, cgutils.voidptr_t)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = WorldType

    def generic_resolve(self, world: WorldType, name: str) -> Any:
        return dict(world.fields).get(name)


def _slot(context: Any, builder: Any, world: WorldType, address: Any, name: str) -> tuple[Any, Any]:
    """Where in memory an array of the record is, and its type."""
    record = ir.LiteralStructType([context.get_value_type(kind) for _, kind in world.fields])
    number = [field for field, _ in world.fields].index(name)
    return cgutils.gep_inbounds(builder, builder.bitcast(address, record.as_pointer()), 0, number), world.fields[number][1]


@lower_getattr_generic(WorldType)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, world: WorldType, address: Any, name: str) -> Any:
    slot, kind = _slot(context, builder, world, address, name)
    array = context.make_array(kind)(context, builder, builder.load(slot))
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


@lower_setattr_generic(WorldType)  # type: ignore[untyped-decorator]
def _replace(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    slot, kind = _slot(context, builder, signature.args[0], arguments[0], name)
    context.nrt.incref(builder, kind, arguments[1])
    context.nrt.decref(builder, kind, builder.load(slot))
    builder.store(arguments[1], slot)


def record_of(arrays: Any, owned: bool) -> Any:
    """What an intrinsic returns that makes a record of the arrays of a named tuple."""
    world = WorldType(tuple(zip(arrays.fields, arrays.types, strict=True)))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record = ir.LiteralStructType([context.get_value_type(kind) for kind in arrays.types])
        address = cgutils.alloca_once(builder, record)
        for number, kind in enumerate(arrays.types):
            array = builder.extract_value(arguments[0], number)
            if owned:
                context.nrt.incref(builder, kind, array)
            builder.store(array, cgutils.gep_inbounds(builder, address, 0, number))
        return builder.bitcast(address, cgutils.voidptr_t)

    return world(arrays), generate


@intrinsic  # type: ignore[untyped-decorator]
def share(typing: Any, arrays: Any) -> Any:
    """A record of the arrays of a named tuple, in the frame of the caller, who calls `collected` in the end."""
    return record_of(arrays, owned=True)


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing: Any, arrays: Any) -> Any:
    """The same of arrays that no function replaces: nothing is owned, so nothing has to be collected in the end."""
    return record_of(arrays, owned=False)


@intrinsic  # type: ignore[untyped-decorator]
def collected(typing: Any, world: Any) -> Any:
    """The arrays as they are now, with all rights."""
    arrays = Tuple([kind for _, kind in world.fields])

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        slots = [_slot(context, builder, world, arguments[0], name)[0] for name, _ in world.fields]
        return context.make_tuple(builder, arrays, [builder.load(slot) for slot in slots])

    return arrays(world), generate
