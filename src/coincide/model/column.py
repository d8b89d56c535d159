"""One attribute over the rows of a batch, as arrays that kernels can read.

A value is a number, a text, a boolean or null, and a column may mix them. So a column has up to three *parts*, each with
its own way to say "none here"; at most one part has something in a row. A plain column has one part. Sets, ranges and lists
are a part of their own; the value of a set of one stands in its part too.

Numbers are doubles. Where some are whole numbers that no double is equal to, the column has their `rests` as well, and whoever
compares numbers looks at both (numbers.py)."""

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
from coincide.model.numbers import EXACT, MOST, is_number, rest_of

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.int8]
Rows = npt.NDArray[np.int64]
Compounds = npt.NDArray[np.object_]
Rests = npt.NDArray[np.int16]

MIXED = pa.struct([("number", pa.float64()), ("text", pa.string()), ("flag", pa.bool_())])
"""A column of mixed types in Arrow, Parquet and Spark: a struct with at most one field that is not null."""

FEW = 16
"""So many texts are looked for one by one faster than rows are sorted by them."""
SPARSE = 16
"""With so many times more texts than rows, sorting the rows costs less than marking the texts."""

COMPOUNDS = {ValueSet, ValueRange, ValueList}

COMPOUND = pa.struct([*MIXED, ("compound", pa.binary())])
"""The same where some values are sets or ranges, or whole numbers that no double is equal to."""

BEYOND = float(MOST)
"""The double nearest to the largest whole number of 64 bits: one more."""

_decode_compound = msgspec.msgpack.Decoder(Several | int).decode


