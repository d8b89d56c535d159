"""MATCH_RECOGNIZE over a streaming DataFrame: the buckets, reorder buffer and pages that rules have, with plain rows in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import missing, out_of_range, too_far_ahead
from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.instants import instant
from coincide.engines.spark.packing import PACKED, Packing, Road, balanced_buckets
from coincide.engines.spark.rejects import REJECTED, SHOWN, shown_row, with_rows_apart
from coincide.engines.spark.stateful import Keeper, Processor, stepped
from coincide.engines.spark.streaming import BUCKETS, PAGES, want_rocksdb
from coincide.engines.spark.timing import BELIEVED, Timing, guarded, parse_delay
from coincide.errors import Diagnostic, RuleError
from coincide.expr.quantities import duration_text
from coincide.lang.matchrecognize.parse import parse_query
from coincide.source import SourceText
from coincide.tables.chain import Scanning, chained
from coincide.tables.foreign import fitted_query
from coincide.tables.names import fitted
from coincide.tables.query import TableQuery
from coincide.tables.scan import TableScan

WATERMARK = "spark.watermarkDelayMs"
"""In the metadata of the column that Spark's withWatermark names."""

DELAY = "10 seconds"
MATCHING = "match_recognize_"
"""Before the digest of a query, in the name of its metrics; those of its rows end in `_rows`."""

GROUP = "query"
"""A query is all that there is in its stream."""


@dataclass(frozen=True)
class Options:
    """Those of `match_recognize`."""

    time: str | None = None
    steps: int = STEPS
    delay: str | None = None
    buckets: int | None = None
    pages: int | None = None
    ranges: int | None = None
    ahead: str | None = None
    rejects: bool = False


@dataclass(frozen=True)
class TableTask:
    """What a worker must know of a query: it travels as text, with the schema of its rows and of what comes of them. `later` are
    the texts of queries that read its matches, each those of the one before."""

    name: str
    text: str
    time: str
    steps: int
    schema: pa.Schema
    result: pa.Schema
    later: tuple[str, ...] = ()

    @property
    def layout(self) -> Layout:
        return Layout(("hi", *(f".{name}" for name in self.schema.names)))

    # What a bucket asks for (bucket.py)

    @property
    def graph(self) -> Scanning:
        return _scan(self.name, self.text, self.time, self.steps, self.schema, self.later)

    @property
    def shows_late(self) -> bool:
        return False

    def rules(self) -> bytes:
        schema = self.schema.serialize().to_pybytes()
        return msgspec.msgpack.encode([self.name, self.text, self.time, self.steps, schema, *self.later])

    def graph_of_rules(self, data: bytes) -> Scanning:
        name, text, time, steps, schema, *later = msgspec.msgpack.decode(data, type=list[Any])
        return _scan(name, text, time, steps, pa.ipc.read_schema(pa.BufferReader(schema)), tuple(later))

    def order(self, table: pa.Table) -> Any:
        return np.argsort(table.column("hi").to_numpy(), kind="stable")

    def check_waiting(self, table: pa.Table) -> None:
        """Any rows with a time may wait."""

    def batch(self, table: pa.Table | None) -> pa.Table:
        if table is None:
            return self.schema.empty_table()
        own = table.drop_columns([name for name in table.column_names if not name.startswith(".")])
        return _filled(own.rename_columns([name[1:] for name in own.column_names]), self.schema)  # a new column: nulls

    def logged(self, table: pa.Table) -> pa.Table:
        return self.batch(table)

    def leaving(self, made: list[pa.Table]) -> Iterator[Any]:
        """No query of another stage reads its matches."""
        return iter(())

    def rows(self, made: list[pa.Table], late: Any, set_aside: Any = None) -> list[pa.RecordBatch]:
        tables = [*made, *([] if set_aside is None else [pa.table({REJECTED: set_aside})])]
        whole = pa.concat_tables([self.result.empty_table(), *(_filled(table, self.result) for table in tables)])
        return whole.combine_chunks().to_batches() if len(whole) else []


