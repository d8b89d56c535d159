"""Columns of instants: what records.py does to one `time`, over a whole column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.faults import Faults, Mask
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import BadRecord, instant, missing, no_instant, out_of_range
from coincide.model.column import COMPOUND, MIXED
from coincide.model.stamp import LIMIT

Instants = npt.NDArray[np.int64]

_YEAR_1 = -62_135_596_800_000_000  # Arrow knows a year 0, Python does not


def intervals(array: pa.Array, mapping: FieldMapping, faults: Faults) -> tuple[Instants, Instants]:
    """lo and hi of a `time` column: instants, lists of two, or structs of `lo` and `hi`. Null is a missing time."""
    faults.add(nulls(array), missing("time"))
    kind = array.type
    if pa.types.is_struct(kind) and {"lo", "hi"} <= {f.name for f in kind}:
        lo, hi = pc.struct_field(array, "lo"), pc.struct_field(array, "hi")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lo, hi = _ends(array, faults)
    else:
        points = instants(array, mapping, "time", faults)
        return points, points
    for end in (lo, hi):  # a null among them is a wrong time, not a missing one
        faults.add(nulls(end), no_instant("time"))
    return instants(lo, mapping, "time", faults), instants(hi, mapping, "time", faults)


def _ends(array: pa.Array, faults: Faults) -> tuple[pa.Array, pa.Array]:
    sizes = pc.list_value_length(array)
    pairs = np.asarray(pc.equal(sizes, 2).fill_null(False))
    faults.add(~pairs, no_instant("time"))
    full = pc.if_else(pa.array(pairs), array, pa.scalar(None, array.type))
    flat = full.flatten()
    first = np.where(pairs, 2 * (np.cumsum(pairs) - 1), 0)
    lo, hi = (pa.array(first + end, mask=~pairs) for end in (0, 1))
    return flat.take(lo), flat.take(hi)


def instants(array: pa.Array, mapping: FieldMapping, field: str, faults: Faults) -> Instants:
    """Microseconds, 0 where there are none. Nulls are no fault here."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return instants(array.cast(kind.value_type), mapping, field, faults)
    if pa.types.is_timestamp(kind):
        return _in_range(*_timestamps(array), field, faults)
    if pa.types.is_date(kind):
        return _in_range(*_timestamps(array.cast(pa.timestamp("ms"))), field, faults)
    if pa.types.is_integer(kind):
        return _in_range(*_integers(array, mapping), field, faults)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _in_range(*_floats(array, mapping), field, faults)
    if is_text(kind):
        return _texts(array.cast(pa.string()), mapping, field, faults)
    faults.add(~nulls(array), no_instant(field))
    return np.zeros(len(array), np.int64)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _in_range(values: Instants, wrong: Mask, field: str, faults: Faults) -> Instants:
    if wrong.any():
        faults.add(wrong, out_of_range(field))
        return np.where(wrong, 0, values)
    return values


def _timestamps(array: pa.Array) -> tuple[Instants, Mask]:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[array.type.unit]
    return _scaled(_plain(array.cast(pa.int64())), 1_000_000 // per_second)


def _integers(array: pa.Array, mapping: FieldMapping) -> tuple[Instants, Mask]:
    if pa.types.is_uint64(array.type):  # beyond int64 is out of any range
        array = pc.min_element_wise(array, pa.scalar(LIMIT + 1, pa.uint64()), skip_nulls=False)
    return _scaled(_plain(array.cast(pa.int64())), mapping.per_unit)


def _scaled(values: Instants, per_unit: int) -> tuple[Instants, Mask]:
    """In microseconds, with those that are out of range."""
    if per_unit == 0:
        values, per_unit = values // 1000, 1
    bound = LIMIT // per_unit
    if _are_within(values, bound):
        return values * per_unit, np.zeros(len(values), np.bool_)
    wrong = (values > bound) | (values < -bound)
    return np.where(wrong, 0, values) * per_unit, wrong


def _are_within(values: Instants, bound: int) -> bool:
    return not len(values) or bool(values.max() <= bound and values.min() >= -bound)


def _plain(array: pa.Array) -> Instants:
    values: Instants = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return values


def _floats(array: pa.Array, mapping: FieldMapping) -> tuple[Instants, Mask]:
    numbers = array.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), 0.0, numbers)  # as null
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint(numbers * mapping.per_unit) if mapping.per_unit else np.floor(numbers / 1000)
        wrong = ~(np.abs(scaled) <= LIMIT)
    values = np.where(wrong, 0, scaled).astype(np.int64)
    whole = ~wrong & (np.floor(numbers) == numbers)
    if mapping.per_unit and whole.any():  # whole numbers exactly: the product may need more digits than a double has
        values[whole], wrong[whole] = _scaled(numbers[whole].astype(np.int64), mapping.per_unit)
    return values, wrong


def _texts(array: pa.Array, mapping: FieldMapping, field: str, faults: Faults) -> Instants:
    """Arrow reads the usual spellings; where a column has others, Python reads all of it."""
    values = _iso(array)
    return values if values is not None else _texts_one_by_one(array, mapping, field, faults)


def _iso(array: pa.Array) -> Instants | None:
    zoned = pc.match_substring_regex(array, r"[T ].*[Z+-]").fill_null(True)
    kind: Any = pa.timestamp("us", "UTC")
    try:
        if pc.all(zoned).as_py():
            moments = array.cast(kind)
        elif not pc.any(pc.and_(zoned, array.is_valid())).as_py():
            moments = array.cast(pa.timestamp("us"))
        else:
            return None
    except pa.ArrowInvalid:
        return None
    values = _plain(moments.cast(pa.int64()))
    return values if not len(values) or values.min() >= _YEAR_1 else None


def _texts_one_by_one(array: pa.Array, mapping: FieldMapping, field: str, faults: Faults) -> Instants:
    values = np.zeros(len(array), np.int64)
    for row, text in enumerate(array.to_pylist()):
        if text is not None:
            try:
                values[row] = instant(text, mapping, field)
            except BadRecord as bad:
                faults.add_row(row, str(bad))
    return values


def nulls(array: pa.Array) -> Mask:
    """Where a column has no value; nan is none, and so is, of values of several kinds, the struct without any."""
    if array.type in (MIXED, COMPOUND):
        none: Mask = ~np.logical_or.reduce([np.asarray(part.is_valid()) for part in array.flatten()])
        return none
    if not array.null_count and not pa.types.is_floating(array.type):
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null(nan_is_null=pa.types.is_floating(array.type)))
