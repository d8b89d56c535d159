"""MATCH_RECOGNIZE over a DataFrame: plain columns in, plain columns out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, overload

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from coincide.detection.rowpattern.search import STEPS
from coincide.errors import CoincideError, DataWarning, Diagnostic, RuleError
from coincide.expr.tree import Reference, walk
from coincide.lang.matchrecognize.definition import Query
from coincide.lang.matchrecognize.parse import parse_clause
from coincide.source import SourceText
from coincide.tables.query import TableQuery

Transformation = Callable[[DataFrame], DataFrame]


@overload
def match_recognize(df: DataFrame, clause: str, *, time: str | None = None, steps: int = STEPS) -> DataFrame: ...


@overload
def match_recognize(df: str, *, time: str | None = None, steps: int = STEPS) -> Transformation: ...


def match_recognize(
    df: DataFrame | str, clause: str | None = None, *, time: str | None = None, steps: int = STEPS
) -> DataFrame | Transformation:
    """What MATCH_RECOGNIZE gives for a DataFrame; with the clause alone, a function for `df.transform`.

    `clause` is what stands in the parentheses of MATCH_RECOGNIZE. `time` names the column that WITHIN goes by, by default the
    first ORDER BY key. Rows with equal ORDER BY keys have no fixed order on Spark."""
    if isinstance(df, str):
        text = df
        return lambda frame: _matched(frame, SourceText("clause.mr.sql", text), time, steps)
    if clause is None:
        raise CoincideError("the clause of MATCH_RECOGNIZE is missing: match_recognize(df, 'PARTITION BY …')")
    return _matched(df, SourceText("clause.mr.sql", clause), time, steps)


def _matched(frame: DataFrame, source: SourceText, time: str | None, steps: int) -> DataFrame:
    query = parse_clause(source)
    if frame.isStreaming:
        raise CoincideError(
            Diagnostic(
                "match_recognize on a stream is offered for rule files: coincide.spark.detect('rules.mr.sql', df)",
                hint="there rows are events: a mapping names the columns of their type and time",
            )
        )
    return matched_batch(frame, query, source, time, steps)


def matched_batch(frame: DataFrame, query: Query, source: SourceText, time: str | None, steps: int) -> DataFrame:
    if not query.clause.order and time is None:
        raise RuleError(Diagnostic("MATCH_RECOGNIZE on Spark needs ORDER BY", query.clause.pattern_span, hint="or time="))
    table = TableQuery(query, to_arrow_schema(frame.schema), time, steps)
    result = from_arrow_schema(table.matched)
    keys = [column.name for column in query.clause.partition]
    rows = frame.select(*(F.col(_quoted(name)) for name in frame.columns if _is_read(query, name, time)))
    if keys:
        placed = rows.repartition(*(F.col(_quoted(key)) for key in keys))
    else:
        warnings.warn("no PARTITION BY: all rows go to one task", DataWarning, stacklevel=4)
        placed = rows.repartition(1)
    clock = _clock(frame, table) if query.clause.timed_out else None
    return placed.mapInArrow(_Matching(source.name, source.text, time, steps, clock, result), result)


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
    column = F.max(F.col(_quoted(table.time_column)))
    stamp = isinstance(frame.schema[table.time_column].dataType, (T.TimestampType, T.TimestampNTZType))
    found = frame.agg(F.unix_micros(column.cast("timestamp")) if stamp else column.cast("double") * 1000).collect()[0][0]
    return 0 if found is None else int(found)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Matching:
    """The function that Spark sends to its workers: the clause travels as text."""

    def __init__(self, name: str, text: str, time: str | None, steps: int, clock: int | None, result: T.StructType) -> None:
        self.name, self.text, self.time, self.steps, self.clock, self.result = name, text, time, steps, clock, result

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received)
        table = _table_query(self.name, self.text, rows.schema, self.time, self.steps)
        made = table.run(rows, self.clock)
        yield from made.cast(to_arrow_schema(self.result), safe=False).to_batches()


@lru_cache(maxsize=16)
def _table_query(name: str, text: str, schema: pa.Schema, time: str | None, steps: int) -> TableQuery:
    return TableQuery(parse_clause(SourceText(name, text)), schema, time, steps)
