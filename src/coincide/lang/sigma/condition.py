"""Conditions of a detection (section 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from coincide.errors import nearest
from coincide.lang.sigma.definition import All, Any_, Formula, Not
from coincide.lang.sigma.nodes import fail
from coincide.source import Span

TOKEN = re.compile(r"[()|]|[^\s()|]+")
QUANTIFIERS = ("1", "any", "all")


def condition_of(text: str, place: Span, selections: Mapping[str, Formula]) -> Formula:
    return _Parser(TOKEN.findall(text), place, selections).read()


class _Parser:
    def __init__(self, tokens: list[str], place: Span, selections: Mapping[str, Formula]) -> None:
        self.tokens = tokens
        self.place = place
        self.selections = selections
        self.at = 0

    def read(self) -> Formula:
        if "|" in self.tokens:
            fail("aggregations in a condition are not supported: use a correlation rule", self.place)
        found = self._or()
        if self.at < len(self.tokens):
            self._expected("'and' or 'or'")
        return found

    def _peek(self, ahead: int = 0) -> str | None:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def _take(self, word: str) -> bool:
        if self._peek() != word:
            return False
        self.at += 1
        return True

    def _expected(self, what: str) -> NoReturn:
        found = self._peek()
        fail(f"expected {what}, found {'end of the condition' if found is None else repr(found)}", self.place)

    def _or(self) -> Formula:
        members = [self._and()]
        while self._take("or"):
            members.append(self._and())
        return members[0] if len(members) == 1 else Any_(tuple(members))

    def _and(self) -> Formula:
        members = [self._not()]
        while self._take("and"):
            members.append(self._not())
        return members[0] if len(members) == 1 else All(tuple(members))

    def _not(self) -> Formula:
        denials = 0
        while self._take("not"):
            denials += 1
        found = self._primary()
        return Not(found) if denials % 2 else found

    def _primary(self) -> Formula:
        if self._take("("):
            found = self._or()
            if not self._take(")"):
                self._expected("')'")
            return found
        word = self._peek()
        if word is None or word in (")", "and", "or", "not"):
            self._expected("a search identifier")
        if self._peek(1) == "of" and (word in QUANTIFIERS or word.isdecimal()):
            return self._quantified(word)
        self.at += 1
        if word not in self.selections:
            fail(f"search identifier '{word}' is not defined", self.place, nearest(word, self.selections))
        return self.selections[word]

    def _quantified(self, word: str) -> Formula:
        if word not in QUANTIFIERS:
            fail(f"'{word} of' is not supported: use '1 of' or 'all of'", self.place)
        self.at += 2
        pattern = self._peek()
        if pattern is None or pattern in ("(", ")"):
            self._expected("'them' or a pattern")
        self.at += 1
        members = tuple(formula for name, formula in self.selections.items() if _is_meant(name, pattern))
        if not members:
            fail(f"no search identifier matches '{pattern}'", self.place, nearest(pattern, self.selections))
        return members[0] if len(members) == 1 else All(members) if word == "all" else Any_(members)


def _is_meant(name: str, pattern: str) -> bool:
    """Names that begin with `_` are meant only by patterns that begin so."""
    if name.startswith("_") and not pattern.startswith("_"):
        return False
    return pattern == "them" or re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
