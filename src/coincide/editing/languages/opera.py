"""Opera: sets, expressions, detectors; and what its sentences (`pretty`) share with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from coincide.editing.lexing import HASH, lexed, ours
from coincide.editing.marks import ATTRIBUTE, EVENT, FILE, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.expr.tokens import EXPRESSION_KEYWORDS
from coincide.lang.opera.parse import TYPES
from coincide.lang.opera.sets import OPERATORS, RESERVED
from coincide.ordering import written_policies
from coincide.source import SourceText

STATEMENTS = ("sources", "event", "limit", "set", "expr", "detect")
SET, EXPRESSION, ALIAS, TIMER, PARAMETER, SOURCE = "set", "expression", "alias", "timer", "parameter", "source"
DEFINED = {"event": EVENT, "set": SET, "expr": EXPRESSION, "detect": EVENT}
BODY, SETS, TERMS = "body", "sets", "terms"
"""What brackets hold: expressions, sets of events, conditions on an event."""


def walk_of(source: SourceText) -> OperaWalk:
    return OperaWalk(list(lexed(source, ours(OPERATORS), HASH)))


def marks(source: SourceText) -> Iterator[Mark]:
    walk = walk_of(source)
    yield from walk.types()
    yield from walk.marks()


class OperaWalk(Walk):
    keywords = RESERVED | EXPRESSION_KEYWORDS

    def starts(self, at: int) -> bool:
        return self.text(at) in STATEMENTS

    def role(self, at: int) -> Role | None:
        first, word = self.first(at), self.text(self.first(at))
        if at == first + 1:
            return self._defined(word)
        if word == "sources":
            return role(SOURCE)
        if word == "event":
            typed = self.text(at) in TYPES and self.token(at - 1).is_name
            return role(KEYWORD) if typed else role(ATTRIBUTE, True)
        if word == "limit":
            return self._limited(at, first)
        return self._within(at, self._clause(at))

    def _defined(self, word: str) -> Role:
        if word in ("set", "expr"):
            return role(DEFINED[word], True, FILE)
        return role(SOURCE) if word == "sources" else role(EVENT, word in DEFINED)

    def _limited(self, at: int, first: int) -> Role | None:
        if self.text(at) in ("per", "every", "until") and self.owner(at) == -1:
            return role(KEYWORD)
        before = [self.text(n) for n in range(first, at)]
        if "until" in before or self.content(at) == TERMS:
            return self._within(at, "")
        return role(ATTRIBUTE)

    def _clause(self, at: int) -> str:
        """`where` or `with` of a detector, if the place is behind one."""
        found = [self.text(n) for n in range(self.first(at), at) if self.owner(n) == -1 and self.text(n) in ("where", "with")]
        return found[-1] if found else ""

    def _within(self, at: int, clause: str) -> Role | None:
        if clause == "with" and self.text(at + 1) == "=" and self.text(at - 1) in ("with", ","):
            return role(ATTRIBUTE, True)
        if self.text(at - 1) == "policy" and self.text(at) in written_policies():
            return role(KEYWORD)
        content = TERMS if clause else self.content(at)
        if self.text(at - 1) == "?":
            return role(PARAMETER, at == self._parameters.get((self.first(at), self.named(at))), self.scope(at))
        if content == TERMS:
            return None
        if self.text(at - 1) == "as":
            return role(ALIAS, True, self.scope(at))
        if self.text(at - 1) == ")" and self.text(at + 1) == "=":
            return role(TIMER, True, self.scope(at))
        return self._set(at) if content == SETS else self._inlined(at)

    def content(self, at: int) -> str:
        """What the bracket holds that a place is in."""
        bracket = self.owner(at)
        if bracket == -1:
            return SETS if self.text(self.first(at)) in ("set", "limit") else BODY
        if self.text(bracket) in ("[", "{"):
            return SETS
        outer = TERMS if self.owner(bracket) == -1 and self._clause(bracket) else self.content(bracket)
        if outer == TERMS:
            return TERMS
        behind_set = self.is_name(bracket - 1) or self.text(bracket - 1) == "all"
        return TERMS if behind_set and outer == SETS else BODY

    def _set(self, at: int) -> Role:
        name = self.named(at)
        if (self.first(at), name) in self._timers:
            return role(TIMER, False, self.scope(at))
        return role(SET, False, FILE) if name in self._names("set") else role(EVENT)

    def _inlined(self, at: int) -> Role:
        return role(EVENT) if self.named(at) in self._names("detect") else role(EXPRESSION, False, FILE)

    def _names(self, word: str) -> frozenset[str]:
        return frozenset(self.named(n + 1) for n in set(self.statements) if self.text(n) == word)

    @cached_property
    def _timers(self) -> frozenset[tuple[int, str]]:
        found = (n for n in range(1, len(self.tokens)) if self.text(n - 1) == ")" and self.text(n + 1) == "=")
        return frozenset((self.first(n), self.named(n)) for n in found if self.is_name(n))

    @cached_property
    def _parameters(self) -> Mapping[tuple[int, str], int]:
        """Where each is named first."""
        found: dict[tuple[int, str], int] = {}
        for n in range(1, len(self.tokens)):
            if self.text(n - 1) == "?":
                found.setdefault((self.first(n), self.named(n)), n)
        return found

    def aliases(self, at: int) -> Mapping[str, Role]:
        first, scope = self.first(at), self.scope(at)
        return {
            **{name: role(PARAMETER, False, scope) for owner, name in self._parameters if owner == first and self._clause(at)},
            **{name: role(ALIAS, False, scope) for owner, name in self._aliases if owner == first},
        }

    @cached_property
    def _aliases(self) -> frozenset[tuple[int, str]]:
        found = (n for n in range(1, len(self.tokens)) if self.text(n - 1) == "as" and self.token(n).is_name)
        return frozenset((self.first(n), self.named(n)) for n in found)