@lru_cache(maxsize=16)
def _scan(name: str, text: str, time: str, steps: int, schema: pa.Schema, later: tuple[str, ...]) -> Scanning:
    scan: Scanning = TableScan(TableQuery(fitted_query(SourceText(name, text), schema.names), schema, time, steps))
    for query in later:
        known = scan.query.output
        scan = chained(scan, TableQuery(fitted(parse_query(SourceText(name, query)), known.names), known, None, steps))
    return scan


@dataclass(frozen=True)
class TableStream:
    """One query over one stream, and how its state is divided. `shown` are the columns of rows that are rejected, if they are to
    be shown."""

    frame: DataFrame
    task: TableTask
    keys: tuple[str, ...]
    timed: bool
    timing: Timing
    buckets: int
    pages: int
    shown: tuple[str, ...] | None = None

    @property
    def division(self) -> Division:
        return Division([*self.keys], self.buckets, self.pages)

    @property
    def keeper(self) -> Keeper:
        return Keeper(self.task, self.timed, self.division)

    @property
    def result(self) -> T.StructType:
        return from_arrow_schema(self.task.result)

    def matched(self) -> DataFrame:
        want_rocksdb(self.frame.sparkSession)
        layout, buckets = self.task.layout, balanced_buckets(self.buckets, GROUP)
        packing = Packing(layout, (Road(GROUP, layout, buckets),), guard=self.timing.guard)
        packed = self._rows().mapInArrow(packing, PACKED)
        found = stepped(packed, [Processor({GROUP: self.keeper}, self.timing)], self.result, self._name)
        return found if self.shown is None else with_rows_apart(found, *without_time(self.frame, self.task.time, self.shown))

    @property
    def _name(self) -> str:
        """Of what the progress of a query tells."""
        return f"{MATCHING}{blake2b(self.task.rules(), digest_size=4).hexdigest()}"

    def read_by(self, query: SourceText) -> TableStream:
        """The stream of a query over this one's matches: both run in one task."""
        texts = (*self.task.later, query.text)
        found = _scan(self.task.name, self.task.text, self.task.time, self.task.steps, self.task.schema, texts).query
        task = replace(self.task, later=texts, result=_bare(found.output))
        return replace(self, task=task, keys=(), timed=self.timed or found.clause.within is not None, buckets=1, pages=1)

    @property
    def before(self) -> str:
        """The name of the matches that the last query reads."""
        return _scan(
            self.task.name, self.task.text, self.task.time, self.task.steps, self.task.schema, self.task.later[:-1]
        ).query.query.name

    def _rows(self) -> DataFrame:
        """Rows with their time, and the numbers of their page and bucket. A row without a time never has its turn."""
        hi = self._hi().alias("w0")
        columns = [F.col(quoted(name)).alias(f"w{n}") for n, name in enumerate(self.task.schema.names, 1)]
        spread = F.xxhash64(*key_columns(self.frame, self.keys))
        page = F.pmod(F.shiftright(spread, 32), F.lit(self.pages)).cast("int")
        bucket = F.pmod(spread, F.lit(self.buckets)).cast("int")
        closing = F.lit(None).cast("bigint")
        places = (page.alias("page0"), bucket.alias("bucket0"), closing.alias("closing"), self.timing.wall().alias("wall"))
        rows = self.frame.select(hi, *columns, *self._set_aside(), *places)
        counts = F.count(F.lit(1)).alias("rows"), F.count(F.when(F.col("w0").isNull(), 1)).alias("rejected")
        return rows.observe(f"{self._name}_rows", *counts).filter(F.col("w0").isNotNull())

    def _hi(self) -> Column:
        return instant(F.col(quoted(self.task.time)), self.frame.schema[self.task.time].dataType, DEFAULT)

    def _set_aside(self) -> list[Column]:
        """The column SHOWN, if rows that are set aside are to be shown."""
        if self.shown is None or self.timing.guard is None:
            return []
        why = F.lit(too_far_ahead(duration_text(self.timing.guard.ahead)))
        return [shown_row(self.shown, why).alias(SHOWN)]


