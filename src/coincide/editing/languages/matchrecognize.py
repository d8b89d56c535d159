"""Row patterns in SQL: queries, their clauses and variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from coincide.editing.lexing import lexed
from coincide.editing.marks import ATTRIBUTE, EVENT, FUNCTION, KEYWORD, Mark
from coincide.editing.walking import Role, Walk, role
from coincide.editing.words import parts_of
from coincide.expr.quantities import UNITS
from coincide.expr.tokens import Token
from coincide.lang.matchrecognize.expressions import RESERVED, folded, spelt
from coincide.lang.matchrecognize.parse import STARTS
from coincide.lang.matchrecognize.tokens import SqlScanner
from coincide.source import SourceText

NOTES = re.compile(r"--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/")
VARIABLE, TABLE = "variable", "table"
EVERYTHING = "events"


def walk_of(source: SourceText) -> SqlWalk:
    return SqlWalk(list(lexed(source, lambda text, offset: SqlScanner(text, offset=offset), NOTES)))


def marks(source: SourceText) -> Iterator[Mark]:
    walk = walk_of(source)
    yield from walk.types()
    yield from walk.marks()


class SqlWalk(Walk):
    """Words of the clause are names elsewhere: which they are is told by what stands around them."""

    keywords = RESERVED
    spaced_calls = True

    def starts(self, at: int) -> bool:
        return at == 0 or self.text(at - 1) == ";"

    def is_keyword(self, at: int) -> bool:
        token = self.token(at)
        if token.kind != "name" or self.text(at - 1) == ".":
            return False
        return self.word(at) in RESERVED or (self.word(at) in parts_of("matchrecognize") and self._is_clause_word(at))

    def _is_clause_word(self, at: int) -> bool:
        """A word of a clause where it cannot be a name: not behind AS or a comma, not before a dot, an AS or a sign."""
        if self.word(at - 1) in ("as", ",", "view", "by") or self.text(at + 1) in (".", "=", ",", "<", ">"):
            return False
        if self.word(at - 1) in ("pattern", "(") and self.word(at - 1) != "match_recognize" and self.word(at) not in STARTS:
            return self.word(at) in ("select", "permute")
        return self.text(at + 1) != "(" or self.word(at) in ("pattern", "match_recognize", "permute")

    def named(self, at: int) -> str:
        return spelt(self.token(at)) if self.token(at).is_name else ""

    def is_unit(self, at: int) -> bool:
        return self.token(at - 1).kind in ("number", "text") and self.word(at) in UNITS

    def role(self, at: int) -> Role | None:
        clause = self.clauses[at]
        if self.word(at - 1) == "as" and self.word(self.owner(at) - 1) == "cast":
            return role(KEYWORD)
        if self.is_call(at) and self.text(at - 1) != "." and clause != "PATTERN":
            return role(FUNCTION) if self.word(at) != "cast" else role(KEYWORD)
        if self.word(at) in ("interval", "timestamp") and self.token(at + 1).kind == "text":
            return role(KEYWORD)
        if self.word(at) in ("running", "final") and self.token(at + 1).is_name:
            return role(KEYWORD)
        if self.word(at - 1) == "view":
            return role(EVENT, True)
        if clause == "FROM":
            return self._table(at)
        if clause in ("PATTERN", "SUBSET", "AFTER MATCH SKIP"):
            return self._variable(at, clause == "SUBSET" and self.text(at + 1) == "=")
        if clause == "DEFINE" and self.word(at + 1) == "as" and self.owner(at) == self._bracket(at):
            return self._variable(at, True)
        if self.text(at + 1) == ".":
            if self.name(at) in self.variables(at):
                return self._variable(at, False)
            return self._tables(at).get(self.named(at), role(ATTRIBUTE))
        return role(ATTRIBUTE, self.word(at - 1) == "as")

    def name(self, at: int) -> str:
        return folded(self.token(at))

    def _named(self, at: int, token: Token) -> Iterator[Mark]:
        """Variables are known in upper case unless they are quoted; what stands behind dots is one name."""
        if self.text(at - 1) == "." and self.token(at - 2).is_name:
            return
        *_, first = [*super()._named(at, token)]
        last = at
        while self.text(last + 1) == "." and self.token(last + 2).is_name:
            last += 2
        if first.kind not in (VARIABLE, TABLE) and not (first.kind == EVENT and last > at):
            dotted = ".".join(self.named(n) for n in range(at, last + 1, 2))
            yield first if last == at else Mark(token.start, self.token(last).end, ATTRIBUTE, dotted)
            return
        yield first._replace(name=self.name(at)) if first.kind == VARIABLE else first
        if last > at:
            dotted = ".".join(self.named(n) for n in range(at + 2, last + 1, 2))
            yield Mark(self.token(at + 2).start, self.token(last).end, ATTRIBUTE, dotted)

    def _variable(self, at: int, defines: bool) -> Role:
        return role(VARIABLE, defines, self.scope(at))

    def _table(self, at: int) -> Role:
        if self.word(at - 1) in ("from", "*"):
            return role(KEYWORD) if self.text(at) == EVERYTHING else role(EVENT)
        if self._ends_match(at) and not any(self.word(n) == "view" for n in range(self.first(at), at)):
            return role(EVENT, True)
        return role(TABLE, True, self.scope(at))

    def _tables(self, at: int) -> Mapping[str, Role]:
        """What the table, or the match, is called in the statement."""
        named = [n for n in range(self.first(at), self.until(at)) if self.clauses[n] == "FROM" and self.is_name(n)]
        return {self.named(n): (kind, False, scope) for n in named for kind, _, scope in [self._table(n)]}

    def _ends_match(self, at: int) -> bool:
        """`MATCH_RECOGNIZE (…) AS name`."""
        closed = at - 2 if self.word(at - 1) == "as" else at - 1
        opened = [n for n in range(self.first(at), at) if self.owner(n) == -1 and self.text(n) == "("]
        return self.text(closed) == ")" and bool(opened) and self.word(opened[-1] - 1) == "match_recognize"

    @cached_property
    def clauses(self) -> list[str]:
        """The clause that each token stands in."""
        found, clause = [], ""
        for at in range(len(self.tokens)):
            outside = self.owner(at) == -1
            word = self.word(at)
            if self.first(at) == at:
                clause = ""
            if word == "select" and self.is_keyword(at):
                clause = "SELECT"
            elif word == "from" and self.is_keyword(at):
                clause = "FROM"
            elif word == "where" and self.is_keyword(at):
                clause = "WHERE"
            elif self.owner(at) == self._bracket(at) != -1 and word in STARTS and self.is_keyword(at):
                clause = STARTS[word]
            elif outside and self.text(at) == ")":
                clause = "FROM"
            found.append(clause)
        return found

    def _bracket(self, at: int) -> int:
        """Of the MATCH_RECOGNIZE that the token stands in, -1 if it does in none."""
        owner = self.owner(at)
        while owner != -1 and self.word(owner - 1) != "match_recognize":
            owner = self.owner(owner)
        return owner

    def variables(self, at: int) -> frozenset[str]:
        """Of the pattern and the subsets of a statement."""
        return self._variables.get(self.first(at), frozenset())

    @cached_property
    def _variables(self) -> Mapping[int, frozenset[str]]:
        found: dict[int, frozenset[str]] = {}
        for at, clause in enumerate(self.clauses):
            if clause in ("PATTERN", "SUBSET") and self.token(at).is_name and not self.is_keyword(at):
                found[self.first(at)] = found.get(self.first(at), frozenset()) | {self.name(at)}
        return found
