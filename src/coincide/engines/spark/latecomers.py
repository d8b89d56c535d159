"""Events that came too late, in the same frame as the detections: a struct in a column that detections leave null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engines.spark.frame import Source
from coincide.engines.spark.rejects import REJECTED
from coincide.engines.spark.values import MOMENT, TIME, arrow_kind, kind_of, spark_kind, spark_time, values
from coincide.errors import CoincideError
from coincide.model.table import SPACE, EventTable

LATE = "_late"


@dataclass(frozen=True)
class LateShape:
    """What is kept of late events: the envelope, and attributes with their kinds."""

    attributes: tuple[tuple[str, str | None], ...]
    compounds: bool = False
    space: bool = False

    def spark(self) -> T.StructType:
        fields = [
            T.StructField("type", T.StringType()),
            T.StructField("time", spark_time()),
            T.StructField("id", T.StringType()),
            T.StructField("source", T.StringType()),
            T.StructField("arrival", T.TimestampType()),
            T.StructField("policies", T.ArrayType(T.StringType())),
            *([T.StructField("space", _space())] if self.space else []),
            *(T.StructField(name, spark_kind(kind, self.compounds)) for name, kind in self.attributes),
        ]
        return T.StructType(fields)

    def arrow(self) -> pa.StructType:
        envelope = [("type", pa.string()), ("time", TIME), ("id", pa.string()), ("source", pa.string()), ("arrival", MOMENT)]
        attributes = [(name, arrow_kind(kind, self.compounds)) for name, kind in self.attributes]
        space = [("space", SPACE)] if self.space else []
        return pa.struct([*envelope, ("policies", pa.list_(pa.string())), *space, *attributes])

    def structs(self, table: EventTable, policies: Sequence[Sequence[str]] | None = None) -> pa.StructArray:
        """Late events, with the policies under which they are."""
        size = len(table)
        moments = [pa.array(ends).cast(MOMENT) for ends in (table.lo, table.hi)]
        arrival = table.fields.get("arrival", pa.nulls(size)).cast(pa.int64()).cast(MOMENT)
        columns = [
            table.fields["type"].cast(pa.string()),
            pa.StructArray.from_arrays(moments, fields=list(TIME)),
            table.fields["id"].cast(pa.string()),
            table.fields.get("source", pa.nulls(size)).cast(pa.string()),
            arrival,
            pa.array([None] * size if policies is None else policies, pa.list_(pa.string())),
            *([table.fields.get("space", pa.nulls(size)).cast(SPACE)] if self.space else []),
            *(values(name, table.column(name), kind, arrow_kind(kind, self.compounds)) for name, kind in self.attributes),
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow()))


def late_shape(source: Source) -> LateShape:
    """All columns that can serve as attributes."""
    several = source.several
    given = {name: None if name in several else kind_of(source, name) for name in source.attributes}
    return LateShape(tuple(given.items()), bool(several), source.space is not None)


def _space() -> T.StructType:
    return T.StructType([T.StructField(f.name, T.StringType() if f.name == "zone" else T.DoubleType()) for f in SPACE])


def split(found: DataFrame) -> tuple[DataFrame, ...]:
    """The detections; then, of a frame that was made with `late=True`, the events that came too late; then, with `rejects=True`,
    the rows that were no events. Also of a micro-batch."""
    apart = [name for name in (LATE, REJECTED) if name in found.columns]
    if not apart:
        raise CoincideError("there is nothing to split: detect(…, late=True), or rejects=True")
    detections = reduce(DataFrame.filter, (F.col(name).isNull() for name in apart), found).drop(*apart)
    return detections, *(found.filter(F.col(name).isNotNull()).select(f"{name}.*") for name in apart)
