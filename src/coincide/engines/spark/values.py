"""Values and instants as they stand in resulting DataFrames: kinds of expressions as types of Spark and of Arrow."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from coincide.engines.spark.frame import COMPOUND, MIXED, Source
from coincide.expr.functions import BOOLEAN, NUMBER, TEXT
from coincide.model.column import COMPOUND as ARROW_COMPOUND
from coincide.model.column import MIXED as ARROW_MIXED
from coincide.model.column import Column

MOMENT = pa.timestamp("us", "UTC")
TIME = pa.struct([("lo", MOMENT), ("hi", MOMENT)])
WHOLE = "whole number"
"""The kind of numbers that are handed on as a column of whole numbers has them."""
ARROW_KINDS: dict[str | None, pa.DataType] = {
    NUMBER: pa.float64(),
    WHOLE: pa.int64(),
    TEXT: pa.string(),
    BOOLEAN: pa.bool_(),
    None: ARROW_MIXED,
}
SPARK_KINDS: dict[str | None, T.DataType] = {
    NUMBER: T.DoubleType(),
    WHOLE: T.LongType(),
    TEXT: T.StringType(),
    BOOLEAN: T.BooleanType(),
    None: MIXED,
}
SEVERAL = "set or range"


def kind_of(source: Source, name: str) -> str | None:
    """The kind of a field of events."""
    return WHOLE if source.is_whole(name) else source.kind(name)


def spark_time() -> T.StructType:
    return T.StructType([T.StructField("lo", T.TimestampType()), T.StructField("hi", T.TimestampType())])


def spark_kind(kind: str | None, compounds: bool) -> T.DataType:
    return COMPOUND if kind is None and compounds else SPARK_KINDS[kind]


def arrow_kind(kind: str | None, compounds: bool) -> pa.DataType:
    return ARROW_COMPOUND if kind is None and compounds else ARROW_KINDS[kind]


def values(name: str, column: Column, kind: str | None, wanted: pa.DataType) -> pa.Array:
    if kind is None and wanted == ARROW_COMPOUND:
        parts = _parts(column, column.several)
        return pa.StructArray.from_arrays(list(parts.values()), fields=list(wanted), mask=_nothing(column))
    parts = _parts(column, column.compounds)
    for other, part in parts.items():
        unforeseen = other == SEVERAL if kind is None else other != (NUMBER if kind == WHOLE else kind)
        if unforeseen and part.null_count < len(part):
            raise RuntimeError(f"attribute '{name}' was inferred to be a {kind or 'single value'} and is a {other}")
    if kind == WHOLE:
        return _whole_numbers(name, column)
    if kind is not None:
        return parts[kind]
    del parts[SEVERAL]
    return pa.StructArray.from_arrays(list(parts.values()), fields=list(wanted), mask=_nothing(column))


def _whole_numbers(name: str, column: Column) -> pa.Array:
    if column.numbers is None:
        return pa.nulls(len(column), pa.int64())
    if (wholes := column.wholes) is None:
        raise RuntimeError(f"attribute '{name}' was inferred to be a {WHOLE} and is none")
    return pa.array(wholes, mask=np.isnan(column.numbers))


def _nothing(column: Column) -> pa.Array:
    """Where there is no value, not even a set or range."""
    null = column.is_null
    return pa.array(null if column.compounds is None else null & (column.compounds == None))  # noqa: E711


def _parts(column: Column, compounds: Any) -> dict[str, pa.Array]:
    """In the order of the struct's fields."""
    size = len(column)
    numbers, flags = column.numbers, column.flags
    return {
        NUMBER: pa.nulls(size, pa.float64()) if numbers is None else pa.array(numbers, pa.float64(), from_pandas=True),
        TEXT: pa.nulls(size, pa.string()) if column.codes is None else _texts(column),
        BOOLEAN: pa.nulls(size, pa.bool_()) if flags is None else pa.array(flags == 1, mask=flags < 0),
        SEVERAL: pa.nulls(size, pa.binary()) if compounds is None else pa.array(_encoded(compounds), pa.binary()),
    }


def _encoded(compounds: Any) -> list[bytes | None]:
    return [None if compound is None else msgspec.msgpack.encode(compound) for compound in compounds]


def _texts(column: Column) -> pa.Array:
    assert column.codes is not None
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.texts, pa.string())).cast(pa.string())
