"""ECCO: definitions, and statements about the stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from coincide.editing.lexing import HASH, lexed, ours
from coincide.editing.marks import ATTRIBUTE, EVENT, FILE, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.editing.words import grouped
from coincide.expr.tokens import EXPRESSION_KEYWORDS
from coincide.lang.ecco.reader import NUMBERS
from coincide.lang.ecco.words import KEYWORDS, OPERATORS, STATEMENTS
from coincide.source import SourceText

ALIAS, SPACE, PROPERTY = "alias", "space", "property"
PLACES = ("zone", "group", *NUMBERS)


def walk_of(source: SourceText) -> EccoWalk:
    return EccoWalk(list(lexed(source, ours(OPERATORS), HASH)))


def marks(source: SourceText) -> Iterator[Mark]:
    walk = walk_of(source)
    yield from walk.types()
    yield from walk.marks()


class EccoWalk(Walk):
    keywords = KEYWORDS | EXPRESSION_KEYWORDS

    def starts(self, at: int) -> bool:
        return self.word(at) in STATEMENTS and self.is_keyword(at)

    def is_keyword(self, at: int) -> bool:
        """Words of expressions may name a definition."""
        defined = self.word(at - 1) in ("detect", "let") and self.word(at) not in KEYWORDS
        return super().is_keyword(at) and not defined

    def role(self, at: int) -> Role | None:
        first, word = self.first(at), self.word(self.first(at))
        if word in ("detect", "let"):
            return self._in_definition(at, first)
        if word == "option":
            return role(KEYWORD)
        if word == "space":
            return self._in_space(at, first)
        return self._in_stream(at, first, word)

    def _in_definition(self, at: int, first: int) -> Role | None:
        if at == first + 1:
            return role(EVENT, True)
        if self.owner(at) == -1 and not any(self.text(n) == "=" for n in range(first, at)):
            return role(ATTRIBUTE)
        if self._gives(at) and self.text(at + 1) == "=" and self.word(at - 1) in ("give", ","):
            return role(ATTRIBUTE, True)
        if self._gives(at) or self._is_condition(at):
            return None
        return self._in_pattern(at)

    def _in_pattern(self, at: int) -> Role | None:
        before = self.word(at - 1)
        if before == "as":
            return role(ALIAS, True, self.scope(at))
        if before == "@":
            return role(KEYWORD) if self.text(at) in PLACES and self.text(at + 1) == "(" else role(SPACE, False, FILE)
        if before == "^" or self._is_policy(at) or self.word(at) in ("of", "until"):
            return role(KEYWORD)
        return role(EVENT)

    def _gives(self, at: int) -> bool:
        return any(self.word(n) == "give" and self.owner(n) == -1 for n in range(self.first(at), at))

    def _is_condition(self, at: int) -> bool:
        """Behind a `where` of its bracket, or in a bracket that holds a condition or an argument."""
        owner = self.owner(at)
        inside = [n for n in range(max(owner, self.first(at)), at) if self.owner(n) == owner]
        words = [self.word(n) for n in inside]
        if "where" in words:
            return "with" not in words[words.index("where") :]
        if owner == -1 or self._is_policy(at):
            return False
        selects = self.text(owner) == "(" and self.text(owner - 2) == "^"
        return self.text(owner) == "{" or selects or self._is_condition(owner)

    def _is_policy(self, at: int) -> bool:
        """Behind a `with`, the names of policies, aspects and levels."""
        if self.word(at) not in self._values:
            return False
        owners = (self.owner(at), self.owner(self.owner(at)) if self.owner(at) != -1 else -1)
        return any(self.word(n) == "with" and self.owner(n) in owners for n in range(self.first(at), at))

    @cached_property
    def _values(self) -> frozenset[str]:
        return frozenset(word.name for word in grouped("ecco", "value"))

    def _in_space(self, at: int, first: int) -> Role:
        if at == first + 1:
            named = self.text(at) != "from" or self.token(at + 1).kind != "text"
            return role(SPACE, True, FILE) if named else role(KEYWORD)
        if self.word(at) == "by" or (self.text(at) in PLACES and self.text(at + 1) == "("):
            return role(KEYWORD)
        return role(PROPERTY) if self.word(at - 1) == "by" else role(SPACE, False, FILE)

    def _in_stream(self, at: int, first: int, word: str) -> Role:
        """`stamp` and `duplicates`."""
        before = self.word(at - 1)
        if word == "duplicates":
            if at == first + 1 or (self.word(at) == "by" and before != ","):
                return role(KEYWORD)
            return role(ATTRIBUTE if any(self.word(n) == "by" for n in range(first, at)) else EVENT)
        listed = at == first + 1 or before == ","
        return role(EVENT) if listed else role(ATTRIBUTE) if before == "hops" else role(KEYWORD)

    def aliases(self, at: int) -> Mapping[str, Role]:
        """A name that is referred to is its own alias."""
        first, scope = self.first(at), self.scope(at)
        found = {name: role(EVENT) for owner, name in self._references if owner == first}
        return {**found, **{name: role(ALIAS, False, scope) for owner, name in self._aliases if owner == first}}

    @cached_property
    def _aliases(self) -> frozenset[tuple[int, str]]:
        found = (n for n in range(1, len(self.tokens)) if self.word(n - 1) == "as" and self.token(n).is_name)
        return frozenset((self.first(n), self.named(n)) for n in found)

    @cached_property
    def _references(self) -> frozenset[tuple[int, str]]:
        found = (n for n in range(len(self.tokens)) if self.is_name(n) and self.role(n) == role(EVENT) and not self.is_unit(n))
        return frozenset((self.first(n), self.named(n)) for n in found)
