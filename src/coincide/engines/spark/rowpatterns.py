"""MATCH_RECOGNIZE over a DataFrame: plain columns in, plain columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypedDict, Unpack, overload

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from coincide.adapters.mapping import DEFAULT
from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.foreign import with_computed
from coincide.engines.spark.instants import instant
from coincide.engines.spark.rejects import with_rows_apart
from coincide.engines.spark.tablework import (
    Options,
    TableStream,
    arrow_schema,
    key_columns,
    plainly_named,
    quoted,
    table_stream,
    without_time,
)
from coincide.engines.spark.timeranges import TimeRanges, reasons_against
from coincide.errors import CoincideError, Diagnostic, RuleError, warn
from coincide.expr.tree import Reference
from coincide.lang.matchrecognize.definition import Query
from coincide.lang.matchrecognize.warnings import streaming_warnings, warnings_of
from coincide.source import SourceText
from coincide.syntax import walk
from coincide.tables.foreign import fitted_query, parsed
from coincide.tables.names import fitted, names_read, nested_names
from coincide.tables.query import TableQuery

Transformation = Callable[[DataFrame], DataFrame]


class Given(TypedDict, total=False):
    """What `match_recognize` may be told beside clause and rows; it says what each is for."""

    time: str | None
    steps: int
    delay: str | None
    buckets: int | None
    pages: int | None
    ranges: int | None
    ahead: str | None
    rejects: bool


@overload
def match_recognize(df: DataFrame, clause: str, **given: Unpack[Given]) -> DataFrame: ...


@overload
def match_recognize(df: str, **given: Unpack[Given]) -> Transformation: ...


def match_recognize(
    df: DataFrame | str,
    clause: str | None = None,
    *,
    time: str | None = None,
    steps: int = STEPS,
    delay: str | None = None,
    buckets: int | None = None,
    pages: int | None = None,
    ranges: int | None = None,
    ahead: str | None = None,
    rejects: bool = False,
) -> DataFrame | Transformation:
    """What MATCH_RECOGNIZE gives for a DataFrame, batch or streaming; with the clause alone, a function for `df.transform`.

    `clause` is what stands in the parentheses of MATCH_RECOGNIZE. `time` names the column that WITHIN goes by, by default the
    first ORDER BY key. Rows with equal ORDER BY keys have no fixed order on Spark. Functions of Spark's, and those registered
    with it, may be called in conditions and measures with columns of one row.

    A batch without PARTITION BY goes to one task; with WITHIN its rows are cut into `ranges` of time (by default as many as are
    worthwhile), which are matched side by side with the same result. Where to cut is found out at once, by small jobs.

    On a stream rows wait until the latest time seen, less the delay of `withWatermark` (or `delay`, by default 10 seconds), has
    passed theirs; then they are taken in order. Later ones are dropped and counted, and so are rows without a time. Only what is
    decided is given out. `buckets` and `pages` divide the state and must stay as they are over the life of a checkpoint. A row
    whose time is more than `ahead` beyond the others of its micro-batch, or beyond the wall clock if the stream is live, is set
    aside, so that it does not make all others late (None: every time is believed).

    With `rejects=True` the frame holds, too, rows without a time, where they cannot be taken (on a stream, and under WITHIN), and
    those that are set aside, with the reason, in the column `_rejected`: `split` parts them from the matches."""
    options = Options(time, steps, delay, buckets, pages, ranges, ahead, rejects)

    def apply(frame: DataFrame, text: str) -> DataFrame:
        return matched(frame, SourceText("clause.mr.sql", text), options)

    if isinstance(df, str):
        text = df
        return lambda frame: apply(frame, text)
    if clause is None:
        raise CoincideError("the clause of MATCH_RECOGNIZE is missing: match_recognize(df, 'PARTITION BY …')")
    return apply(df, clause)


def matched(frame: DataFrame, source: SourceText, options: Options) -> DataFrame:
    if frame.isStreaming:
        return streamed(frame, source, options).matched()
    return _matched_batch(frame, source, options)


def streamed(frame: DataFrame, source: SourceText, options: Options) -> TableStream:
    query, whole = _prepared(frame, source)
    warn([*warnings_of(query), *streaming_warnings(query)])
    table = TableQuery(query, arrow_schema(whole.schema), options.time, options.steps)
    columns = [name for name in whole.columns if _is_read(query, name, options.time)]
    return table_stream(whole, table, columns, source, options, frame.columns)


def _matched_batch(frame: DataFrame, source: SourceText, options: Options) -> DataFrame:
    query, whole = _prepared(frame, source)
    if not query.clause.order and options.time is None:
        raise RuleError(Diagnostic("MATCH_RECOGNIZE on Spark needs ORDER BY", query.clause.pattern_span, hint="or time="))
    warn(warnings_of(query))
    table = TableQuery(query, arrow_schema(whole.schema), options.time, options.steps)
    found = _found_in(whole, table, source, options.ranges)
    if not options.rejects:
        return found
    assert table.time_column is not None
    apart = without_time(whole, table.time_column, frame.columns, taken=query.clause.within is None)
    return with_rows_apart(found, *apart)


def _found_in(whole: DataFrame, table: TableQuery, source: SourceText, ranges: int | None) -> DataFrame:
    """The matches of a batch: rows go to tasks by their partitions, or by ranges of time."""
    query, result = table.query, from_arrow_schema(table.matched)
    keys = [column.name for column in query.clause.partition]
    rows = whole.select(*(F.col(quoted(name)) for name in whole.columns if _is_read(query, name, table.time)))
    if keys:
        placed = rows.repartition(*key_columns(rows, keys))
    else:
        against = reasons_against(table, rows.schema)
        cut = None if against else TimeRanges(rows, table, source, result).matched(ranges)
        if cut is not None:
            return cut
        hint = against[0] if against else None
        warn((Diagnostic("no PARTITION BY: all rows go to one task", severity="warning", hint=hint),))
        placed = rows.repartition(1)
    clock = _clock(whole, table) if query.clause.timed_out else None
    matching = _Matching(source.name, source.text, table.time, table.steps, clock, placed.columns, result)
    return plainly_named(placed).mapInArrow(matching, result)


def _prepared(frame: DataFrame, source: SourceText) -> tuple[Query, DataFrame]:
    """The query, and the frame with columns for what Spark computes: calls of its functions, and fields inside structs."""
    parsed_query, calls = parsed(source)
    whole = with_computed(frame, calls)
    query = fitted(parsed_query, whole.columns)
    for name, path in nested_names(names_read(query), arrow_schema(whole.schema)).items():
        whole = whole.withColumn(name, F.col(".".join(map(quoted, path))))
    return query, whole


def _is_read(query: Query, name: str, time: str | None) -> bool:
    """ALL ROWS gives every column out."""
    clause = query.clause
    if clause.all_rows or name == time:
        return True
    trees = [*(m.value for m in clause.measures), *(c.test for c in clause.conditions)]
    read = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
    return name in read or name in (*(c.name for c in clause.partition), *(k.name for k in clause.order))


def _clock(frame: DataFrame, table: TableQuery) -> int:
    """How far time has come in the whole frame: what times out does so by it."""
    assert table.time_column is not None
    column, kind = F.col(quoted(table.time_column)), frame.schema[table.time_column].dataType
    found = frame.agg(F.max(instant(column, kind, DEFAULT))).collect()[0][0]
    return 0 if found is None else int(found)


class _Matching:
    """The function that Spark sends to its workers: the clause travels as text."""

    def __init__(
        self, name: str, text: str, time: str | None, steps: int, clock: int | None, columns: list[str], result: T.StructType
    ) -> None:
        self.name, self.text, self.time, self.steps, self.clock = name, text, time, steps, clock
        self.columns, self.result = columns, result

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received).rename_columns(self.columns)
        table = _table_query(self.name, self.text, rows.schema, self.time, self.steps)
        made = table.run(rows, self.clock)
        yield from made.cast(arrow_schema(self.result), safe=False).to_batches()


@lru_cache(maxsize=16)
def _table_query(name: str, text: str, schema: pa.Schema, time: str | None, steps: int) -> TableQuery:
    return TableQuery(fitted_query(SourceText(name, text), schema.names), schema, time, steps)
