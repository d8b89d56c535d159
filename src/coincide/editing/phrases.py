"""Expressions inside other files: in attributes and contents of XML, in scalars of YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coincide.editing.lexing import HASH, lexed, ours
from coincide.editing.marks import Mark
from coincide.editing.walking import Role, Walk
from coincide.expr.tokens import Token
from coincide.source import SourceText

ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'"}


def expression_marks(text: str, start: int, known: Mapping[str, Role]) -> Iterator[Mark]:
    """Of a text that stands at `start`; `known` are names that may stand before a dot, or alone."""
    plain = text
    for entity, character in ENTITIES.items():
        plain = plain.replace(entity, character.ljust(len(entity)))
    walk = _PhraseWalk(list(lexed(SourceText("", plain), ours(), HASH)), known)
    for mark in (*walk.types(), *walk.marks()):
        yield mark._replace(start=mark.start + start, end=mark.end + start)


class _PhraseWalk(Walk):
    spaced_calls = True

    def __init__(self, tokens: Sequence[Token], known: Mapping[str, Role]) -> None:
        super().__init__(tokens)
        self.known = known

    def role(self, at: int) -> Role | None:
        return None

    def aliases(self, at: int) -> Mapping[str, Role]:
        return self.known
