"""One DataFrame for each type of detections, with the columns of that type alone.

Which columns those are is written into the schema, as metadata of the column `type`: it survives filters, unions and files of
Parquet, and no job has to be run to find it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engines.spark.frame import COMPOUND, MIXED
from coincide.engines.spark.latecomers import LATE
from coincide.engines.spark.rejects import REJECTED
from coincide.engines.spark.values import WHOLE
from coincide.errors import CoincideError, Diagnostic
from coincide.expr.functions import BOOLEAN, NUMBER, TEXT

TYPES = "coincide types"
PARTS = {NUMBER: "number", WHOLE: "number", TEXT: "text", BOOLEAN: "flag"}
"""Fields of a column of several types."""

Types = tuple[tuple[str, tuple[tuple[str, str | None], ...]], ...]


def metadata(types: Types) -> dict[str, Any]:
    return {TYPES: {kind: {name: of or "" for name, of in attributes} for kind, attributes in types}}


def by_type(found: DataFrame) -> dict[str, DataFrame]:
    """The detections of each type that the rules can make. An attribute of a certain type is a plain column there, also where
    other types of detections have one of that name and of another type."""
    fields = found.schema.fields
    types: dict[str, dict[str, str]] | None = next((f.metadata.get(TYPES) for f in fields if f.name == "type"), None)
    if types is None:
        hint = "give the frame that coincide.spark.detect made, or one whose columns are its columns"
        raise CoincideError(Diagnostic("the schema does not tell which columns belong to which type", hint=hint))
    numbered = found.toDF(*(f"c{number}" for number in range(len(fields))))
    others = {name for own in types.values() for name in own} | {LATE, REJECTED}
    place = [f.name for f in fields].index("type")
    return {
        kind: numbered.filter(F.col(f"c{place}") == kind).select(
            *(_column(number, f, own) for number, f in enumerate(fields) if f.name in own or f.name not in others)
        )
        for kind, own in types.items()
    }


def _column(number: int, field: T.StructField, kinds: dict[str, str]) -> Column:
    column = F.col(f"c{number}")
    kind = kinds.get(field.name)
    if kind and field.dataType in (MIXED, COMPOUND):
        column = column[PARTS[kind]]
        column = column.cast("bigint") if kind == WHOLE else column
    return column.alias(field.name)
