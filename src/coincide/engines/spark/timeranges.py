"""MATCH_RECOGNIZE without PARTITION BY over a DataFrame, in ranges of time that overlap (tables/ranges.py says how).

Small jobs come first: one finds where to cut, one which rows around the cuts the ranges must read besides their own, and one,
where it matters, where the scan enters each range. The frame that is given back makes the matches, a task for each range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.adapters.mapping import DEFAULT
from coincide.detection.rowpattern.columnar import range_reasons
from coincide.engines.spark.instants import instant
from coincide.engines.spark.packing import balanced_buckets
from coincide.engines.spark.tablework import arrow_schema, plainly_named, quoted
from coincide.expr.tree import Reference
from coincide.source import SourceText
from coincide.syntax import walk
from coincide.tables.foreign import fitted_query
from coincide.tables.query import TableQuery
from coincide.tables.ranges import (
    POSITION,
    TIE,
    Entry,
    Neighbours,
    Range,
    RangeScan,
    Ways,
    entries_of,
    is_walked,
    joined,
    neighbours,
    ranges_of,
)

NUMBER, BUCKET = "__range", "__bucket"
NULLS = 2**62
"""The position of rows without a time, or its opposite: where ORDER BY puts them."""

ROWS = 50_000
"""A range has so many rows at least, and is so many times as long as WITHIN: below, more ranges do not pay."""

LENGTHS = 4


@dataclass(frozen=True)
class TableText:
    """A query as it travels to workers."""

    name: str
    text: str
    time: str | None
    steps: int
    schema: pa.Schema

    @property
    def scan(self) -> RangeScan:
        return _scan(self)


@lru_cache(maxsize=16)
def _scan(text: TableText) -> RangeScan:
    return RangeScan(
        TableQuery(fitted_query(SourceText(text.name, text.text), text.schema.names), text.schema, text.time, text.steps)
    )


def reasons_against(table: TableQuery, schema: T.StructType) -> list[str]:
    """Why all rows of a query without PARTITION BY go to one task; empty: they need not."""
    found = list(range_reasons(table.program))
    if not found and not isinstance(
        schema[table.time_column or ""].dataType, (T.TimestampType, T.TimestampNTZType, T.DateType, T.NumericType)
    ):
        found.append(f"'{table.time_column}' is neither a timestamp nor a number")
    if not found and _has_maps(schema):
        found.append("maps have no order, so rows with equal keys could stand differently in two ranges")
    return found


def _has_maps(kind: T.DataType) -> bool:
    match kind:
        case T.StructType():
            return any(_has_maps(field.dataType) for field in kind.fields)
        case T.ArrayType():
            return _has_maps(kind.elementType)
    return kind.typeName() in ("map", "variant")


class TimeRanges:
    """One query over the rows that it reads."""

    def __init__(self, rows: DataFrame, table: TableQuery, source: SourceText, result: T.StructType) -> None:
        self.table, self.program, self.result = table, table.program, result
        self.text = TableText(source.name, source.text, table.time, table.steps, arrow_schema(rows.schema))
        tie = F.xxhash64(*(F.col(quoted(name)) for name in rows.columns)).alias(TIE)
        self.rows = rows.select("*", self._position(rows).alias(POSITION), tie)

    def _position(self, rows: DataFrame) -> Column:
        """Microseconds, in the order of rows; times out of range stand before and after all others."""
        name = self.table.time_column
        assert name is not None
        column, kind = F.col(quoted(name)), rows.schema[name].dataType
        order = self.table.clause.order
        nulls = -NULLS if not order or order[0].nulls_first else NULLS
        beyond = F.lit(NULLS)
        if isinstance(kind, T.NumericType):
            beyond = F.when(column.cast("double") < 0, -NULLS).otherwise(beyond)
        return F.when(column.isNull(), nulls).otherwise(F.coalesce(instant(column, kind, DEFAULT), beyond)).cast("bigint")

    def matched(self, wanted: int | None) -> DataFrame | None:
        """None: there is too little to cut, or values that only one task can match."""
        cuts, clock = self._cuts(wanted)
        if not cuts:
            return None
        parts = ranges_of(cuts, self._neighbours(cuts), self.program)
        entries: list[Entry] | None = [Entry()] * len(parts)
        if is_walked(self.program):
            entries = self._entries(parts)
        if entries is None:
            return None
        spread = self._spread(self.rows, parts)
        matching = _Matching(self.text, parts, spread.columns, entries, clock, arrow_schema(self.result))
        return plainly_named(spread).mapInArrow(matching, self.result)

    def _cuts(self, wanted: int | None) -> tuple[list[int], int]:
        """Where ranges begin, but for the first; and how far time has come."""
        spark = self.rows.sparkSession
        most = wanted or int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
        shares = [number / most for number in range(1, most)] or [0.5]
        timed = self.rows.filter(F.abs(POSITION) < NULLS)
        quantiles = F.percentile_approx(POSITION, shares)
        count, first, last, found = timed.agg(F.count("*"), F.min(POSITION), F.max(POSITION), quantiles).collect()[0]
        if not count:
            return [], 0
        if wanted is None:
            found = self._worthwhile(found, count, first, last)
        return sorted({cut for cut in found if cut > first} if most > 1 else ()), last

    def _worthwhile(self, cuts: Sequence[int], count: int, first: int, last: int) -> list[int]:
        """Fewer cuts, where ranges would be small or mostly read the rows of others."""
        every = -(-(len(cuts) + 1) * ROWS // count)
        least, at, found = LENGTHS * (self.program.clause.within or 0), first, []
        for cut in cuts[every - 1 :: every]:
            if cut - at >= least and last - cut >= least:
                found.append(cut)
                at = cut
        return found

    def _neighbours(self, cuts: Sequence[int]) -> Neighbours:
        kind = "before array<binary>, after array<binary>"
        found = self.rows.select(POSITION).mapInArrow(_Neighbours(self.text, cuts), kind).collect()
        nobody = neighbours(np.zeros(0, np.int64), cuts, self.program)
        parts = [Neighbours(*([np.frombuffer(data, np.int64) for data in side] for side in row)) for row in found]
        return joined([nobody, *parts], self.program)

    def _entries(self, parts: Sequence[Range]) -> list[Entry] | None:
        """What conditions read is enough for this."""
        trees = [condition.test for condition in self.program.clause.conditions]
        read = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
        read |= {key.name for key in self.program.clause.order} | {self.table.time_column or "", POSITION, TIE}
        rows = self.rows.select(*(F.col(quoted(name)) for name in self.rows.columns if name in read))
        kind = "number int, fits boolean, rows bigint, ways binary"
        spread = self._spread(rows, parts[:-1])
        found = plainly_named(spread).mapInArrow(_Waying(self.text, parts, spread.columns), kind).collect()
        if not all(row.fits for row in found):
            return None
        ways = [Ways(0, *np.zeros((3, 1), np.int64))] * len(parts)
        for row in found:
            ways[row.number] = Ways(row.rows, *np.frombuffer(row.ways, np.int64).reshape(3, -1))
        return entries_of(ways)

    def _spread(self, rows: DataFrame, parts: Sequence[Range]) -> DataFrame:
        """Each range's rows in a task, with the number of the range."""
        buckets = balanced_buckets(len(parts))
        listed = [(number, bucket, part.low, part.high) for number, (part, bucket) in enumerate(zip(parts, buckets, strict=True))]
        table = rows.sparkSession.createDataFrame(listed, f"{NUMBER} int, {BUCKET} int, low bigint, high bigint")
        named = F.broadcast(table.withColumnsRenamed({"low": "__low", "high": "__high"}))
        reads = F.col(POSITION).between(F.col("__low"), F.col("__high"))
        return rows.join(named, reads).drop("__low", "__high").repartition(len(parts), BUCKET).drop(BUCKET)


