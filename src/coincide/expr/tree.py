"""The expression tree that all languages share. Nodes compare by structure; spans do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from coincide.model.compound import Single
from coincide.syntax import Node, rebuilt, walk


@dataclass(frozen=True)
class Expr(Node["Expr"]):
    """A node. Every node class below is final."""


@dataclass(frozen=True)
class Literal(Expr):
    """A constant; durations are numbers of milliseconds. `kind` keeps 1 and true apart in comparisons of trees."""

    value: Single | None
    kind: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value).__name__)


@dataclass(frozen=True)
class Reference(Expr):
    """`name`, or `alias.name` once a language has told aliases from dotted names (`with_aliases`)."""

    name: str
    alias: str | None = None
    splits: tuple[int, ...] | None = field(default=None, compare=False, repr=False)
    """Of a name with back quotes in it: the places of its dots outside them, the only ones where an alias may end."""

    @property
    def text(self) -> str:
        return f"{self.alias}.{self.name}" if self.alias else self.name

    @property
    def dots(self) -> tuple[int, ...]:
        """The places of the dots at which an alias may end."""
        return tuple(n for n, c in enumerate(self.name) if c == ".") if self.splits is None else self.splits


@dataclass(frozen=True)
class Alias(Expr):
    """An event as an argument: of `start(a)`, `distance(a, b)` …; no name is the event under test."""

    name: str | None = None


@dataclass(frozen=True)
class And(Expr):
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class Or(Expr):
    operands: tuple[Expr, ...]


@dataclass(frozen=True)
class Not(Expr):
    operand: Expr


@dataclass(frozen=True)
class Compare(Expr):
    """op is one of = != < <= > >=."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class In(Expr):
    operand: Expr
    options: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True)
class Like(Expr):
    operand: Expr
    pattern: Expr
    negated: bool = False


@dataclass(frozen=True)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(frozen=True)
class HasOne(Expr):
    """Of sources only (`DetectorPlan.relevant`): one of the field's values, which may be several, is one of these."""

    field: str
    texts: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class Resembles(Expr):
    """Of sources only: a text of the field, which may have several, has something in it that one of these regular expressions (of
    Java) describes."""

    field: str
    expressions: tuple[str, ...]


@dataclass(frozen=True)
class Arithmetic(Expr):
    """op is one of + - * / %."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Negate(Expr):
    operand: Expr


@dataclass(frozen=True)
class Call(Expr):
    name: str
    arguments: tuple[Expr, ...]


TRUE = Literal(True)


def transform(tree: Expr, rewrite: Callable[[Expr], Expr]) -> Expr:
    """The tree rebuilt bottom-up with `rewrite` applied to every node."""
    return rewrite(rebuilt(tree, lambda inner: transform(inner, rewrite)))


def with_aliases(tree: Expr, aliases: frozenset[str]) -> Expr:
    """Dotted names split at the longest prefix that is a known alias; arguments that are aliases become Alias."""

    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Reference) and node.alias is None:
            return _split(node, aliases)
        if isinstance(node, Call) and node.name in ALIAS_FUNCTIONS:
            arguments = tuple(
                Alias(a.name, span=a.span) if isinstance(a, Reference) and a.alias is None and a.name in aliases else a
                for a in node.arguments
            )
            return replace(node, arguments=arguments)
        return node

    return transform(tree, rewrite)


ALIAS_FUNCTIONS = frozenset({"start", "end", "duration", "distance", "zone", "within_box", "within_radius"})


def aliases_of(tree: Expr) -> frozenset[str | None]:
    """The aliases that a tree is about; None is the event under test."""
    found: set[str | None] = set()
    for node in walk(tree):
        if isinstance(node, Reference):
            found.add(node.alias)
        elif isinstance(node, Alias):
            found.add(node.name)
        elif isinstance(node, Call) and node.name in ALIAS_FUNCTIONS and not any(isinstance(a, Alias) for a in node.arguments):
            found.add(None)
    return frozenset(found)


def without_aliases(tree: Expr) -> Expr:
    """A tree about one alias as one about the event under test."""

    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Reference):
            return Reference(node.name)
        if isinstance(node, Call) and node.name in ALIAS_FUNCTIONS and node.name != "distance":
            return Call(node.name, tuple(a for a in node.arguments if not isinstance(a, Alias)))
        return node

    return transform(tree, rewrite)


def _split(node: Reference, aliases: frozenset[str]) -> Reference:
    for dot in reversed(node.dots):
        if node.name[:dot] in aliases:
            rest = None if node.splits is None else tuple(n - dot - 1 for n in node.splits if n > dot)
            return Reference(node.name[dot + 1 :], node.name[:dot], rest, span=node.span)
    return node


def conjuncts(tree: Expr) -> Iterator[Expr]:
    """What all must hold for the tree to hold: the operands of its `and`s, however nested."""
    if isinstance(tree, And):
        for operand in tree.operands:
            yield from conjuncts(operand)
    else:
        yield tree
