"""MATCH_RECOGNIZE inside any Spark SQL.

Spark SQL itself is not parsed. In the tokens of the text each `MATCH_RECOGNIZE (` is found, inner ones first; the table before it
is asked of Spark, its matches become a temporary view, and the view's name stands in the text in place of table and clause."""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from coincide.detection.rowpattern.search import STEPS
from coincide.engines.spark.rowpatterns import matched
from coincide.errors import Diagnostic, RuleError
from coincide.source import SourceText

TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<word>\w+)|(?P<other>.)",
    re.DOTALL,
)
BEFORE_TABLE = ("FROM", "JOIN", "LATERAL")
_numbers = count()


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def sql(spark: SparkSession, text: str, *, time: str | None = None, steps: int = STEPS, delay: str | None = None) -> DataFrame:
    """`spark.sql`, with MATCH_RECOGNIZE after any table, view, subquery or common table, batch or streaming.

    `time` names the column that WITHIN goes by; by default it is the first ORDER BY key of each clause. `delay` is for streams
    without a watermark."""
    source = SourceText("query.sql", text)
    views: list[str] = []
    try:
        while (found := _innermost(text)) is not None:
            text = _replaced(spark, source, text, found, (time, steps, delay), views)
        return spark.sql(text)
    finally:
        if not _is_remote(spark):  # Spark Connect looks names up late
            for view in views:
                spark.catalog.dropTempView(view)


def _is_remote(spark: SparkSession) -> bool:
    return "connect" in type(spark).__module__


class _Found(NamedTuple):
    table: tuple[int, int]  # where the table stands, with its alias
    clause: tuple[int, int]  # what stands in the parentheses
    end: int  # after the closing parenthesis


def _tokens(text: str) -> list[_Token]:
    found = (_Token(m.lastgroup or "", m.group(), m.start(), m.end()) for m in TOKEN.finditer(text))
    return [token for token in found if token.kind != "space"]


def _innermost(text: str) -> _Found | None:
    """The last one: what it reads stands before it, and what stands inside it comes later than its own word."""
    tokens = _tokens(text)
    places = [n for n, t in enumerate(tokens[:-1]) if t.text.upper() == "MATCH_RECOGNIZE" and tokens[n + 1].text == "("]
    if not places:
        return None
    inner = [n for n in places if not any(_inside(tokens, other, n) for other in places if other != n)]
    at = inner[0]
    close = _closing(tokens, at + 1)
    first = _table_start(tokens, at)
    return _Found((tokens[first].start, tokens[at].start), (tokens[at + 1].end, tokens[close].start), tokens[close].end)


def _inside(tokens: list[_Token], inner: int, outer: int) -> bool:
    """Does the one stand in the table before the other?"""
    return _table_start(tokens, outer) <= inner < outer


def _closing(tokens: list[_Token], opening: int) -> int:
    depth = 0
    for n in range(opening, len(tokens)):
        depth += (tokens[n].text == "(") - (tokens[n].text == ")")
        if depth == 0:
            return n
    source = SourceText("query.sql", "")
    raise RuleError(Diagnostic("the parenthesis of MATCH_RECOGNIZE is not closed", source.span(0, 0)))


def _table_start(tokens: list[_Token], at: int) -> int:
    """The first token of the table before MATCH_RECOGNIZE: a name with dots, or a query in parentheses, with its alias."""
    n = at - 1
    if n > 0 and tokens[n].kind in ("word", "quoted") and (_ends_table(tokens[n - 1]) or tokens[n - 1].text.upper() == "AS"):
        n -= 2 if tokens[n - 1].text.upper() == "AS" else 1
    if tokens[n].text == ")":
        depth = 0
        while n >= 0:
            depth += (tokens[n].text == ")") - (tokens[n].text == "(")
            if depth == 0:
                return n
            n -= 1
    while n > 1 and tokens[n - 1].text == ".":
        n -= 2
    return n


def _ends_table(token: _Token) -> bool:
    return (
        token.text == ")"
        or token.kind == "quoted"
        or (token.kind == "word" and token.text.upper() not in ("FROM", "JOIN", "LATERAL"))
    )


Options = tuple[str | None, int, str | None]
"""Time, steps and delay."""


def _replaced(spark: SparkSession, source: SourceText, text: str, found: _Found, options: Options, views: list[str]) -> str:
    table, clause = text[slice(*found.table)], text[slice(*found.clause)]
    common = _common_tables(text, found.table[0])
    frame = spark.sql(f"{common}SELECT * FROM {table}")
    written = _placed(source, clause)
    if frame.isStreaming and any(view in common + table for view in views):
        hint = "write the inner matches to a table and read that, or use rules: coincide.spark.detect('rules.mr.sql', df)"
        raise RuleError(Diagnostic("on a stream MATCH_RECOGNIZE cannot read the matches of another one", hint=hint))
    name = f"coincide_matches_{next(_numbers)}"
    matched(frame, written, *options).createOrReplaceTempView(name)
    views.append(name)
    return text[: found.table[0]] + name + " " + text[found.end :]


def _placed(source: SourceText, clause: str) -> SourceText:
    """The clause where it stands in the query as it was written, so that errors show that place."""
    start = source.text.find(clause)
    if start < 0:
        return SourceText(source.name, clause)
    before = re.sub(r"[^\n]", " ", source.text[:start])
    return SourceText(source.name, before + clause)


def _common_tables(text: str, upto: int) -> str:
    """`WITH …` with all common tables that are complete before a place."""
    tokens = [t for t in _tokens(text) if t.end <= upto]
    if not tokens or tokens[0].text.upper() != "WITH":
        return ""
    last, depth, n = None, 0, 1
    while n < len(tokens):
        depth += (tokens[n].text == "(") - (tokens[n].text == ")")
        if depth == 0 and tokens[n].text == ")":
            follows = tokens[n + 1].text if n + 1 < len(tokens) else ""
            if follows.upper() != "AS":
                last = tokens[n].end
            if follows != "," and follows.upper() != "AS":
                break
        n += 1
    return "" if last is None else text[tokens[0].start : last] + " "