def _tables(batches: Iterable[Any], columns: list[str]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each range in a task, with its number."""
    received = [batch for batch in batches if batch.num_rows]
    if not received:
        return
    table = pa.Table.from_batches(received).rename_columns(columns)
    for number in table.column(NUMBER).unique().to_pylist():
        yield number, table.filter(pa.compute.equal(table.column(NUMBER), number)).drop_columns([NUMBER])


@dataclass(frozen=True)
class _Neighbours:
    """Sent to workers: the rows around cuts."""

    text: TableText
    cuts: Sequence[int]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        program = self.text.scan.query.program
        for batch in batches:
            near = neighbours(batch.column(0).to_numpy(), self.cuts, program)
            sides = [pa.array([[place.tobytes() for place in side]], pa.list_(pa.binary())) for side in near]
            yield pa.RecordBatch.from_arrays(sides, names=["before", "after"])


@dataclass(frozen=True)
class _Waying:
    """Sent to workers: where scans go through a range."""

    text: TableText
    parts: Sequence[Range]
    columns: list[str]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for number, table in _tables(batches, self.columns):
            ways = self.text.scan.ways(table, self.parts[number])
            told = b"" if ways is None else np.stack(ways[1:]).tobytes()
            columns = [[number], [ways is not None], [0 if ways is None else ways.rows], [told]]
            kinds = [pa.int32(), pa.bool_(), pa.int64(), pa.binary()]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=["number", "fits", "rows", "ways"])


@dataclass(frozen=True)
class _Matching:
    """Sent to workers: the matches of a range. One that the scan does not reach has no entry."""

    text: TableText
    parts: Sequence[Range]
    columns: list[str]
    entries: Sequence[Entry]
    clock: int
    result: pa.Schema

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for number, table in _tables(batches, self.columns):
            if number < len(self.entries):
                made = self.text.scan.run(table, self.parts[number], self.entries[number], self.clock)
                yield from made.cast(self.result, safe=False).to_batches()