@dataclass(frozen=True, eq=False)
class Column:
    length: int
    numbers: Numbers | None = None  # nan: none here
    codes: Codes | None = None  # -1: none here; otherwise an index into texts
    texts: tuple[str, ...] = ()  # distinct
    flags: Flags | None = None  # -1: none here; 0 false, 1 true
    compounds: Compounds | None = None  # None: none here; sets and ranges, which only CDL reads: to all others they are null
    rests: Rests | None = None  # what numbers are more than their doubles; None: nothing anywhere

    def __len__(self) -> int:
        return self.length

    def value(self, row: int) -> Value:
        if self.compounds is not None and (compound := self.compounds[row]) is not None:
            several: Several = compound
            return several
        if self.numbers is not None and (number := float(self.numbers[row])) == number:
            rest = 0 if self.rests is None else int(self.rests[row])
            return int(number) + rest if rest else number
        if self.codes is not None and (code := int(self.codes[row])) >= 0:
            return self.texts[code]
        if self.flags is not None and (flag := int(self.flags[row])) >= 0:
            return bool(flag)
        return None

    def values(self) -> list[Value]:
        """All of them, at once where they are of one type."""
        if self.compounds is None and self.flags is None and self.rests is None and not self.is_null.any():
            if self.codes is None and self.numbers is not None:
                numbers: list[Value] = self.numbers.tolist()
                return numbers
            if self.numbers is None and self.codes is not None:
                return [self.texts[code] for code in self.codes.tolist()]
        return [self.value(row) for row in range(self.length)]

    @property
    def singles(self) -> Column:
        """As languages see it that know nothing of several values."""
        return self if self.compounds is None else replace(self, compounds=None)

    @property
    def is_numeric(self) -> bool:
        """Is whatever is not null a number, and its double all of it?"""
        others = ((self.codes, -1), (self.flags, -1), (self.rests, 0))
        return all(some is None or bool((some == none).all()) for some, none in others)

    def take(self, rows: Rows) -> Column:
        numbers = None if self.numbers is None else self.numbers[rows]
        codes = None if self.codes is None else self.codes[rows]
        flags = None if self.flags is None else self.flags[rows]
        compounds = None if self.compounds is None else self.compounds[rows]
        rests = None if self.rests is None else self.rests[rows]
        return Column(len(rows), numbers, codes, self.texts, flags, compounds, rests)

    def first(self, length: int) -> Column:
        """So many rows, without a copy."""
        if length == self.length:
            return self
        numbers = None if self.numbers is None else self.numbers[:length]
        codes = None if self.codes is None else self.codes[:length]
        flags = None if self.flags is None else self.flags[:length]
        compounds = None if self.compounds is None else self.compounds[:length]
        rests = None if self.rests is None else self.rests[:length]
        return Column(length, numbers, codes, self.texts, flags, compounds, rests)

    def compact(self) -> Column:
        """Without texts that no row has, where there are more texts than rows."""
        if self.codes is None or len(self.texts) <= len(self):
            return self
        if len(self.texts) > SPARSE * len(self):
            ordered = np.sort(self.codes)
            used = ordered[np.append(ordered[:-1] != ordered[1:], True) & (ordered >= 0)]
            codes = np.where(self.codes < 0, -1, np.searchsorted(used, self.codes)).astype(np.int32)
        else:
            number = np.full(len(self.texts) + 1, -1, np.int32)
            number[self.codes] = 0
            number[-1] = -1
            used = np.flatnonzero(number == 0).astype(np.int32)
            number[used] = np.arange(len(used))
            codes = number[self.codes]
        return replace(self, codes=codes, texts=tuple([self.texts[code] for code in used.tolist()]))

    def by_text(self) -> dict[str, Rows]:
        """The rows of each text that there is, in order."""
        codes = self.codes if self.codes is not None else np.full(len(self), -1)
        if len(self.texts) <= FEW:
            found = {text: np.flatnonzero(codes == code) for code, text in enumerate(self.texts)}
            return {text: rows for text, rows in found.items() if len(rows)}
        few = len(self.texts) < 1 << 15
        order = np.argsort(codes.astype(np.int16) if few else codes, kind="stable")  # radix sort for 16 bits
        ends = np.searchsorted(codes[order], np.arange(len(self.texts) + 1)).tolist()
        parts = zip(self.texts, ends[:-1], ends[1:], strict=True)
        return {text: order[start:end] for text, start, end in parts if end > start}

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
        if self.rests is not None and self.rests.any():
            return self._exact_arrow()
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

    def _exact_arrow(self) -> pa.Array:
        """Whole numbers of 64 bits if there is nothing else, otherwise COMPOUND."""
        assert self.numbers is not None
        assert self.rests is not None
        wholes = None if self.codes is not None or self.flags is not None or self.compounds is not None else self.wholes
        if wholes is not None:
            return pa.array(wholes, mask=np.isnan(self.numbers))
        return replace(self, rests=None, compounds=self.several).to_arrow()

    @property
    def several(self) -> Compounds | None:
        """Sets and ranges, and whole numbers that no double is equal to: what the parts of MIXED have no room for."""
        if self.rests is None:
            return self.compounds
        several = _objects([None] * self.length) if self.compounds is None else self.compounds.copy()
        for row in np.flatnonzero(self.rests).tolist():
            if several[row] is None:  # the member of a set stands in the set
                several[row] = self.value(row)
        return several

    @property
    def wholes(self) -> npt.NDArray[np.int64] | None:
        """The numbers as whole numbers of 64 bits, 0 where there are none; None: some are no such numbers."""
        assert self.numbers is not None
        there = np.where(np.isnan(self.numbers), 0.0, self.numbers)
        rests = np.zeros(self.length, np.int64) if self.rests is None else self.rests.astype(np.int64)
        top = there == BEYOND
        if (np.floor(there) != there).any() or (np.abs(there) > BEYOND).any() or (top & (rests >= 0)).any():
            return None
        return np.where(top, MOST + (np.where(top, rests, -1) + 1), np.where(top, 0.0, there).astype(np.int64) + rests)


def column_of(values: Sequence[Value]) -> Column:
    """A column of plain values. What is in a set of one stands in its own part as well, where most languages look."""
    kinds = {*map(type, values)}
    if kinds == {float}:
        return Column(len(values), np.array(values, np.float64))
    compounds = _objects([v if isinstance(v, Several) else None for v in values]) if kinds & COMPOUNDS else None
    if compounds is not None:
        values = [single(v) for v in values]
        kinds = {type(v) for v in values}
    numbers, rests = _numbers_of(values, kinds)
    flags = np.array([v if type(v) is bool else -1 for v in values], np.int8) if bool in kinds else None
    if str not in kinds:
        return Column(len(values), numbers, None, (), flags, compounds, rests)
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(v, len(index)) if isinstance(v, str) else -1 for v in values], np.int32)
    return Column(len(values), numbers, codes, tuple(index), flags, compounds, rests)


