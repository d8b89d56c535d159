"""`match_recognize` and `sql`: row patterns over tables of pandas, Polars, Arrow and others."""

from __future__ import annotations

from typing import Any

from coincide.detection.rowpattern.search import STEPS
from coincide.errors import CoincideError, Diagnostic, RuleError, nearest, warn
from coincide.lang.matchrecognize.definition import Query
from coincide.lang.matchrecognize.parse import parse_clause, parse_query
from coincide.lang.matchrecognize.warnings import warnings_of
from coincide.source import SourceText


def match_recognize(table: Any, clause: str, *, time: str | None = None, steps: int = STEPS) -> Any:
    """What MATCH_RECOGNIZE gives for a table: the same kind of table back.

    `table` is a pandas or Polars DataFrame, a list of records, an Arrow table, a relation of DuckDB or a path (the last three
    give an Arrow table); an index of pandas that has a name is a column. `clause` is what stands in the parentheses of
    MATCH_RECOGNIZE. `time` names the column that WITHIN goes by, by default the first ORDER BY key: a timestamp, or a number of
    milliseconds.

    >>> import coincide
    >>> ticks = [{"sym": "A", "t": t, "price": p} for t, p in enumerate([9, 7, 8, 6, 5, 9])]
    >>> coincide.match_recognize(ticks, \"""
    ...     PARTITION BY sym ORDER BY t
    ...     MEASURES FIRST(price) AS top, LAST(DOWN.price) AS bottom, LAST(price) AS end_price
    ...     PATTERN (START DOWN+ UP+)
    ...     DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)\""")
    [{'sym': 'A', 'top': 9, 'bottom': 7, 'end_price': 8}, {'sym': 'A', 'top': 6, 'bottom': 5, 'end_price': 9}]
    """
    return _run(parse_clause(SourceText("clause.mr.sql", clause)), table, time, steps)


def sql(text: str, *, time: str | None = None, steps: int = STEPS, **tables: Any) -> Any:
    """A query `SELECT … FROM table MATCH_RECOGNIZE (…) [WHERE …]` over the table of that name.

    >>> import coincide
    >>> ticks = [{"t": t, "v": v} for t, v in enumerate([1, 5, 5, 2, 7])]
    >>> coincide.sql(\"""
    ...     SELECT n, top * 10 AS tenfold FROM ticks MATCH_RECOGNIZE (
    ...         ORDER BY t MEASURES COUNT(*) AS n, MAX(v) AS top PATTERN (HIGH+) DEFINE HIGH AS v > 4) AS m
    ...     WHERE n > 1\""", ticks=ticks)
    [{'n': 2, 'tenfold': 50}]
    """
    query = parse_query(SourceText("query.mr.sql", text))
    name = query.source.table
    if name not in tables:
        raise RuleError(Diagnostic(f"unknown table '{name}'", query.source.span, hint=nearest(name, tables)))
    return _run(query, tables[name], time, steps)


def _run(query: Query, table: Any, time: str | None, steps: int) -> Any:
    from coincide.tables.frames import table_of_frame
    from coincide.tables.names import with_nested
    from coincide.tables.query import TableQuery

    if steps < 1:
        raise CoincideError("steps must be at least 1")
    if isinstance(table, list) and not table:  # no records, no columns to hold the query against
        return []
    warn(warnings_of(query))
    arrow, back = table_of_frame(table)
    arrow = with_nested(arrow, query)
    return back(TableQuery(query, arrow.schema, time, steps).run(arrow))
