"""Opera's sentences: phrases and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from coincide.editing.lexing import HASH, lexed, ours
from coincide.editing.marks import ATTRIBUTE, EVENT, FILE, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.expr.tokens import EXPRESSION_KEYWORDS, Token
from coincide.lang.pretty.parse import OPERATORS
from coincide.lang.pretty.phrases import KEYWORDS, is_name
from coincide.ordering import written_policies
from coincide.source import SourceText

PHRASE, ALIAS = "phrase", "alias"
PATTERN, CONDITION, SAME, GIVEN, TYPED = "pattern", "condition", "same", "given", "typed"
"""What words belong to: the pattern; a condition; what is the same; what is given; what a phrase means."""
POLICY = frozenset(word for name in written_policies() for word in name.split("-"))
TIMES = ("within", "by", "wait", "every")
LINKS = frozenset({"then", "followed", "after", "within", "by", "without", "together", "called", "before", "times", "at", "any"})


def walk_of(source: SourceText) -> PrettyWalk:
    return PrettyWalk(list(lexed(source, ours(OPERATORS), HASH)))


def marks(source: SourceText) -> Iterator[Mark]:
    walk = walk_of(source)
    yield from walk.phrases()
    yield from walk.types()
    yield from walk.marks()


class PrettyWalk(Walk):
    keywords = KEYWORDS | EXPRESSION_KEYWORDS

    def starts(self, at: int) -> bool:
        return at == 0 or self.text(at - 1) == "."

    def is_keyword(self, at: int) -> bool:
        return self.token(at).kind == "name" and self.word(at) in self.keywords and not self._is_function(at)

    def _is_function(self, at: int) -> bool:
        """`if` is one where a value may stand; behind a pattern it begins the condition."""
        before = self.word(at - 1)
        value = before in ("and", "or", "not", "where", "if") or (self.token(at - 1).kind == "op" and before != ")")
        return self.word(at) == "if" and self.is_call(at) and value

    def is_phrase(self, token: Token) -> bool:
        return token.kind == "text" and token.text[0] == '"'

    def phrases(self) -> Iterator[Mark]:
        """Texts in double quotes, where they are not times."""
        known = {token.value for at, token in enumerate(self.tokens) if self.is_phrase(token) and self.first(at) == at}
        for at, token in enumerate(self.tokens):
            timed = self.word(at - 1) in TIMES and self.word(at - 2) != "followed"
            if not self.is_phrase(token) or timed or len(token.text) < 3:
                continue
            first = self.first(at) == at and self.word(at + 1) == "means"
            kind = PHRASE if token.value in known or first or not is_name(token.value) else EVENT
            yield Mark(token.start + 1, token.end - 1, kind, token.value, first, FILE if kind == PHRASE else "")

    def role(self, at: int) -> Role | None:
        if self.word(at - 1) == "report":
            return role(EVENT, True)
        if self.word(at - 1) == "called":
            return role(ALIAS, True, self.scope(at))
        if self.word(at) in POLICY and self.word(at - 1) in ("using", "best"):
            return role(KEYWORD)
        part = self._parts[at]
        if part == GIVEN and self.text(at + 1) == "=" and self.word(at - 1) in ("with", ","):
            return role(ATTRIBUTE, True)
        if part == SAME:
            return role(ATTRIBUTE)
        return role(EVENT) if part in (PATTERN, TYPED) else None

    @cached_property
    def _parts(self) -> list[str]:
        found, part, depth = [], PATTERN, 0
        for at in range(len(self.tokens)):
            if self.first(at) == at:
                part, depth = PATTERN, 0
            part, depth = self._next(at, part, depth)
            found.append(part)
        return found

    def _next(self, at: int, part: str, depth: int) -> tuple[str, int]:
        """The part that the token belongs to, and how many brackets were open where a condition began."""
        word, open_ = self.word(at), self._depth(at)
        means = any(self.word(n) == "means" for n in range(self.first(at), at))
        if word == "where" or (word == "if" and self.is_keyword(at)):
            return CONDITION, open_
        if part == CONDITION and (means or open_ > depth):
            return part, depth
        if word == "with" and self.word(at - 1) != "together":
            return GIVEN, open_
        if word == "for" and self.word(at + 1) == "the":
            return SAME, open_
        if word == "using" or (word == "at" and self.word(at + 1) == "most"):
            return PATTERN, open_
        if part == CONDITION and self._ends_condition(at, word, open_ < depth):
            return PATTERN, open_
        return part, depth

    def _ends_condition(self, at: int, word: str, closed: bool) -> bool:
        """One behind a type; one behind all goes on."""
        if any(self.word(n) == "if" and self.is_keyword(n) for n in range(self.first(at), at)):
            return False
        return closed or word in LINKS or word in ("or", ",") or (word == "not" and self.word(at + 1) == "followed")

    def _depth(self, at: int) -> int:
        depth, owner = 0, self.owner(at)
        while owner != -1:
            depth, owner = depth + 1, self.owner(owner)
        return depth

    def aliases(self, at: int) -> Mapping[str, Role]:
        first, scope = self.first(at), self.scope(at)
        return {name: role(ALIAS, False, scope) for owner, name in self._aliases if owner == first}

    @cached_property
    def _aliases(self) -> frozenset[tuple[int, str]]:
        found = (n for n in range(1, len(self.tokens)) if self.word(n - 1) == "called" and self.token(n).is_name)
        return frozenset((self.first(n), self.named(n)) for n in found)
