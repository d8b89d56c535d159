"""Arrow columns as events: what records.py does to one record, over whole columns. No Python loop over good rows.

Fields are looked up by the mapping. The time of a row is

- in the column `time` (or what the mapping calls so): timestamps, dates, numbers in the mapping's unit, ISO-8601 texts,
  lists of two of these, or a struct of `lo` and `hi`; with the mapping's `end`, that column is the interval's end;
- where there is no such column, in the two columns `time_lo` and `time_hi`, as detections are written.

The place of a row is a struct column `space`, or columns `space.x`, `space.y`, `space.lat`, `space.lon`, `space.z`,
`space.zone`. Attributes may be numbers of any width, decimals, texts (plain or dictionary-coded), booleans, dates,
timestamps and durations (milliseconds), or MIXED; structs and lists of these are spread (nestedcolumns.py). A row with anything
else in an attribute is bad. Nan is null."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.extraction import extracted_columns
from coincide.adapters.faults import Faults, Mask
from coincide.adapters.instants import Instants, instants, intervals, is_text, nulls
from coincide.adapters.mapping import CATEGORY, UNTYPED, FieldMapping, is_type_name
from coincide.adapters.nestedcolumns import flattened_columns
from coincide.adapters.records import (
    ID_LONG,
    ID_WRONG,
    LONGEST_NUMBER,
    MISSING_TYPE,
    REVERSED,
    SOURCE_WRONG,
    SPACE_WRONG,
    TYPE_NOT_NAME,
    TYPE_NOT_TEXT,
    missing,
    no_value,
    not_finite,
    too_many_digits,
    untyped,
)
from coincide.model.column import COMPOUND, MIXED, Column, column_from_arrow, column_of
from coincide.model.compound import ValueSet
from coincide.model.event import OWN_TYPE, Value
from coincide.model.fields import changed
from coincide.model.numbers import EXACT, FEW_DIGITS, MOST, is_beyond, number_of, plain_number
from coincide.model.space import Space
from coincide.model.table import SPACE, EventTable

Columns = Mapping[str, pa.Array]
CODED = pa.dictionary(pa.int32(), pa.string())


def events_of_columns(
    columns: Columns, rows: int, mapping: FieldMapping, position: int, huge: Counter[str]
) -> tuple[EventTable, Faults]:
    """The good rows as a table, and what is wrong with the others. The first row stands at `position` in the input."""
    faults = Faults(rows)
    columns = extracted_columns(flattened_columns(columns, mapping), mapping.extracts)
    fields = {"type": _types(columns, rows, mapping, faults)}
    lo, hi = _times(columns, rows, mapping, faults)
    fields["id"] = _ids(columns.get(mapping.id), range(position, position + rows), faults)
    if (source := columns.get(mapping.source)) is not None and source.null_count < rows:
        fields["source"] = _labels(source, SOURCE_WRONG, faults)
    if (space := _spaces(columns, rows, mapping, faults)) is not None:
        fields["space"] = space
    if (arrival := columns.get(mapping.arrival)) is not None and arrival.null_count < rows:
        fields["arrival"] = pa.array(instants(arrival, mapping, "arrival", faults), mask=nulls(arrival))
    fields.update(_attributes(columns, mapping, faults, huge))
    if (own := _own_types(columns, fields["type"], mapping)) is not None:
        fields[OWN_TYPE] = own
    return _good_rows(EventTable(lo, hi, fields), faults), faults


def _good_rows(table: EventTable, faults: Faults) -> EventTable:
    if not faults:
        return table
    good = ~faults.bad
    mask = pa.array(good)
    return EventTable(table.lo[good], table.hi[good], changed(table.fields, lambda array: array.filter(mask)))


def _types(columns: Columns, rows: int, mapping: FieldMapping, faults: Faults) -> pa.Array:
    """Coded."""
    if mapping.constant_type is not None:
        return pa.repeat(pa.scalar(mapping.constant_type, pa.string()), rows).dictionary_encode()
    array = columns.get(mapping.type)
    if array is None:
        array = pa.nulls(rows, pa.string())
    if pa.types.is_dictionary(array.type) and (mapping.untyped or not _is_plainly_coded(array)):
        array = array.cast(array.type.value_type)
    if pa.types.is_dictionary(array.type):
        return _checked_types(array.cast(CODED), faults)
    missing_here = nulls(array)
    if pa.types.is_boolean(array.type) or not (is_text(array.type) or is_number(array.type) or array.type in (MIXED, COMPOUND)):
        if not mapping.untyped:  # there, whatever is no name is no type
            faults.add(~missing_here, TYPE_NOT_TEXT)
        array = pa.nulls(rows, pa.string())
    array = _labels(array, TYPE_NOT_TEXT, Faults(rows) if mapping.untyped and array.type in (MIXED, COMPOUND) else faults)
    if mapping.untyped:
        array = _typed(array, columns.get(CATEGORY))
        missing_here = nulls(array)
    faults.add(missing_here, MISSING_TYPE)
    return _checked_types(array.dictionary_encode(), faults)


def _checked_types(coded: pa.DictionaryArray, faults: Faults) -> pa.DictionaryArray:
    names = coded.dictionary.to_pylist()
    if coded.null_count:
        faults.add(nulls(coded), MISSING_TYPE)
    wrong = {code: TYPE_NOT_NAME if name else MISSING_TYPE for code, name in enumerate(names) if not is_type_name(name)}
    for code, reason in wrong.items():
        faults.add(np.asarray(pc.equal(coded.indices, code).fill_null(False)), reason)
    return coded


def _typed(array: pa.Array, category: pa.Array | None) -> pa.Array:
    """Types, with those of records that have none made of their category."""
    missing_here = np.asarray(pc.equal(array, "").fill_null(True))
    if not missing_here.any():
        return array
    if category is None:
        return pc.if_else(pa.array(missing_here), UNTYPED, array)
    given = column_from_arrow(category)
    made = [untyped(_plain_values(given.value(row))) if gone else None for row, gone in enumerate(missing_here.tolist())]
    return pc.if_else(pa.array(missing_here), pa.array(made, pa.string()), array)


def _own_types(columns: Columns, types: pa.Array, mapping: FieldMapping) -> pa.Array | None:
    """True where a record has the type that it would get if it had none; None: nowhere."""
    given = columns.get(mapping.type)
    if not mapping.untyped or mapping.constant_type is not None or given is None or given.null_count == len(given):
        return None
    blank, types = pa.nulls(len(types), pa.string()), types.cast(pa.string())
    given = given.cast(given.type.value_type) if pa.types.is_dictionary(given.type) else given
    nothing = "" if is_text(given.type) else False if pa.types.is_boolean(given.type) else None
    empty = pc.is_null(given) if nothing is None else pc.equal(given, nothing)
    own = pc.and_(pc.equal(types, _typed(blank, columns.get(CATEGORY))), pc.invert(empty.fill_null(True))).fill_null(False)
    return pc.if_else(own, True, pa.scalar(None, pa.bool_())) if pc.any(own).as_py() else None


def _plain_values(value: Value) -> object:
    return list(value.members) if isinstance(value, ValueSet) else value


def _times(columns: Columns, rows: int, mapping: FieldMapping, faults: Faults) -> tuple[Instants, Instants]:
    time = columns.get(mapping.time)
    other = None if mapping.other_time is None else columns.get(mapping.other_time)
    if other is not None and time is not None and (here := nulls(time)).any():
        return _times_of_two(columns, here, mapping, faults)
    if time is None and other is not None and f"{mapping.time}_lo" not in columns:
        time = other
    first, last = (columns.get(f"{mapping.time}_{end}") for end in ("lo", "hi"))
    if time is None and first is not None and last is not None:
        time = pa.StructArray.from_arrays([first, last], ["lo", "hi"], mask=pa.array(nulls(first) & nulls(last)))
    if time is None:
        faults.add(np.ones(rows, np.bool_), missing("time"))
        return np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    lo, hi = intervals(time, mapping, faults)
    if mapping.end is not None and (end := columns.get(mapping.end)) is not None:
        hi = np.where(nulls(end), hi, instants(end, mapping, "end", faults))
    if hi is not lo:
        faults.add(lo > hi, REVERSED)
    return lo, hi


def _times_of_two(columns: Columns, absent: Mask, mapping: FieldMapping, faults: Faults) -> tuple[Instants, Instants]:
    """Where some rows have their time in one field and some in the other."""
    assert mapping.other_time is not None
    both = []
    for name, used in ((mapping.time, ~absent), (mapping.other_time, absent)):
        found = Faults(len(absent))
        both.append(_times({name: columns[name]}, len(absent), replace(mapping, time=name), found))
        for row, reason in found:
            if used[row]:
                faults.add_row(row, reason)
    return tuple(np.where(absent, other, own) for own, other in zip(*both, strict=True))


def _ids(array: pa.Array | None, positions: range, faults: Faults) -> pa.Array:
    """Whole numbers stay numbers: they compare fastest. Where a row has none, its position."""
    if array is None or array.null_count == len(array):
        return _numbers_from(positions)
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type):
        array = array.cast(pa.int64())
        return pc.coalesce(array, _numbers_from(positions)) if array.null_count else array
    texts = _labels(array, ID_WRONG, faults)
    long = np.asarray(pc.greater(pc.binary_length(texts), LONGEST_NUMBER).fill_null(False))
    if long.any():
        faults.add(long & np.asarray(pc.match_substring_regex(texts, r"^-?[0-9]+$").fill_null(False)), ID_LONG)
    return pc.coalesce(texts, _numbers_from(positions).cast(pa.string())) if texts.null_count else texts


def _numbers_from(positions: range) -> pa.Array:
    return pa.array(np.arange(positions.start, positions.stop))


def _labels(array: pa.Array, reason: str, faults: Faults) -> pa.Array:
    """Names: texts, or numbers by their JSON spelling."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _labels(array.cast(kind.value_type), reason, faults)
    if is_text(kind) or pa.types.is_integer(kind):
        return array.cast(pa.string())
    if pa.types.is_floating(kind):
        none = nulls(array)
        numbers = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
        faults.add(np.isinf(numbers), reason)
        spelt = [None if skip else str(plain_number(n)) for n, skip in zip(numbers.tolist(), none.tolist(), strict=True)]
        return pa.array(spelt, pa.string())
    if kind in (MIXED, COMPOUND):
        faults.add(np.asarray(array.field("flag").is_valid()), reason)
        if kind == COMPOUND:
            single_here = pc.or_(array.field("text").is_valid(), array.field("number").is_valid())
            faults.add(np.asarray(pc.and_not(array.field("compound").is_valid(), single_here)), reason)
        labels = pc.coalesce(array.field("text"), _labels(array.field("number"), reason, faults))
        return labels if (column := column_from_arrow(array)).rests is None else _exact_labels(labels, column)
    faults.add(~nulls(array), reason)
    return pa.nulls(len(array), pa.string())


