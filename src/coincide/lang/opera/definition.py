"""Opera definitions: frozen data, with source spans that do not count in comparisons. Names are the paper's."""

from __future__ import annotations

from dataclasses import dataclass, field

from coincide.expr.tree import Expr
from coincide.lang.shared.eventsets import (
    All,
    Bind,
    Condition,
    Difference,
    Element,
    EventSet,
    Intersection,
    Limit,
    Named,
    OfSet,
    OfType,
    OwnTimer,
    Terms,
    Union,
)
from coincide.lang.shared.times import TimeSpec
from coincide.source import Span
from coincide.syntax import walk

__all__ = [
    "All",
    "Bind",
    "Condition",
    "Difference",
    "Element",
    "EventSet",
    "Intersection",
    "Limit",
    "Named",
    "OfSet",
    "OfType",
    "OwnTimer",
    "Terms",
    "Union",
]
"""Sets of events, which all languages know, belong to it."""

# Expressions. Chains of a left-associative operator are flat: `a b c` has three parts, `a (b c)` two.


@dataclass(frozen=True)
class Expression(Element):
    """A composite event expression."""


@dataclass(frozen=True)
class Item(Element):
    events: EventSet
    alias: str | None = None


@dataclass(frozen=True)
class Atom(Expression):
    """`[A, B in S]`, or `[!E in S]` if negated (it has one item then). Without a domain the items are the domain."""

    items: tuple[Item, ...]
    domain: EventSet | None = None
    negated: bool = False

    @property
    def matched(self) -> tuple[Item, ...]:
        """What it matches: `[!E in S]` is `[S \\ E in S]`, so what S binds, its event binds (OP-3)."""
        if not self.negated:
            return self.items
        assert self.domain is not None
        (item,) = self.items
        return (Item(Difference(self.domain, item.events), item.alias, span=item.span),)


def aliased_items(body: Element) -> list[Item]:
    """What atoms match under an alias."""
    return [item for atom in walk(body) if isinstance(atom, Atom) for item in atom.matched if item.alias is not None]


@dataclass(frozen=True)
class Empty(Expression):
    """`eps`."""


@dataclass(frozen=True)
class Concatenation(Expression):
    """Weak succession."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Sequence(Expression):
    """Strong succession, `;`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Iteration(Expression):
    body: Expression


@dataclass(frozen=True)
class Alternation(Expression):
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Parallel(Expression):
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Timing(Expression):
    """`(first, second) timer = time`."""

    first: Expression
    second: Expression
    timer: str
    time: TimeSpec
    timer_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Group(Expression):
    """`[body in domain]`."""

    body: Expression
    domain: EventSet


@dataclass(frozen=True)
class Inlined(Expression):
    """A bare name: an expression or a detector's expression stands here."""

    name: str


Chain = Concatenation | Sequence | Alternation


def chained(kind: type[Chain], left: Expression, right: Expression, span: Span | None = None) -> Expression:
    """`left right`, `left ; right` or `left | right`, flat where the left one is such a chain itself."""
    parts = left.parts if isinstance(left, kind) else (left,)
    return kind((*parts, right), span=span)


LARGEST = 2_000
"""Atoms of what a repeat is written out to."""


def most_times(unit: Expression) -> int:
    """How often an expression can be repeated by a number: it is written out so many times."""
    return max(1, LARGEST // max(1, sum(isinstance(node, Atom) for node in walk(unit))))


def nullable(expression: Expression) -> bool:
    """Can it match without any event?"""
    if isinstance(expression, Concatenation | Sequence):
        return all(map(nullable, expression.parts))
    if isinstance(expression, Alternation):
        return any(map(nullable, expression.parts))
    if isinstance(expression, Group):
        return nullable(expression.body)
    return isinstance(expression, Empty | Iteration)


# Statements.


@dataclass(frozen=True)
class Policy(Element):
    """When an event may be consumed. `kind` is best-effort, guaranteed or probabilistic (which has a threshold)."""

    kind: str
    threshold: float = 1.0


@dataclass(frozen=True)
class Sources(Element):
    names: tuple[str, ...]


@dataclass(frozen=True)
class EventDeclaration(Element):
    name: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SetDefinition(Element):
    name: str
    events: EventSet


@dataclass(frozen=True)
class ExpressionDefinition(Element):
    name: str
    body: Expression


@dataclass(frozen=True)
class Attribute(Element):
    """`name = value` of a `with` clause; under the name `where`, the condition of a detection."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Detect(Element):
    """`detect name … = body with …`, as written; its span is that of the name."""

    name: str
    body: Expression
    restart: bool = False
    policy: Policy | None = None
    attributes: tuple[Attribute, ...] = ()
    condition: Attribute | None = None  # `where`: what is detected must satisfy it


Statement = Sources | EventDeclaration | Limit | SetDefinition | ExpressionDefinition | Detect


@dataclass(frozen=True)
class Definition(Element):
    """A detector with all names resolved: what is planned. `attributes` have aliases told from dotted names."""

    name: str
    body: Expression
    restart: bool
    policy: Policy | None
    attributes: tuple[Attribute, ...]
    parameters: tuple[str, ...]  # in the order of first appearance
    condition: Attribute | None = field(default=None, repr=False)
    sources: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def computed(self) -> tuple[Attribute, ...]:
        """What is computed of a match: its attributes, and the condition that it must satisfy."""
        return self.attributes if self.condition is None else (*self.attributes, self.condition)


@dataclass(frozen=True)
class File:
    """One rule file: its statements as written, and its detectors resolved."""

    statements: tuple[Statement, ...]
    definitions: tuple[Definition, ...]
    limits: tuple[Limit, ...] = ()  # with all names resolved

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for s in self.statements if isinstance(s, Sources) for name in s.names)
