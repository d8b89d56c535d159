"""Expressions of the types that measures have, for engines that must know the types of detections' attributes in advance."""

from __future__ import annotations

from collections.abc import Mapping

from coincide.detection.rowpattern.expressions import Folded, Lookup
from coincide.expr.functions import BOOLEAN, TEXT
from coincide.expr.tree import Call, Expr, Literal, Reference
from coincide.lang.matchrecognize.definition import Classifier, MatchFact
from coincide.lang.matchrecognize.functions import OWN
from coincide.syntax import rebuilt

NUMBER, WORD, FLAG = Literal(0.0), Literal(""), Literal(True)
LIST = Call("set", ())
"""Whatever is not single."""


def example(tree: Expr, columns: Mapping[str, Expr] | None = None) -> Expr:
    """An expression over the columns of events that has the type of this one; names of `columns` stand for other expressions."""
    if isinstance(tree, Reference) and columns is not None and tree.name in columns:
        return columns[tree.name]
    if isinstance(tree, Classifier):
        return WORD
    if isinstance(tree, MatchFact):
        return FLAG if tree.function == "TIMED_OUT" else NUMBER
    if isinstance(tree, Lookup):
        return example(tree.operand, columns)
    if isinstance(tree, Folded):
        return _aggregate(tree)
    if isinstance(tree, Call) and tree.name in OWN:
        return _own(tree, columns)
    return rebuilt(tree, lambda child: example(child, columns))


def _aggregate(node: Folded) -> Expr:
    if node.function in ("min", "max", "min_by", "max_by"):
        return example(node.operands[0])
    if node.function == "array_agg":
        return LIST
    return FLAG if node.function.startswith("bool_") else NUMBER


def _own(node: Call, columns: Mapping[str, Expr] | None) -> Expr:
    if node.name in ("least", "greatest"):
        return Call("max", tuple(example(a, columns) for a in node.arguments))
    return {TEXT: WORD, BOOLEAN: FLAG}.get(OWN[node.name].result, NUMBER)
