"""Tokens of a text that need not be right: comments are told, too, and what fits nothing is passed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from coincide.errors import RuleError
from coincide.expr.tokens import EXPRESSION_OPERATORS, Token, Tokens
from coincide.source import SourceText

COMMENT = "comment"
HASH = re.compile(r"#[^\n]*")
_QUOTES = "'\"`"

Scanner = Callable[[SourceText, int], Tokens]


def lexed(source: SourceText, scanner: Scanner, comment: re.Pattern[str]) -> Iterator[Token]:
    """Tokens and comments in order, without the end."""
    at, length = 0, len(source.text)
    while at < length:
        stream = scanner(source, at)
        try:
            while (token := stream.next()).kind != "end":
                yield from _comments(source.text, comment, at, token.start)
                yield token
                at = token.end
            yield from _comments(source.text, comment, at, length)
            return
        except RuleError as error:
            span = error.diagnostics[0].span
            assert span is not None
            yield from _comments(source.text, comment, at, span.start)
            token = _unfinished(source.text, span.start)
            yield token
            at = token.end


def ours(operators: tuple[str, ...] = EXPRESSION_OPERATORS) -> Scanner:
    """The tokens that our own languages share."""
    return lambda source, offset: Tokens(source, operators, offset=offset)


def _comments(text: str, comment: re.Pattern[str], start: int, end: int) -> Iterator[Token]:
    if start < end:
        yield from (Token(COMMENT, m.group(), m.start(), m.end()) for m in comment.finditer(text, start, end))


def _unfinished(text: str, start: int) -> Token:
    """What begins with a quote goes on to the end of its line; an open comment to the end of all; else it is one character."""
    if text.startswith("/*", start):
        return Token(COMMENT, text[start:], start, len(text))
    if text[start] in _QUOTES:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        return Token("open", text[start:end], start, end)
    return Token("bad", text[start], start, start + 1)