def _exact_labels(labels: pa.Array, column: Column) -> pa.Array:
    """Whole numbers that no double is equal to, with all their digits."""
    assert column.rests is not None
    spelt = labels.to_pylist()
    for row in np.flatnonzero(column.rests).tolist():
        spelt[row] = str(column.value(row))
    return pa.array(spelt, pa.string())


def _spaces(columns: Columns, rows: int, mapping: FieldMapping, faults: Faults) -> pa.Array | None:
    array = columns.get(mapping.space)
    if array is None:
        return _gathered_space(columns, mapping, faults)
    if array.null_count == rows:
        return None
    given = {f.name for f in array.type} if pa.types.is_struct(array.type) else {""}
    if not given <= set(Space.__struct_fields__):
        faults.add(~nulls(array), SPACE_WRONG)
        return None
    parts = {name: pc.struct_field(array, name) for name in given}
    return _space(parts, np.asarray(array.is_valid()), faults)


def _gathered_space(columns: Columns, mapping: FieldMapping, faults: Faults) -> pa.Array | None:
    parts = {name: columns[key] for name in Space.__struct_fields__ if (key := f"{mapping.space}.{name}") in columns}
    if not parts:
        return None
    return _space(parts, ~np.logical_and.reduce([nulls(part) for part in parts.values()]), faults)


