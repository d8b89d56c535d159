"""What the parsers that are written by hand have in common: taking tokens, and saying what was expected instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from coincide.errors import RuleError, nearest
from coincide.expr.tokens import Token, Tokens
from coincide.source import Span

T = TypeVar("T")


class Parser:
    """One method a rule of the grammar, in the classes below."""

    tokens: Tokens

    def spelled(self, token: Token) -> str:
        """As the grammar spells a key word. Most languages know them in lower case only."""
        return token.text

    def at(self, *texts: str, distance: int = 0) -> bool:
        """Does one of these key words or signs stand here?"""
        token = self.tokens.peek(distance)
        return token.kind in ("name", "op") and (token.text in texts or self.spelled(token) in texts)

    def take(self, *texts: str) -> Token | None:
        return self.tokens.next() if self.at(*texts) else None

    def expect(self, *texts: str, after: str = "", hint: str | None = None) -> Token:
        token = self.take(*texts)
        if token is None:
            raise self.unexpected(" or ".join(f"'{text}'" for text in texts), after=after, known=texts, hint=hint)
        return token

    def unexpected(self, wanted: str, *, after: str = "", known: Iterable[str] = (), hint: str | None = None) -> RuleError:
        """What stands here is not what was wanted; it may be one of the words that are `known` here, misspelt."""
        token = self.tokens.peek()
        follows = f" after {after}" if after else ""
        message = f"expected {wanted}{follows}, found {self.tokens.shown(token)}"
        return self.tokens.fail(token, message, hint or nearest(self.spelled(token), known) or _quoted(token, wanted))

    def listed(self, rule: Callable[[], T], separator: str = ",") -> list[T]:
        found = [rule()]
        while self.take(separator):
            found.append(rule())
        return found

    def since(self, start: Token) -> Span:
        """From a token to the last one that was taken."""
        assert self.tokens.last is not None
        return self.tokens.source.span(start.start, self.tokens.last.end)


def _quoted(token: Token, wanted: str) -> str | None:
    """Numbers are types of events, too: of those of Windows, for instance."""
    number = token.kind == "number" and "event" in wanted
    return f"an event type that is a number stands in back quotes: `{token.text}`" if number else None
