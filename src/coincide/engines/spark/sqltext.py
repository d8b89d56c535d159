"""The text of Spark SQL, as far as MATCH_RECOGNIZE asks: its tokens, the tables before a place, common tables and aliases."""

from __future__ import annotations

import re
from typing import NamedTuple

from coincide.errors import Diagnostic, RuleError
from coincide.source import SourceText

TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<word>\w+)|(?P<other>.)",
    re.DOTALL,
)
AFTER_TABLE = re.compile(
    "where|group|order|having|limit|offset|union|except|intersect|minus|join|inner|left|right|full|cross|natural|semi|anti|lateral|"
    "on|window|qualify|cluster|distribute|sort|select|from|pivot|unpivot",
    re.IGNORECASE,
)
"""Words that are no alias."""


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


OUR_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOTHING = Token("end", "", 0, 0)


class Found(NamedTuple):
    table: tuple[int, int]  # where the table stands, with its alias
    clause: tuple[int, int]  # what stands in the parentheses
    end: int  # after the closing parenthesis


def tokens_of(text: str) -> list[Token]:
    found = (Token(m.lastgroup or "", m.group(), m.start(), m.end()) for m in TOKEN.finditer(text))
    return [token for token in found if token.kind != "space"]


def innermost(text: str) -> Found | None:
    """The last one: what it reads stands before it, and what stands inside it comes later than its own word."""
    tokens = tokens_of(text)
    places = [n for n, t in enumerate(tokens[:-1]) if t.text.upper() == "MATCH_RECOGNIZE" and tokens[n + 1].text == "("]
    if not places:
        return None
    inner = [n for n in places if not any(_inside(tokens, other, n) for other in places if other != n)]
    at = inner[0]
    close = _closing(tokens, at + 1)
    first = _table_start(tokens, at)
    return Found((tokens[first].start, tokens[at].start), (tokens[at + 1].end, tokens[close].start), tokens[close].end)


def _inside(tokens: list[Token], inner: int, outer: int) -> bool:
    """Does the one stand in the table before the other?"""
    return _table_start(tokens, outer) <= inner < outer


def _closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for n in range(opening, len(tokens)):
        depth += (tokens[n].text == "(") - (tokens[n].text == ")")
        if depth == 0:
            return n
    source = SourceText("query.sql", "")
    raise RuleError(Diagnostic("the parenthesis of MATCH_RECOGNIZE is not closed", source.span(0, 0)))


def _table_start(tokens: list[Token], at: int) -> int:
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


def _ends_table(token: Token) -> bool:
    return (
        token.text == ")"
        or token.kind == "quoted"
        or (token.kind == "word" and token.text.upper() not in ("FROM", "JOIN", "LATERAL"))
    )


def content(table: str, before: str) -> str:
    """The query in parentheses that a table is, or that of the common table of its name."""
    tokens = tokens_of(table)
    if tokens[0].text == "(":
        return table[tokens[0].end : tokens[_closing(tokens, 0)].start]
    return _common_bodies(before).get(tokens[0].text) or tokens[0].text


def with_common(body: str, before: str) -> str:
    """A query with those of the common tables that it names."""
    bodies, found = _common_bodies(before), [body]
    for text in found:
        found += [bodies[token.text] for token in tokens_of(text) if token.text in bodies and bodies[token.text] not in found]
    return " ".join(found)


def _common_bodies(before: str) -> dict[str, str]:
    """The queries of the common tables that are complete."""
    tokens, found = tokens_of(common_tables(before, len(before))), {}
    depth = 0
    for n, token in enumerate(tokens):
        if depth == 0 and token.text == "(" and n > 1 and tokens[n - 1].text.upper() == "AS":
            close = _closing(tokens, n)
            found[tokens[n - 2].text] = (token.end, tokens[close].start)
        depth += (token.text == "(") - (token.text == ")")
    text = common_tables(before, len(before))
    return {name: text[slice(*place)] for name, place in found.items()}


def alias_of(table: str) -> str | None:
    """The name by which columns of a table are called: its alias, or its own; None: there is none that we can read."""
    last = tokens_of(table)[-1]
    return last.text if last.kind == "quoted" or OUR_NAME.fullmatch(last.text) else None


def alias_after(text: str) -> str:
    """The name of the matches that stands after a clause."""
    tokens = [*tokens_of(text)[:2], NOTHING, NOTHING]
    token = tokens[1] if tokens[0].text.upper() == "AS" else tokens[0]
    return token.text if token.kind in ("word", "quoted") and not AFTER_TABLE.fullmatch(token.text) else "match"


def around(own: SourceText, table: str) -> SourceText:
    """The clause as part of a query over a table, where it stands: the words before it go where there is room."""
    words = ["SELECT", "*", "FROM", _in_one_line(table), "MATCH_RECOGNIZE", "("]
    clause = own.text.lstrip()
    lines = own.text[: len(own.text) - len(clause)].split("\n")
    filled = []
    for line in lines:
        row = ""
        while words and len(row) + len(words[0]) <= len(line):
            row += words.pop(0) + " "
        filled.append(row[: len(line)].ljust(len(line)))
    before = "\n".join(filled) + (" ".join(words) if words else "")
    return SourceText(own.name, before + clause + ")")


def _in_one_line(text: str) -> str:
    return TOKEN.sub(lambda found: " " if found.lastgroup == "space" else found.group(), text)


def placed(source: SourceText, clause: str) -> SourceText:
    """The clause where it stands in the query as it was written, so that errors show that place."""
    start = source.text.find(clause)
    if start < 0:
        return SourceText(source.name, clause)
    before = re.sub(r"[^\n]", " ", source.text[:start])
    return SourceText(source.name, before + clause)


def common_tables(text: str, upto: int) -> str:
    """`WITH …` with all common tables that are complete before a place."""
    tokens = [t for t in tokens_of(text) if t.end <= upto]
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