def _space(parts: Mapping[str, pa.Array], given: Mask, faults: Faults) -> pa.Array | None:
    out, has = [], {}
    for f in SPACE:
        part = parts.get(f.name, pa.nulls(len(given), f.type))
        has[f.name] = ~nulls(part)
        part, fine = _space_part(part, f.type)
        faults.add(given & has[f.name] & ~fine, SPACE_WRONG)
        out.append(part)
    halves = (has["x"] != has["y"]) | (has["lat"] != has["lon"])
    kinds = has["x"].astype(np.int8) + has["lat"]
    faults.add(given & (halves | (kinds > 1) | ((kinds == 0) & ~has["zone"])), SPACE_WRONG)
    if not given.any():
        return None
    return pa.StructArray.from_arrays(out, fields=list(SPACE), mask=pa.array(~given))


def _space_part(part: pa.Array, wanted: pa.DataType) -> tuple[pa.Array, Mask]:
    kind = part.type
    if pa.types.is_string(wanted) and (is_text(kind) or pa.types.is_dictionary(kind)):
        return part.cast(wanted), np.ones(len(part), np.bool_)
    if pa.types.is_floating(wanted) and is_number(kind):
        part = part.cast(wanted, safe=False)
        part = pc.if_else(pc.is_nan(part), pa.scalar(None, wanted), part)
        return part, np.isfinite(part.fill_null(0.0).to_numpy(zero_copy_only=False))
    return pa.nulls(len(part), wanted), nulls(part)


def _attributes(columns: Columns, mapping: FieldMapping, faults: Faults, huge: Counter[str]) -> dict[str, pa.Array]:
    skip = mapping.envelope | _consumed(columns, mapping)
    out = {}
    for name, array in columns.items():
        if name not in skip and array.null_count < len(array):
            out[name] = attribute(name, array, faults, huge)
    return {name: array for name, array in out.items() if array is not None}


