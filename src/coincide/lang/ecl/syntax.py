"""What the author wrote, before names mean anything: the tree between the parser and the definitions.

Tokens stay with it, because errors point at them and because labels and digests are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from coincide.expr.tokens import Token
from coincide.expr.tree import Expr
from coincide.source import SourceText, Span


@dataclass(frozen=True)
class Phrase:
    """A predicate or a value."""

    tree: Expr
    tokens: tuple[Token, ...]

    @property
    def label(self) -> str:
        """The text, with each run of white space and comments as one space."""
        parts = [self.tokens[0].text]
        for before, token in pairwise(self.tokens):
            parts += [" ", token.text] if before.end < token.start else [token.text]
        return "".join(parts)


@dataclass(frozen=True)
class PushSyntax:
    token: str
    attributes: tuple[tuple[Token, Phrase], ...]
    span: Span


@dataclass(frozen=True)
class Node:
    """A correlation expression. `operator` is its word, 'select*' or 'predicate'; a mode expression is an 'in' whose
    parts are guard, body, guard, body …"""

    operator: str
    span: Span
    parts: tuple[Node, ...] = ()
    maximum: int | None = None
    push: PushSyntax | None = None
    leaf: Phrase | None = None


@dataclass(frozen=True)
class PredicateSyntax:
    name: Token
    phrase: Phrase


@dataclass(frozen=True)
class MonitorSyntax:
    name: Token
    keys: tuple[Token, ...]
    body: Node
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class TransitionSyntax:
    """No `clear`: the default."""

    name: Token
    enabling: tuple[tuple[str, ...], ...]
    test: Phrase | None
    clear: tuple[str, ...] | None
    clears_all: bool
    target: tuple[str, ...]
    push: PushSyntax | None
    span: Span

    @property
    def enabling_states(self) -> frozenset[str]:
        return frozenset(state for clause in self.enabling for state in clause)


@dataclass(frozen=True)
class MachineSyntax:
    name: Token
    keys: tuple[Token, ...]
    initial: tuple[str, ...]
    transitions: tuple[TransitionSyntax, ...]
    order: tuple[tuple[Token, ...], ...]
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class FileSyntax:
    source: SourceText
    predicates: tuple[PredicateSyntax, ...]
    detectors: tuple[MonitorSyntax | MachineSyntax, ...]