def without_time(frame: DataFrame, time: str, names: Sequence[str], taken: bool = False) -> tuple[DataFrame, Column]:
    """Rows without a time, of which none is rejected if they are `taken` all the same; and how each is shown."""
    column, kind = F.col(quoted(time)), frame.schema[time].dataType
    why = F.when(column.isNull(), missing(time)).otherwise(out_of_range(time))
    rejected = F.lit(False) if taken else instant(column, kind, DEFAULT).isNull()
    return frame.filter(rejected), shown_row(names, why)


def key_columns(frame: DataFrame, keys: Sequence[str]) -> Sequence[Column]:
    """What rows are spread by. Equal keys are equal here; a list, or anything else with parts, counts as null."""
    found = []
    for name in keys:
        column, kind = F.col(quoted(name)), frame.schema[name].dataType
        if isinstance(kind, (T.FloatType, T.DoubleType)):
            found.append(column + F.lit(0.0))  # -0.0 becomes 0.0
        elif not isinstance(kind, (T.ArrayType, T.StructType, T.MapType)):
            found.append(column)
    return found or [F.lit(0)]


def table_stream(
    frame: DataFrame,
    table: TableQuery,
    columns: Sequence[str],
    source: SourceText,
    options: Options,
    original: Sequence[str],
) -> TableStream:
    """`columns` are those that the query reads, `original` those that the frame had before some were computed."""
    time = _time_of(frame, table)
    schema = arrow_schema(frame.select(*(F.col(quoted(name)) for name in columns)).schema)
    shown = tuple(original) if options.rejects else None
    result = table.output if shown is None else table.output.append(pa.field(REJECTED, _shown_type(frame, shown)))
    task = TableTask(source.name, source.text, time, table.steps, _bare(schema), _bare(result))
    keys = tuple(column.name for column in table.clause.partition)
    divided = (options.buckets or BUCKETS, options.pages or PAGES) if keys else (1, 1)
    timing = replace(BELIEVED if options.ahead is None else guarded(options.ahead), delay=_delay(frame, time, options.delay))
    return TableStream(frame, task, keys, table.clause.within is not None, timing, *divided, shown)


def _shown_type(frame: DataFrame, names: Sequence[str]) -> pa.DataType:
    row = shown_row(names, F.lit(None).cast("string")).alias(REJECTED)
    return arrow_schema(frame.select(row).schema).field(0).type


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With nulls for columns that it does not have."""
    there = set(table.column_names)
    columns = [table.column(f.name) if f.name in there else pa.nulls(len(table), f.type) for f in schema]
    return pa.table(columns, schema.names).cast(schema, safe=False)


def _time_of(frame: DataFrame, table: TableQuery) -> str:
    """The first ORDER BY key: a timestamp, and that of the watermark, if there is one."""
    marked = [field.name for field in frame.schema.fields if WATERMARK in (field.metadata or {})]
    order = table.clause.order
    wanted = marked[0] if marked else table.time_column
    moments = (T.TimestampType, T.TimestampNTZType)
    fits = order and order[0].name == wanted and not order[0].descending and table.time in (None, wanted)
    if wanted is None or not fits or not isinstance(frame.schema[wanted].dataType, moments):
        hint = "ORDER BY a timestamp that withWatermark names, or that time= names" + (f": '{marked[0]}'" if marked else "")
        span = order[0].span if order else table.clause.pattern_span
        raise RuleError(Diagnostic("streaming needs ORDER BY the column of the watermark, ascending", span, hint=hint))
    return wanted


def _delay(frame: DataFrame, time: str, delay: str | None) -> int:
    """What is said here, or to withWatermark (milliseconds there)."""
    told = (frame.schema[time].metadata or {}).get(WATERMARK)
    return parse_delay(delay or DELAY) if delay is not None or told is None else int(told) * 1000


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Of rows as Spark hands them over; the zone of instants is of no matter here."""
    return to_arrow_schema(schema, timezone="UTC")


def plainly_named(frame: DataFrame) -> DataFrame:
    """With names that Spark takes for columns of Python functions: a dot in one would be read as the field of a struct."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))


def _bare(schema: pa.Schema) -> pa.Schema:
    return schema.remove_metadata()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
