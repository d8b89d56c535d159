"""Rows that are no events: counted, and shown to who asks for them, in a column that detections leave null."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.adapters.frames import free_name
from coincide.adapters.records import MISSING_TYPE, REVERSED, missing, no_instant, too_far_ahead
from coincide.engines.ahead import Guard
from coincide.engines.spark.frame import Source
from coincide.expr.quantities import duration_text
from coincide.model.event import HEARTBEAT

REJECTED = "_rejected"
SHOWN = "shown"
"""Column of an event on its way to the state: all of its row, as it is shown if it is set aside."""
CORRUPT = "_corrupt_record"
"""Where Spark's readers of JSON leave the text of what they could not read, if the schema has such a column."""
NO_RECORD = "not JSON, or not of these types"
ROWS = "coincide_rows"
"""The observed metrics of a stream: `rows` and, of these, `rejected`."""
TIMES = "coincide_times"
"""More of them: the `earliest` and the `latest` time, and the `unit` that they were taken for."""


def is_rejected(source: Source) -> Column:
    return ~F.coalesce(source.is_event, F.lit(False))


def row_counts(source: Source) -> list[Column]:
    return [F.count(F.lit(1)).alias("rows"), F.count(F.when(is_rejected(source), 1)).alias("rejected")]


def span_of(source: Source) -> list[Column]:
    """Aggregates over all rows: the first moment, which is not that of a heartbeat, and the last."""
    begins = source.is_event & (source.type != HEARTBEAT)
    return [F.min(F.when(begins, source.hi)).alias("earliest"), F.max(F.when(source.is_event, source.hi)).alias("latest")]


def observed_rows(source: Source) -> Source:
    """Of a stream, with the metrics of its rows."""
    times = [*span_of(source), F.max(F.lit(source.mapping.unit)).alias("unit")]
    return source.observed(lambda frame: frame.observe(ROWS, *row_counts(source)).observe(TIMES, *times))


def reason(source: Source) -> Column:
    """What is wrong with a row, in the words of the readers of files."""
    names = source.original.columns
    is_corrupt = F.col(f"c{names.index(CORRUPT)}").isNotNull() if CORRUPT in names else F.lit(False)
    return (
        F.when(is_corrupt, NO_RECORD)
        .when(source.type.isNull() | (source.type == ""), MISSING_TYPE)
        .when(source.has_no_time, missing("time"))
        .when(source.lo.isNull() | source.hi.isNull(), no_instant("time"))
        .otherwise(REVERSED)
    )


def shown(source: Source, why: Column) -> Column:
    names = source.original.columns
    return shown_row(names, why, [f"c{number}" for number in range(len(names))])


def shown_row(names: Sequence[str], why: Column, own: Sequence[str] | None = None) -> Column:
    """A row that was rejected: all columns of the original (in the frame they may have names of their `own`), and the reason."""
    columns = [F.col("`" + called.replace("`", "``") + "`") for called in own or names]
    return F.struct(why.alias(free_name("reason", names)), *(c.alias(name) for c, name in zip(columns, names, strict=True)))


def shown_if_ahead(source: Source, kind: T.StructType | None, guard: Guard | None, where: Column) -> list[Column]:
    """The column SHOWN, if events that are set aside are to be shown."""
    if kind is None or guard is None:
        return []
    why = F.lit(too_far_ahead(duration_text(guard.ahead)))
    return [F.when(where, shown(source, why)).alias(SHOWN)]


def shown_type(source: Source) -> T.StructType:
    kind: T.StructType = source.frame.select(shown(source, F.lit(None).cast("string")).alias(REJECTED)).schema[REJECTED].dataType
    return kind


def with_rejected(found: DataFrame, source: Source) -> DataFrame:
    return with_rows_apart(found, source.frame.filter(is_rejected(source)), shown(source, reason(source)))


def with_rows_apart(found: DataFrame, rows: DataFrame, row: Column) -> DataFrame:
    """The frame with rows that hold what was rejected."""
    own = [field for field in found.schema.fields if field.name != REJECTED]
    nothing = [F.lit(None).cast(field.dataType) for field in own]
    rejected = rows.select(*nothing, row.alias(REJECTED))
    if len(own) == len(found.columns):
        found = found.select("*", F.lit(None).cast(rejected.schema[REJECTED].dataType).alias(REJECTED))
    return found.unionAll(rejected)
