"""Conditions of a detection (section 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from coincide.errors import nearest
from coincide.expr.tokens import Parser, Token, Tokens, Wording
from coincide.lang.sigma.definition import All, Any_, Formula, Not
from coincide.source import SourceText, Span

TOKEN = re.compile(r"(?P<op>[()|])|(?P<name>[^\s()|]+)")
QUANTIFIERS = ("1", "any", "all")


def condition_of(text: str, place: Span, selections: Mapping[str, Formula]) -> Formula:
    return _Parser(_Words(text, place), selections).read()


class _Words(Tokens):
    """YAML may have folded or quoted the text, so the place of each of its words is that of all of it."""

    scanner = re.compile(rf"\s*(?:{TOKEN.pattern})?")

    def __init__(self, text: str, place: Span) -> None:
        super().__init__(SourceText(place.source.name, text), wording=Wording(end="end of the condition"))
        self.place = place

    def span(self, token: Token) -> Span:
        return self.place


class _Parser(Parser):
    nested = "condition"

    def __init__(self, tokens: _Words, selections: Mapping[str, Formula]) -> None:
        self.tokens = tokens
        self.selections = selections

    def read(self) -> Formula:
        if "|" in self.tokens.source.text:
            message = "aggregations in a condition are not supported: use a correlation rule"
            raise self.tokens.fail(self.tokens.peek(), message)
        found = self._or()
        if self.tokens.peek().kind != "end":
            raise self.unexpected("'and' or 'or'")
        return found

    def _or(self) -> Formula:
        members = self.listed(self._and, "or")
        return members[0] if len(members) == 1 else Any_(tuple(members))

    def _and(self) -> Formula:
        members = self.listed(self._not, "and")
        return members[0] if len(members) == 1 else All(tuple(members))

    def _not(self) -> Formula:
        denials = 0
        while self.take("not"):
            denials += 1
        found = self._primary()
        return Not(found) if denials % 2 else found

    def _primary(self) -> Formula:
        if self.take("("):
            with self.deeper():
                found = self._or()
            self.expect(")")
            return found
        if self.tokens.peek().kind == "end" or self.at(")", "and", "or"):
            raise self.unexpected("a search identifier")
        token = self.tokens.next()
        word = token.text
        if self.at("of") and (word in QUANTIFIERS or word.isdecimal()):
            return self._quantified(token)
        if word not in self.selections:
            raise self.tokens.fail(token, f"search identifier '{word}' is not defined", nearest(word, self.selections))
        return self.selections[word]

    def _quantified(self, quantifier: Token) -> Formula:
        word = quantifier.text
        if word not in QUANTIFIERS:
            raise self.tokens.fail(quantifier, f"'{word} of' is not supported: use '1 of' or 'all of'")
        self.expect("of")
        if self.tokens.peek().kind == "end" or self.at("(", ")"):
            raise self.unexpected("'them' or a pattern")
        pattern = self.tokens.next()
        members = tuple(formula for name, formula in self.selections.items() if _is_meant(name, pattern.text))
        if not members:
            message = f"no search identifier matches '{pattern.text}'"
            raise self.tokens.fail(pattern, message, nearest(pattern.text, self.selections))
        return members[0] if len(members) == 1 else All(members) if word == "all" else Any_(members)


def _is_meant(name: str, pattern: str) -> bool:
    """Names that begin with `_` are meant only by patterns that begin so."""
    if name.startswith("_") and not pattern.startswith("_"):
        return False
    return pattern == "them" or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
