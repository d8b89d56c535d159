"""MATCH_RECOGNIZE inside any Spark SQL.

Spark SQL itself is not parsed. In the tokens of the text each `MATCH_RECOGNIZE (` is found, inner ones first; the table before it
is asked of Spark, its matches become a temporary view, and the view's name stands in the text in place of table and clause."""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.rowpatterns import matched, streamed
from coincide.engines.spark.sqltext import (
    Found,
    Token,
    alias_after,
    alias_of,
    around,
    common_tables,
    content,
    innermost,
    placed,
    tokens_of,
    with_common,
)
from coincide.engines.spark.tablework import Options
from coincide.errors import Diagnostic, RuleError, warn
from coincide.source import SourceText

_numbers = count()


def sql(spark: SparkSession, text: str, *, time: str | None = None, steps: int = STEPS, delay: str | None = None) -> DataFrame:
    """`spark.sql`, with MATCH_RECOGNIZE after any table, view, subquery or common table, batch or streaming.

    `time` names the column that WITHIN goes by; by default it is the first ORDER BY key of each clause. `delay` is for streams
    without a watermark. On a stream, a MATCH_RECOGNIZE over the matches of another one runs with it in one task."""
    written = _Written(spark, SourceText("query.sql", text), Options(time, steps, delay))
    try:
        while (found := innermost(text)) is not None:
            text = written.replaced(text, found)
        return spark.sql(text)
    finally:
        if not _is_remote(spark):  # Spark Connect looks names up late
            for view in written.views:
                spark.catalog.dropTempView(view)


def _is_remote(spark: SparkSession) -> bool:
    return "connect" in type(spark).__module__


class _Matches(NamedTuple):
    """What a view stands for on a stream: the rows that the first query reads, the queries, and of the last of them how it was
    written, the table that it reads and its clause."""

    frame: DataFrame
    queries: tuple[SourceText, ...]
    written: str
    table: str
    clause: str


class _Written:
    """A text, and the views of matches that have taken the place of its parts."""

    def __init__(self, spark: SparkSession, source: SourceText, options: Options) -> None:
        self.spark, self.source, self.options = spark, source, options
        self.views: dict[str, _Matches | None] = {}

    def replaced(self, text: str, found: Found) -> str:
        table, clause = text[slice(*found.table)], text[slice(*found.clause)]
        frame = self.spark.sql(f"{common_tables(text, found.table[0])}SELECT * FROM {table}")
        own, called = placed(self.source, clause), alias_of(table)
        framed = own if called is None else around(own, called)
        name, matches = f"coincide_matches_{next(_numbers)}", None
        if not frame.isStreaming:
            made = matched(frame, framed, self.options)
        else:
            matches = self._matches(frame, text, found, own)
            made = self._streamed(matches, alias_after(text[found.end :]))
        made.createOrReplaceTempView(name)
        self.views[name] = matches
        return text[: found.table[0]] + name + " " + text[found.end :]

    def _matches(self, frame: DataFrame, text: str, found: Found, own: SourceText) -> _Matches:
        table, written = text[slice(*found.table)], text[found.table[0] : found.end]
        before = self._read_by(text[: found.table[0]], table)
        called = alias_of(table) or "matches"
        if before is None:
            return _Matches(frame, (around(own, called),), written, called, own.text.strip())
        matches, where = before
        source = called if where is None else f"(SELECT * FROM matches WHERE {where} ) AS {called}"
        return _Matches(matches.frame, (*matches.queries, around(own, source)), written, source, own.text.strip())

    def _streamed(self, matches: _Matches, name: str) -> DataFrame:
        first, *later = matches.queries
        stream = streamed(matches.frame, first, self.options)
        for query in later:
            stream = stream.read_by(query)
        if later:
            message = f"'{name}' reads '{stream.before}': on a stream both run in one task"
            warn((Diagnostic(message, severity="warning"),))
        return stream.matched()

    def _read_by(self, before: str, table: str) -> tuple[_Matches, str | None] | None:
        """The matches that a table is, with what is selected of them, and which of these it takes; None: it is another table."""
        body = content(table, before)
        if not any(token.text in self.views for token in tokens_of(with_common(body, before))):
            return None
        view = next((token for token in tokens_of(body) if token.text in self.views), None)
        if view is not None:
            return (self._stream_of(view.text) if body.strip() == view.text else self._selected(body, view)), None
        inner = ALL_OF.fullmatch(body)
        known = None if inner is None else self._read_by(before, inner["table"])
        if inner is None or known is None:
            hint = "SELECT … FROM … MATCH_RECOGNIZE (…) [WHERE …] may; or write the inner matches to a table and read that"
            raise RuleError(Diagnostic("on a stream this cannot stand between two MATCH_RECOGNIZE", hint=hint))
        return known[0], inner["where"]

    def _selected(self, body: str, view: Token) -> _Matches:
        """The matches of a view with the SELECT list and WHERE that stand around it."""
        matches = self._stream_of(view.text)
        before, after = body[: view.start], body[view.end :]
        query = placed(self.source, before + matches.written + after)
        if len(matches.queries) > 1 or not PLAIN_SOURCE.match(matches.written):  # Spark's tables are no names of ours
            query = SourceText(self.source.name, f"{before}{matches.table} MATCH_RECOGNIZE ({matches.clause}){after}")
        return matches._replace(queries=(*matches.queries[:-1], query))

    def _stream_of(self, view: str) -> _Matches:
        matches = self.views[view]
        assert matches is not None  # what is made of streams is one
        return matches


PLAIN_SOURCE = re.compile(r"\s*\w+\s+(AS\s+\w+\s+|\w+\s+)?MATCH_RECOGNIZE\b", re.IGNORECASE)
ALL_OF = re.compile(r"\s*SELECT\s+\*\s+FROM\s+(?P<table>\w+)\s*(WHERE\s+(?P<where>.*\S))?\s*", re.IGNORECASE | re.DOTALL)