def _consumed(columns: Columns, mapping: FieldMapping) -> set[str]:
    """Columns that serve the envelope without being named in the mapping."""
    ends = set() if mapping.time in columns else {f"{mapping.time}_lo", f"{mapping.time}_hi"}
    flat = set() if mapping.space in columns else {f"{mapping.space}.{name}" for name in Space.__struct_fields__}
    return (ends if ends <= columns.keys() else set()) | flat


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def attribute(name: str, array: pa.Array, faults: Faults, huge: Counter[str]) -> pa.Array | None:
    """An attribute's column as doubles or whole numbers, texts, booleans or MIXED; None: nothing of it can be used."""
    kind = array.type
    if pa.types.is_boolean(kind) or kind in (MIXED, COMPOUND):
        return array
    if is_text(kind):
        return array.cast(pa.string())
    if is_number(kind):
        return _numbers(name, array, faults, huge)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        finest = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
        return pc.divide(array.cast(finest, safe=False).cast(pa.int64()).cast(pa.float64()), 1000.0)
    if pa.types.is_date(kind):
        return array.cast(pa.timestamp("ms")).cast(pa.int64()).cast(pa.float64(), safe=False)
    if pa.types.is_dictionary(kind):
        return _decoded(name, array, faults, huge)
    if isinstance(kind, pa.BaseExtensionType):
        return attribute(name, array.storage, faults, huge)
    faults.add(~nulls(array), no_value(name))
    return None


def _decoded(name: str, array: pa.DictionaryArray, faults: Faults, huge: Counter[str]) -> pa.Array | None:
    """Texts stay coded, which kernels like, if their dictionary is a plain one."""
    if _is_plainly_coded(array):
        return array.cast(CODED)
    return attribute(name, array.cast(array.dictionary.type), faults, huge)


def _is_plainly_coded(array: pa.DictionaryArray) -> bool:
    texts = array.dictionary
    return bool(is_text(texts.type)) and texts.null_count == 0 and len(texts.unique()) == len(texts)


def _numbers(name: str, array: pa.Array, faults: Faults, huge: Counter[str]) -> pa.Array:
    if pa.types.is_decimal(array.type):
        return _decimals(name, array, faults, huge)
    if pa.types.is_integer(array.type):
        if array.type.bit_width < 64 or not _is_large(array):
            return array.cast(pa.float64(), safe=False)
        if pa.types.is_uint64(array.type) and (beyond := _beyond(array)):
            huge[name] += beyond
        return column_from_arrow(array).to_arrow()
    array = array.cast(pa.float64(), safe=False)
    faults.add(np.isinf(array.fill_null(0.0).to_numpy(zero_copy_only=False)), not_finite(name))
    return array


def number_values(array: pa.Array) -> pa.Array:
    """Numbers of a frame that was checked before."""
    return _numbers("", array, Faults(len(array)), Counter())


def _is_large(array: pa.Array) -> bool:
    """Are there whole numbers that may be no doubles?"""
    least, most = pc.min_max(array).values()
    return (most.as_py() or 0) > EXACT or (least.as_py() or 0) < -EXACT


def _beyond(array: pa.Array) -> int:
    large = array.filter(pc.greater(array, pa.scalar(MOST, array.type)))
    return sum(map(is_beyond, large.to_pylist()))


def _decimals(name: str, array: pa.Array, faults: Faults, huge: Counter[str]) -> pa.Array:
    """Whole ones as whole numbers. One with a fraction is the double that is written as it is; where none is, it is refused."""
    kind = array.type
    if kind.precision <= FEW_DIGITS:
        return array.cast(pa.float64(), safe=False)
    values = array.to_pylist()
    if kind.scale <= 0:
        wholes = [None if value is None else int(value) for value in values]
        if lost := sum(is_beyond(whole) for whole in wholes if whole is not None):
            huge[name] += lost
        return column_of([None if whole is None else number_of(whole) for whole in wholes]).to_arrow()
    doubles = [None if value is None else float(value) for value in values]
    wrong = [v is not None and Decimal(repr(d)) != v for v, d in zip(values, doubles, strict=True)]
    faults.add(np.array(wrong, np.bool_), too_many_digits(name))
    return pa.array(doubles, pa.float64())


def named(table: pa.Table | pa.RecordBatch) -> dict[str, pa.Array]:
    """Columns by name; of several with one name, the last, as in JSON."""
    return dict(zip(table.schema.names, map(_flat, table.columns), strict=True))


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """In one piece; what is in one already is not copied."""
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
