"""Expressions of row patterns on objects.

A condition or measure is a plain expression whose leaves look at rows: a *navigation* finds one row and evaluates its operand
there, an aggregate goes over several. `lookups` turns a tree into that form; how a row is found differs between conditions, which
see the rows mapped so far, and measures, which see the labels of a match."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from coincide.expr.scalar import COMPARE, ENVELOPE_FIELDS, Evaluate, ScalarCompiler, compare
from coincide.expr.tree import Compare, Expr, Reference, transform
from coincide.lang.matchrecognize.definition import Aggregate, Classifier, Clause, MatchFact, Navigation
from coincide.lang.matchrecognize.functions import SQL_FUNCTIONS, lowered
from coincide.model.compound import Several
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND
from coincide.syntax import rebuilt, walk


@dataclass(frozen=True)
class Lookup(Expr):
    """The operand at one row: the `back`-th from the front or the back of the visible rows of some variables, then so many
    rows of the partition on."""

    operand: Expr
    members: frozenset[int]
    first: bool = False
    back: int = 0
    shift: int = 0
    final: bool = False


@dataclass(frozen=True)
class Folded(Expr):
    """An aggregate over the visible rows of some variables; the operands are evaluated at each of them."""

    function: str
    operands: tuple[Expr, ...]
    members: frozenset[int]
    final: bool = False


def lookups(tree: Expr, clause: Clause) -> Expr:
    """The tree with all its leaves as Lookup, Folded and MatchFact."""
    numbers = {name: n for n, name in enumerate(clause.variables)}

    def members(inside: tuple[Expr, ...]) -> frozenset[int]:
        names = {n.alias if isinstance(n, Reference) else n.variable for n in _leaves(inside)}
        return frozenset(numbers[name] for name in clause.members(next(iter(names), None)))

    def rewrite(node: Expr) -> Expr:
        match node:
            case Navigation("PREV" | "NEXT", operand, offset):
                shift = -offset if node.function == "PREV" else offset
                inner = operand if isinstance(operand, Navigation) else Navigation("LAST", operand, 0)
                return _lookup(inner, members((inner.operand,)), shift)
            case Navigation():
                return _lookup(node, members((node.operand,)), 0)
            case Aggregate(function, arguments, semantics):
                name = "rows" if function == "count" and not arguments else function
                return Folded(name, tuple(map(_at_row, arguments)), members(arguments), semantics == "FINAL")
            case Reference() | Classifier():
                return Lookup(_at_row(node), members((node,)))
        return rebuilt(node, rewrite)

    return rewrite(lowered(tree))


def _lookup(node: Navigation, members: frozenset[int], shift: int) -> Lookup:
    first = node.function == "FIRST"
    return Lookup(_at_row(node.operand), members, first, node.offset, shift, node.semantics == "FINAL")


def _leaves(trees: tuple[Expr, ...]) -> Iterator[Reference | Classifier]:
    for tree in trees:
        yield from (node for node in walk(tree) if isinstance(node, (Reference, Classifier)))


def _at_row(tree: Expr) -> Expr:
    """A tree about one variable as one about the row that it is evaluated at."""

    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Reference):
            return Reference(node.name)
        return Classifier() if isinstance(node, Classifier) else node

    return transform(tree, rewrite)


def leaves_of(tree: Expr) -> Iterator[Lookup | Folded]:
    """The lookups and aggregates of a tree; they do not stand inside one another."""
    if isinstance(tree, (Lookup, Folded)):
        yield tree
        return
    for child in tree.children:
        yield from leaves_of(child)


def reads_labels(tree: Expr) -> bool:
    return any(isinstance(node, Classifier) for node in walk(tree))


# Evaluation


class AtRow(NamedTuple):
    """One row: the event, the variable that it is mapped to, and what is known of the match."""

    event: Event
    label: str | None
    match: Any


def row_field(name: str) -> Callable[[Event], Value]:
    """How a column is read; other than elsewhere, a list is a value."""
    special = ENVELOPE_FIELDS.get(name)
    return special if special is not None else lambda event: event.attributes.get(name)


class Compiler(ScalarCompiler):
    """What conditions, measures and the operands inside them have in common."""

    def __init__(self) -> None:
        super().__init__(None, SQL_FUNCTIONS)  # type: ignore[arg-type]

    def _compare(self, node: Compare) -> Evaluate:
        """Anything computed with a list is null."""
        op, left, right = COMPARE[node.op], self.compile(node.left), self.compile(node.right)

        def evaluate(environment: Any) -> bool | None:
            a = left(environment)
            return None if isinstance(a, Several) else compare(op, a, right(environment))

        return evaluate


class RowCompiler(Compiler):
    """Operands: the environment is an AtRow."""

    def _reference(self, node: Reference) -> Evaluate:
        read = row_field(node.name)
        return lambda at: read(at.event)

    def _classifier(self, node: Classifier) -> Evaluate:
        return lambda at: at.label

    def _matchfact(self, node: MatchFact) -> Evaluate:
        fact = FACTS[node.function]
        return lambda at: fact(at.match)


FACTS: dict[str, Callable[[Any], Value]] = {
    "MATCH_NUMBER": lambda match: None if match.number is None else float(match.number),
    "MATCH_ROWTIME": lambda match: None if match.rowtime is None else match.rowtime / MILLISECOND,
    "TIMED_OUT": lambda match: match.timed_out,
}


class EventCompiler(Compiler):
    """Filters of a table: the environment is an event."""

    def _reference(self, node: Reference) -> Evaluate:
        return row_field(node.name)


class ColumnCompiler(Compiler):
    """SELECT and WHERE: the environment maps names of columns to values."""

    def _reference(self, node: Reference) -> Evaluate:
        name = node.name
        return lambda columns: columns.get(name)
