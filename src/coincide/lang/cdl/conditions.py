"""Predicates and filters as conditions: one tree of the expression language each, whatever form they were written in.

What the language has no operator for becomes a call of a name that no text can spell with these arguments."""

from __future__ import annotations

from itertools import pairwise

from coincide.expr.tree import TRUE, And, Between, Call, Compare, Expr, In, IsNull, Like, Literal, Reference
from coincide.lang.cdl.definition import Attribute, Filter, Predicate
from coincide.lang.cdl.functions import COMPARISONS, OPERATORS, PRESENCE, TEXT_PREDICATES
from coincide.lang.cdl.preferences import PREFERENCES
from coincide.source import Span

CONSTANTS = {"true": True, "false": False, "unknown": None}


def presence(predicate: Predicate) -> tuple[str, Expr] | None:
    """`any` or `none` and what it asks for, of a predicate that is nothing else."""
    if predicate.name is not None:
        name = predicate.name.lower()
        return (name, predicate.arguments[0]) if name in PRESENCE else None
    (tree,) = predicate.arguments
    return (tree.name, tree.arguments[0]) if isinstance(tree, Call) and tree.name in PRESENCE else None


def condition_of(predicate: Predicate) -> Expr:
    """The predicate as a condition. `any` and `none` test for null: what they are in preferences."""
    if predicate.name is None:
        return predicate.arguments[0]
    return _condition(predicate.name, predicate.arguments, predicate.of, predicate.span)


def _condition(name: str, arguments: tuple[Expr, ...], of: str | None, span: Span | None) -> Expr:
    name = OPERATORS.get(name, name.lower())
    if name in COMPARISONS:
        pairs = tuple(Compare(COMPARISONS[name], a, b, span=span) for a, b in pairwise(arguments))
        return pairs[0] if len(pairs) == 1 else And(pairs, span=span)
    if name in CONSTANTS:
        return Literal(CONSTANTS[name], span=span)
    if name in PREFERENCES:
        return Call(name, arguments or (Literal(of or "self"),), span=span)
    if name == "between":
        x, low, high = arguments
        return Between(x, low, high, span=span)
    if name in ("in", "notin"):
        return In(arguments[0], arguments[1:], name == "notin", span=span)
    if name == "holds":
        return Compare("=", arguments[0], TRUE, span=span)
    if name in PRESENCE:
        return IsNull(arguments[0], name == "any", span=span)
    return _call(name, arguments, span)


def _call(name: str, arguments: tuple[Expr, ...], span: Span | None) -> Expr:
    if name == "like":
        return Like(arguments[0], arguments[1], span=span)
    if name in TEXT_PREDICATES:
        return Call(TEXT_PREDICATES[name], arguments, span=span)
    if name in ("before", "concurrent", "overlaps"):
        return Call(name, arguments, span=span)
    return Call("predicate", (Literal(name), *arguments), span=span)


def filter_condition(anchor: str, attribute: Attribute, node: Filter) -> Expr:
    """A filter of an attribute. Two operators and one interval: each takes a bound."""
    if not node.operators:
        return node.values[0]
    own = Reference(f"{anchor}.{attribute.name}", span=node.span)
    only = node.values[0] if len(node.values) == 1 else None
    if len(node.operators) == 2 and isinstance(only, Call) and only.name == "range":
        bounds = zip(node.operators, only.arguments, strict=True)
        tests = tuple(_condition(operator, (own, bound), None, node.span) for operator, bound in bounds)
    else:
        tests = tuple(_condition(operator, (own, *node.values), None, node.span) for operator in node.operators)
    return tests[0] if len(tests) == 1 else And(tests, span=node.span)
