"""Columns of instants in Spark: whatever a `time` column holds, as microseconds since the epoch.

What is no instant, or one out of range, becomes null; rows without a time are dropped by whoever asks. The session's time
zone plays no part: texts and timestamps without a zone are UTC."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.adapters.mapping import FieldMapping
from coincide.errors import InputError
from coincide.model.stamp import LIMIT

DAY = 86_400_000_000
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"


def interval(column: Column, kind: T.DataType, mapping: FieldMapping) -> tuple[Column, Column]:
    """lo and hi; the same column twice if the type holds points only."""
    if isinstance(kind, T.ArrayType):
        pair = F.when(F.size(column) == 2, column)
        lo, hi = (instant(F.get(pair, end), kind.elementType, mapping) for end in (0, 1))
        return lo, hi
    if isinstance(kind, T.StructType):
        if {"lo", "hi"} <= set(kind.fieldNames()):
            return instant(column["lo"], kind["lo"].dataType, mapping), instant(column["hi"], kind["hi"].dataType, mapping)
        raise InputError("a time column that is a struct must have the fields lo and hi")
    point = instant(column, kind, mapping)
    return point, point


def instant(column: Column, kind: T.DataType, mapping: FieldMapping) -> Column:
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_diff("MICROSECOND", F.expr("timestamp_ntz'1970-01-01 00:00:00'"), column)
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("bigint") * DAY
    if isinstance(kind, T.IntegralType):
        return _whole(column.cast("bigint"), mapping)
    if isinstance(kind, (T.FractionalType, T.DecimalType)):
        return _fractional(column.cast("double"), mapping)
    if isinstance(kind, T.StringType):
        return F.unix_micros(_parsed(column))
    raise InputError(f"a time column cannot be of type {kind.simpleString()}")


def _whole(number: Column, mapping: FieldMapping) -> Column:
    if not mapping.per_unit:  # nanoseconds: down to the microsecond
        return F.call_function("div", number - F.pmod(number, F.lit(1000)), F.lit(1000))
    bound = LIMIT // mapping.per_unit
    return F.when(number.between(-bound, bound), number * mapping.per_unit if mapping.per_unit > 1 else number)


def _fractional(number: Column, mapping: FieldMapping) -> Column:
    scaled = F.rint(number * mapping.per_unit) if mapping.per_unit else F.floor(number / 1000).cast("double")
    return F.when(F.abs(scaled) <= float(LIMIT), scaled).cast("bigint")


def _parsed(text: Column) -> Column:
    """ISO-8601 as Python reads it, but for the spellings without separators. Spark would read no zone as the session's."""
    spelt = F.when(text.rlike(_ISO), F.regexp_replace(text, ",", "."))
    coloned = F.regexp_replace(spelt, r"(:\d\d(?:\.\d+)?[+-]\d\d)(\d\d)$", "$1:$2")
    whole = F.when(F.length(coloned) == 10, F.concat(coloned, F.lit("T00:00:00"))).otherwise(coloned)
    zoned = F.when(whole.rlike(r"(Z|[+-]\d\d(:\d\d)?)$"), whole).otherwise(F.concat(whole, F.lit("Z")))
    return zoned.try_cast("timestamp")
