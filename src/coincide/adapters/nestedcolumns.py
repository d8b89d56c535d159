"""Struct and list columns as flat ones: what nested.py does to one record, over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.mapping import FieldMapping
from coincide.model.column import COMPOUND, MIXED, column_from_arrow, column_of
from coincide.model.compound import compound_of
from coincide.model.event import Value
from coincide.model.space import Space

Columns = dict[str, pa.Array]


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_object(kind: pa.DataType) -> bool:
    """A struct that is no value of ours."""
    return bool(pa.types.is_struct(kind)) and kind not in (MIXED, COMPOUND)


def flattened_columns(columns: Mapping[str, pa.Array], mapping: FieldMapping) -> Mapping[str, pa.Array]:
    """Columns with dotted names in the place of structs; lists become sets of their values.
    What serves as time, and spacestamps, stay whole."""
    if not any(is_object(array.type) or is_list(array.type) for array in columns.values()):
        return columns
    flat: Columns = {}
    _spread(columns, "", flat, lambda name, array: _is_whole(name, array, mapping), mapping.untyped)
    return flat


def _is_whole(name: str, array: pa.Array, mapping: FieldMapping) -> bool:
    if name == mapping.space:
        return not is_object(array.type) or all(f.name in Space.__struct_fields__ for f in array.type)
    if name in (mapping.time, mapping.end):
        return True
    return name in (mapping.type, mapping.id, mapping.arrival) and is_object(array.type)


def _spread(
    columns: Mapping[str, pa.Array], prefix: str, flat: Columns, is_whole: Callable[[str, pa.Array], bool], deep: bool
) -> None:
    plain: Columns = {}
    for key in sorted(columns, key=lambda key: key.count(".")):
        name, array = f"{prefix}{key}", columns[key]
        if is_whole(name, array) or not (is_object(array.type) or is_list(array.type)):
            plain[name] = array
        elif is_list(array.type):
            for field, values in _lists(name, array, deep):
                _put(flat, field, sets_of_lists(values) if _has_values(values.type.value_type) else values)
        else:
            if may_be_ranges(array.type):
                _put(flat, name, ranges_of_structs(array))
            _spread({f.name: pc.struct_field(array, f.name) for f in array.type}, f"{name}.", flat, is_whole, deep)
    for name, array in plain.items():
        _put(flat, name, array)


def _has_values(kind: pa.DataType) -> bool:
    """Can a column of this type hold values? Of others, the list stays and is refused."""
    return not (pa.types.is_binary(kind) or pa.types.is_map(kind) or pa.types.is_union(kind) or pa.types.is_large_binary(kind))


def _put(flat: Columns, name: str, array: pa.Array) -> None:
    """Where several columns fill one name, a later one wins in the rows that it fills."""
    if (before := flat.get(name)) is None or before.null_count == len(before) or array.null_count == 0:
        flat[name] = array
    elif array.null_count < len(array):
        flat[name] = pc.coalesce(array, before) if array.type == before.type else _mixed(array, before)


def _mixed(array: pa.Array, before: pa.Array) -> pa.Array:
    first, second = column_from_arrow(array), column_from_arrow(before)
    values = (first.value(row) for row in range(len(array)))
    return column_of([second.value(row) if value is None else value for row, value in enumerate(values)]).to_arrow()


def _lists(name: str, array: pa.Array, deep: bool) -> Iterator[tuple[str, pa.Array]]:
    """The lists that a list fills: itself, and one for each field of the structs in it. A list in a list is no value,
    unless it is read `deep`: then its values are the outer one's."""
    array = array.cast(pa.large_list(array.type.value_type))
    array = array.take(pa.array(np.arange(len(array)))) if array.offset else array
    inner = array.type.value_type
    if is_list(inner) and not deep:
        return
    if is_list(inner):
        values = array.values.cast(pa.large_list(inner.value_type))
        yield from _lists(name, _filled(values.offsets.take(array.offsets), values.values, array.is_null()), deep)
    elif is_object(inner):
        for field in inner:
            values = pc.struct_field(array.values, field.name)
            yield from _lists(f"{name}.{field.name}", _filled(array.offsets, values, array.is_null()), deep)
    else:
        yield name, array


def _filled(offsets: pa.Array, values: pa.Array, none: pa.Array) -> pa.Array:
    """The lists without nulls; null where nothing is left."""
    array = pa.LargeListArray.from_arrays(offsets, values, mask=none)
    parents = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
    values = pc.list_flatten(array)
    there = np.asarray(values.is_valid())
    counts = np.bincount(parents[there], minlength=len(array))
    ends = pa.array(np.insert(np.cumsum(counts), 0, 0))
    return pa.LargeListArray.from_arrays(ends, values.filter(pa.array(there)), mask=pa.array(counts == 0))


def sets_of_lists(array: pa.Array) -> pa.Array:
    """Each list as the set of its values; null, if it holds nothing but nulls."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    missing = np.asarray(array.is_null()).tolist()
    column = column_from_arrow(pc.list_flatten(array))
    members = [column.value(row) for row in range(len(column))]
    found: list[Value] = []
    start = 0
    for length, none in zip(lengths.tolist(), missing, strict=True):
        own = members[start : start + length]
        start += length
        nothing = none or (own and not any(member is not None for member in own))
        found.append(None if nothing else compound_of(own))
    return column_of(found).to_arrow()


def may_be_ranges(kind: pa.DataType) -> bool:
    return all(f.name in ("lo", "hi") for f in kind)


def ranges_of_structs(array: pa.Array) -> pa.Array:
    """Each struct of `lo` and `hi` as the range between them."""
    found = [None if raw is None else compound_of({k: v for k, v in raw.items() if v is not None}) for raw in array.to_pylist()]
    return column_of(found).to_arrow()
