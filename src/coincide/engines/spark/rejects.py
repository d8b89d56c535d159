"""Rows that are no events: counted, and shown to who asks for them, in a column that detections leave null."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coincide.adapters.frames import free_name
from coincide.adapters.records import MISSING_TYPE, REVERSED, missing, no_instant
from coincide.engines.spark.frame import Source

REJECTED = "_rejected"
ROWS = "coincide_rows"
"""The observed metrics of a stream: `rows` and, of these, `rejected`."""


def is_rejected(source: Source) -> Column:
    return ~F.coalesce(source.is_event, F.lit(False))


def row_counts(source: Source) -> list[Column]:
    return [F.count(F.lit(1)).alias("rows"), F.count(F.when(is_rejected(source), 1)).alias("rejected")]


def reason(source: Source) -> Column:
    """What is wrong with a row, in the words of the readers of files."""
    return (
        F.when(source.type.isNull() | (source.type == ""), MISSING_TYPE)
        .when(source.has_no_time, missing("time"))
        .when(source.lo.isNull() | source.hi.isNull(), no_instant("time"))
        .otherwise(REVERSED)
    )


def with_rejected(found: DataFrame, source: Source) -> DataFrame:
    """The frame with rows that hold what was rejected: all columns of the original, and the reason."""
    names = source.original.columns
    columns = [F.col(f"c{number}").alias(name) for number, name in enumerate(names)]
    whole = F.struct(reason(source).alias(free_name("reason", names)), *columns)
    nothing = [F.lit(None).cast(field.dataType) for field in found.schema.fields]
    rejected = source.frame.filter(is_rejected(source)).select(*nothing, whole.alias(REJECTED))
    return found.select("*", F.lit(None).cast(rejected.schema[REJECTED].dataType).alias(REJECTED)).unionAll(rejected)
