"""One attribute over the rows of a batch, as arrays that kernels can read.

A value is a number, a text, a boolean or null, and a column may mix them. So a column has up to three *parts*, each with
its own way to say "none here"; at most one part has something in a row. A plain column has one part. Sets, ranges and lists
are a part of their own; the value of a set of one stands in its part too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.model.compound import Several, ValueList, ValueRange, ValueSet, single
from coincide.model.event import Value

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.int8]
Rows = npt.NDArray[np.int64]
Compounds = npt.NDArray[np.object_]

MIXED = pa.struct([("number", pa.float64()), ("text", pa.string()), ("flag", pa.bool_())])
"""A column of mixed types in Arrow, Parquet and Spark: a struct with at most one field that is not null."""

COMPOUNDS = {ValueSet, ValueRange, ValueList}

COMPOUND = pa.struct([*MIXED, ("compound", pa.binary())])
"""The same where some values are sets or ranges."""

_decode_compound = msgspec.msgpack.Decoder(Several).decode


@dataclass(frozen=True, eq=False)
class Column:
    length: int
    numbers: Numbers | None = None  # nan: none here
    codes: Codes | None = None  # -1: none here; otherwise an index into texts
    texts: tuple[str, ...] = ()  # distinct
    flags: Flags | None = None  # -1: none here; 0 false, 1 true
    compounds: Compounds | None = None  # None: none here; sets and ranges, which only CDL reads: to all others they are null

    def __len__(self) -> int:
        return self.length

    def value(self, row: int) -> Value:
        if self.compounds is not None and (compound := self.compounds[row]) is not None:
            several: Several = compound
            return several
        if self.numbers is not None and (number := float(self.numbers[row])) == number:
            return number
        if self.codes is not None and (code := int(self.codes[row])) >= 0:
            return self.texts[code]
        if self.flags is not None and (flag := int(self.flags[row])) >= 0:
            return bool(flag)
        return None

    @property
    def singles(self) -> Column:
        """As languages see it that know nothing of several values."""
        return self if self.compounds is None else replace(self, compounds=None)

    def take(self, rows: Rows) -> Column:
        numbers = None if self.numbers is None else self.numbers[rows]
        codes = None if self.codes is None else self.codes[rows]
        flags = None if self.flags is None else self.flags[rows]
        compounds = None if self.compounds is None else self.compounds[rows]
        return Column(len(rows), numbers, codes, self.texts, flags, compounds)

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        null = np.ones(self.length, np.bool_)
        if self.numbers is not None:
            null &= np.isnan(self.numbers)
        if self.codes is not None:
            null &= self.codes < 0
        if self.flags is not None:
            null &= self.flags < 0
        return null

    def to_arrow(self) -> pa.Array:
        """Plain where one type will do, MIXED otherwise; all null: numbers."""
        parts: dict[str, pa.Array] = {}
        if self.numbers is not None:
            parts["number"] = pa.array(self.numbers, from_pandas=True)
        if self.codes is not None:
            codes = pa.array(self.codes, mask=self.codes < 0)
            parts["text"] = pa.DictionaryArray.from_arrays(codes, pa.array(self.texts, pa.string())).cast(pa.string())
        if self.flags is not None:
            parts["flag"] = pa.array(self.flags == 1, mask=self.flags < 0)
        if self.compounds is not None:
            parts["compound"] = pa.array([None if c is None else msgspec.msgpack.encode(c) for c in self.compounds], pa.binary())
        if not parts:
            return pa.nulls(self.length, pa.float64())
        if len(parts) == 1 and self.compounds is None:
            return next(iter(parts.values()))
        kind = MIXED if self.compounds is None else COMPOUND
        fields = [parts.get(f.name, pa.nulls(self.length, f.type)) for f in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind))


def column_of(values: Sequence[Value]) -> Column:
    """A column of plain values. What is in a set of one stands in its own part as well, where most languages look."""
    kinds = {type(v) for v in values}
    compounds = _objects([v if isinstance(v, Several) else None for v in values]) if kinds & COMPOUNDS else None
    if compounds is not None:
        values = [single(v) for v in values]
        kinds = {type(v) for v in values}
    numbers = np.array([v if type(v) is float else np.nan for v in values], np.float64) if float in kinds else None
    flags = np.array([v if type(v) is bool else -1 for v in values], np.int8) if bool in kinds else None
    if str not in kinds:
        return Column(len(values), numbers, None, (), flags, compounds)
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(v, len(index)) if isinstance(v, str) else -1 for v in values], np.int32)
    return Column(len(values), numbers, codes, tuple(index), flags, compounds)


def _objects(values: Sequence[Several | None]) -> Compounds:
    out = np.empty(len(values), np.object_)
    out[:] = values
    return out


def column_from_arrow(array: pa.Array | pa.ChunkedArray) -> Column:
    """Any Arrow array whose values are numbers, texts, booleans, timestamps (milliseconds) or MIXED."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_null(kind):
        return Column(len(array))
    if kind in (MIXED, COMPOUND):
        number, text, flag = (column_from_arrow(array.field(i)) for i in range(3))
        compounds = None if kind == MIXED else _objects([d and _decode_compound(d) for d in array.field(3).to_pylist()])
        return Column(len(array), number.numbers, text.codes, text.texts, flag.flags, compounds)
    if pa.types.is_boolean(kind):
        return Column(len(array), flags=array.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _coded(array)
    return Column(len(array), numbers=_numbers(array))


def single_values(array: pa.Array) -> pa.Array:
    """An array of a column as languages see it that know nothing of several values."""
    return column_from_arrow(array).singles.to_arrow() if array.type == COMPOUND else array


def _coded(array: pa.Array) -> Column:
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    indices = coded.indices.cast(pa.int32())
    codes = (indices.fill_null(-1) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    return Column(len(array), codes=codes, texts=tuple(coded.dictionary.to_pylist()))


def _numbers(array: pa.Array) -> Numbers:
    kind = array.type
    if pa.types.is_timestamp(kind):
        array = pc.divide(array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.float64()), 1000.0)
    elif pa.types.is_date(kind):
        array = array.cast(pa.timestamp("ms")).cast(pa.int64())
    numbers = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    infinite = np.isinf(numbers)
    return np.where(infinite, np.nan, numbers) if infinite.any() else numbers


def concatenated(columns: Iterable[Column]) -> Column:
    """Columns one after another."""
    parts = list(columns)
    length = sum(map(len, parts))
    numbers = _joined([c.numbers for c in parts], parts, np.nan, np.float64)
    flags = _joined([c.flags for c in parts], parts, -1, np.int8)
    index: dict[str, int] = {}
    recoded: list[Any] = []
    for c in parts:
        mapping = np.array([index.setdefault(t, len(index)) for t in c.texts] + [-1], np.int32)
        recoded.append(None if c.codes is None else mapping[c.codes])
    compounds = _joined([c.compounds for c in parts], parts, None, np.object_)
    return Column(length, numbers, _joined(recoded, parts, -1, np.int32), tuple(index), flags, compounds)


def _joined(arrays: list[Any], columns: list[Column], none: float | None, dtype: Any) -> Any:
    if all(a is None for a in arrays):
        return None
    return np.concatenate([np.full(len(c), none, dtype) if a is None else a for a, c in zip(arrays, columns, strict=True)])
