"""Values and instants as they stand in resulting DataFrames: kinds of expressions as types of Spark and of Arrow."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import types as T

from coincide.engines.spark.frame import COMPOUND, MIXED
from coincide.expr.functions import BOOLEAN, NUMBER, TEXT
from coincide.model.column import COMPOUND as ARROW_COMPOUND
from coincide.model.column import MIXED as ARROW_MIXED
from coincide.model.column import Column

MOMENT = pa.timestamp("us", "UTC")
TIME = pa.struct([("lo", MOMENT), ("hi", MOMENT)])
ARROW_KINDS = {NUMBER: pa.float64(), TEXT: pa.string(), BOOLEAN: pa.bool_(), None: ARROW_MIXED}
SPARK_KINDS: dict[str | None, T.DataType] = {
    NUMBER: T.DoubleType(),
    TEXT: T.StringType(),
    BOOLEAN: T.BooleanType(),
    None: MIXED,
}
SEVERAL = "set or range"


def spark_time() -> T.StructType:
    return T.StructType([T.StructField("lo", T.TimestampType()), T.StructField("hi", T.TimestampType())])


def spark_kind(kind: str | None, compounds: bool) -> T.DataType:
    return COMPOUND if kind is None and compounds else SPARK_KINDS[kind]


def arrow_kind(kind: str | None, compounds: bool) -> pa.DataType:
    return ARROW_COMPOUND if kind is None and compounds else ARROW_KINDS[kind]


def values(name: str, column: Column, kind: str | None, wanted: pa.DataType) -> pa.Array:
    parts = _parts(column)
    if kind is None and len(wanted) == len(parts):
        return pa.StructArray.from_arrays(list(parts.values()), fields=list(wanted), mask=_nothing(column))
    for other, part in parts.items():
        if other != kind and (kind is not None or other == SEVERAL) and part.null_count < len(part):
            raise RuntimeError(f"attribute '{name}' was inferred to be a {kind or 'single value'} and is a {other}")
    if kind is not None:
        return parts[kind]
    del parts[SEVERAL]
    return pa.StructArray.from_arrays(list(parts.values()), fields=list(wanted), mask=_nothing(column))


def _nothing(column: Column) -> pa.Array:
    """Where there is no value, not even a set or range."""
    null = column.is_null
    return pa.array(null if column.compounds is None else null & (column.compounds == None))  # noqa: E711


def _parts(column: Column) -> dict[str, pa.Array]:
    """In the order of the struct's fields."""
    size = len(column)
    numbers, flags, compounds = column.numbers, column.flags, column.compounds
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
