"""Expressions as text that parses back to an equal tree, with no more parentheses than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from coincide.expr.functions import number_text
from coincide.expr.tokens import back_quoted, name_text
from coincide.expr.tree import (
    Alias,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    HasOne,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
    Resembles,
)

# How tightly a node binds: the levels of the grammar, loosest first.
OR, AND, NOT, TEST, SUM, PRODUCT, UNARY, PRIMARY = range(8)


def expression_text(tree: Expr) -> str:
    return _at(tree, OR)


def reference_text(node: Reference) -> str:
    """A name that was written in back quotes keeps them: what it would mean without them depends on the language."""
    if node.splits is None:
        name = name_text(node.name)
    else:
        ends = (-1, *node.splits, len(node.name))
        name = ".".join(back_quoted(node.name[start + 1 : end]) for start, end in pairwise(ends))
    return f"{name_text(node.alias)}.{name}" if node.alias else name


def _at(tree: Expr, level: int) -> str:
    """The tree where the grammar wants something that binds at least so tightly."""
    write, own = WRITERS[type(tree)]
    text: str = write(tree)
    return f"({text})" if (own(tree) if callable(own) else own) < level else text


def _list(items: Iterable[Expr]) -> str:
    return "(" + ", ".join(_at(i, OR) for i in items if i != Alias()) + ")"


def _literal(node: Literal) -> str:
    if isinstance(node.value, str):
        return "'" + node.value.replace("'", "''") + "'"
    if isinstance(node.value, bool):
        return str(node.value).lower()
    return "null" if node.value is None else number_text(node.value)


def _test(operand: Expr, negated: bool, rest: str) -> str:
    return f"{_at(operand, SUM)} {'not ' if negated else ''}{rest}"


def _between(node: Between) -> str:
    return _test(node.operand, node.negated, f"between {_at(node.low, SUM)} and {_at(node.high, SUM)}")


def _isnull(node: IsNull) -> str:
    return f"{_at(node.operand, SUM)} is {'not ' if node.negated else ''}null"


def _has_one(node: HasOne) -> str:
    values: list[str | float] = [*node.texts, *node.numbers]
    return f"{name_text(node.field)} has one of {_list(map(Literal, values))}"


def _arithmetic(node: Arithmetic) -> str:
    level = _arithmetic_level(node)
    return f"{_at(node.left, level)} {node.op} {_at(node.right, level + 1)}"


def _arithmetic_level(node: Arithmetic) -> int:
    return SUM if node.op in "+-" else PRODUCT


WRITERS: dict[type[Expr], tuple[Callable[[Any], str], int | Callable[[Any], int]]] = {
    Literal: (_literal, PRIMARY),
    Reference: (reference_text, PRIMARY),
    Alias: (lambda node: node.name or "", PRIMARY),
    Call: (lambda node: node.name + _list(node.arguments), PRIMARY),
    Or: (lambda node: " or ".join(_at(o, AND) for o in node.operands), OR),
    And: (lambda node: " and ".join(_at(o, NOT) for o in node.operands), AND),
    Not: (lambda node: f"not {_at(node.operand, NOT)}", NOT),
    Compare: (lambda node: f"{_at(node.left, SUM)} {node.op} {_at(node.right, SUM)}", TEST),
    In: (lambda node: _test(node.operand, node.negated, f"in {_list(node.options)}"), TEST),
    Between: (_between, TEST),
    Like: (lambda node: _test(node.operand, node.negated, f"like {_at(node.pattern, SUM)}"), TEST),
    IsNull: (_isnull, TEST),
    HasOne: (_has_one, TEST),
    Resembles: (lambda node: f"{name_text(node.field)} resembles {_list(map(Literal, node.expressions))}", TEST),
    Arithmetic: (_arithmetic, _arithmetic_level),
    Negate: (lambda node: f"-{_at(node.operand, UNARY)}", UNARY),
}
