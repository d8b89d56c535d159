"""Functions of Spark's inside conditions and measures, as columns that Spark computes (MR-46)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add, and_, eq, ge, gt, le, lt, mod, mul, ne, or_, sub, truediv
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.tree import And, Arithmetic, Call, Compare, Expr, IsNull, Literal, Negate, Not, Or, Reference
from coincide.lang.matchrecognize.definition import Foreign
from coincide.lang.matchrecognize.functions import CALLABLE

ARITHMETIC: dict[str, Any] = {"+": add, "-": sub, "*": mul, "/": truediv, "%": mod, "||": F.concat}
COMPARE: dict[str, Any] = {"=": eq, "<>": ne, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def with_computed(frame: DataFrame, calls: Mapping[str, Foreign]) -> DataFrame:
    """The frame with a column for each call."""
    for name, call in calls.items():
        frame = frame.withColumn(name, _call(call, frame))
    return frame


def _call(call: Foreign, frame: DataFrame) -> Column:
    spark: SparkSession = frame.sparkSession
    if not spark.catalog.functionExists(call.name):
        hint = nearest(call.name.lower(), CALLABLE)
        raise RuleError(Diagnostic(f"unknown function '{call.name}'", call.span, hint=hint))
    return F.call_function(call.name, *(_column(argument, frame) for argument in call.arguments))


def _column(tree: Expr, frame: DataFrame) -> Column:
    """The arguments of a call, as Spark sees them."""

    def of(node: Expr) -> Column:
        return _column(node, frame)

    match tree:
        case Foreign():
            return _call(tree, frame)
        case Reference(name):
            known = [column.lower() for column in frame.columns]
            if name.lower() not in known and name.lower().partition(".")[0] not in known:
                near = nearest(name, frame.columns)
                message = f"no column '{name}' in the table{f'; {near}' if near else ''}"
                raise RuleError(Diagnostic(message, tree.span))
            parts = [name] if name.lower() in known else name.split(".")
            return F.col(".".join("`" + part.replace("`", "``") + "`" for part in parts))
        case Literal(value):
            whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
            return F.lit(int(value) if whole and isinstance(value, float) else value)
        case Arithmetic(op, left, right):
            return ARITHMETIC[op](of(left), of(right))
        case Compare(op, left, right):
            return COMPARE[op](of(left), of(right))
        case Negate(operand):
            return -of(operand)
        case Not(operand):
            return ~of(operand)
        case And(operands):
            return reduce(and_, map(of, operands))
        case Or(operands):
            return reduce(or_, map(of, operands))
        case IsNull(operand, negated):
            return of(operand).isNotNull() if negated else of(operand).isNull()
        case Call(name, arguments):
            return F.call_function(name, *map(of, arguments))
    raise RuleError(Diagnostic("this cannot be handed to a function of Spark's: compute it in a column before", tree.span))