def _numbers_of(values: Sequence[Value], kinds: set[type]) -> tuple[Numbers | None, Rests | None]:
    if int not in kinds:
        found = np.array([v if type(v) is float else np.nan for v in values], np.float64) if float in kinds else None
        return found, None
    numbers = np.array([float(v) if is_number(v) else np.nan for v in values], np.float64)
    return numbers, np.array([rest_of(v) if is_number(v) else 0 for v in values], np.int16)


def _objects(values: Sequence[object]) -> Compounds:
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
        column = Column(len(array), number.numbers, text.codes, text.texts, flag.flags)
        return column if kind == MIXED else _with_several(column, [d and _decode_compound(d) for d in array.field(3).to_pylist()])
    if pa.types.is_boolean(kind):
        return Column(len(array), flags=array.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _coded(array)
    if pa.types.is_integer(kind) and kind.bit_width == 64:
        return _whole_numbers(array)
    return Column(len(array), numbers=_numbers(array))


def _with_several(column: Column, found: Sequence[Several | int | None]) -> Column:
    """What stands in the part of sets and ranges."""
    wholes = [row for row, value in enumerate(found) if type(value) is int]
    several = _objects([None if type(value) is int else value for value in found])
    compounds = several if any(value is not None for value in several) or not wholes else None
    members = [row for row, value in enumerate(several) if type(single(value)) is int]
    if not wholes and not members:
        return replace(column, compounds=compounds)
    assert column.numbers is not None
    rests = np.zeros(len(column), np.int16)
    rests[wholes] = [rest_of(found[row]) for row in wholes]  # type: ignore[arg-type]
    rests[members] = [rest_of(single(several[row])) for row in members]  # type: ignore[arg-type]
    return replace(column, compounds=compounds, rests=rests)


def _whole_numbers(array: pa.Array) -> Column:
    numbers = _numbers(array)
    return Column(len(array), numbers=numbers, rests=_rests(array, numbers))


def _rests(array: pa.Array, numbers: Numbers) -> Rests | None:
    """What whole numbers are more than their doubles; None: nothing, or they have more than 64 bits."""
    least, most = pc.min_max(array).values()
    if (most.as_py() or 0) <= EXACT and (least.as_py() or 0) >= -EXACT:
        return None
    wholes = array.fill_null(0).to_numpy(zero_copy_only=False)
    if wholes.dtype == np.uint64:
        large = wholes > np.uint64(MOST)
        wholes = np.where(large, 0, wholes).astype(np.int64)  # 0, as its double, whatever that is, is all there is of it
    else:
        large = np.zeros(len(wholes), np.bool_)
    there = np.where(np.isnan(numbers) | large, 0.0, numbers)
    top = there == BEYOND
    back = np.where(top, 0.0, there).astype(np.int64)
    rests = np.where(top, (wholes - MOST) - 1, wholes - back).astype(np.int16)
    return rests if rests.any() else None


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
    array = array.cast(pa.float64(), safe=False)
    numbers = (array.fill_null(np.nan) if array.null_count else array).to_numpy(zero_copy_only=False)
    infinite = np.isinf(numbers)
    return np.where(infinite, np.nan, numbers) if infinite.any() else numbers


def concatenated(columns: Iterable[Column]) -> Column:
    """Columns one after another."""
    parts = list(columns)
    if len(parts) == 1:
        return parts[0]
    length = sum(map(len, parts))
    numbers = _joined([c.numbers for c in parts], parts, np.nan, np.float64)
    rests = _joined([c.rests for c in parts], parts, 0, np.int16)
    flags = _joined([c.flags for c in parts], parts, -1, np.int8)
    index: dict[str, int] = {}
    recoded: list[Any] = []
    for c in parts:
        mapping = np.array([index.setdefault(t, len(index)) for t in c.texts] + [-1], np.int32)
        recoded.append(None if c.codes is None else mapping[c.codes])
    compounds = _joined([c.compounds for c in parts], parts, None, np.object_)
    return Column(length, numbers, _joined(recoded, parts, -1, np.int32), tuple(index), flags, compounds, rests)


def _joined(arrays: list[Any], columns: list[Column], none: float | None, dtype: Any) -> Any:
    if all(a is None for a in arrays):
        return None
    return np.concatenate([np.full(len(c), none, dtype) if a is None else a for a, c in zip(arrays, columns, strict=True)])
