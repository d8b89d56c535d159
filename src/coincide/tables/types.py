"""Types of results (section 12), and values as arrays of these types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.rowpattern.expressions import Folded, Lookup
from coincide.expr.functions import BOOLEAN, TEXT
from coincide.expr.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
)
from coincide.lang.matchrecognize.definition import Classifier, MatchFact
from coincide.lang.matchrecognize.functions import SQL_FUNCTIONS
from coincide.model.column import Column, column_from_arrow
from coincide.model.compound import ValueList, plain_compound
from coincide.model.event import plain
from coincide.model.numbers import is_number, plain_number

TypeOf = Callable[[str], pa.DataType]
"""The type of a column by its name."""

CONDITIONS = (And, Or, Not, Compare, In, Between, Like, IsNull)
INTEGER_RESULTS = {"length", "cast_integer"}


def type_of(tree: Expr, column: TypeOf, rowtime: pa.DataType) -> pa.DataType:
    """The type of a lowered tree; pa.null() of what is always null."""

    def of(node: Expr) -> pa.DataType:
        match node:
            case Lookup(operand):
                return of(operand)
            case Folded(function, operands):
                return _aggregate(function, [of(o) for o in operands])
            case Reference(name):
                return column(name)
            case Classifier():
                return pa.string()
            case MatchFact(function):
                return {"MATCH_NUMBER": pa.int64(), "TIMED_OUT": pa.bool_()}.get(function, rowtime)
            case Literal(value):
                return _literal(value)
            case Negate(operand):
                return _arithmetic("-", [of(operand)])
            case Arithmetic(op, left, right):
                return _arithmetic(op, [of(left), of(right)])
            case Call(name, arguments):
                return _call(name, [of(a) for a in arguments])
        if isinstance(node, CONDITIONS):
            return pa.bool_()
        raise TypeError(node)

    return of(tree)


def _literal(value: object) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if is_number(value):
        return pa.int64() if type(plain_number(value)) is int else pa.float64()
    return pa.null() if value is None else pa.string()


def _aggregate(function: str, operands: Sequence[pa.DataType]) -> pa.DataType:
    if function in ("count", "rows"):
        return pa.int64()
    if function in ("bool_and", "bool_or"):
        return pa.bool_()
    first = operands[0]
    if function == "array_agg":
        return pa.list_(first)
    if function in ("sum", "avg"):
        return pa.int64() if function == "sum" and pa.types.is_integer(first) else pa.float64()
    return first


def _arithmetic(op: str, operands: Sequence[pa.DataType]) -> pa.DataType:
    whole = op != "/" and all(pa.types.is_integer(kind) for kind in operands)
    return pa.int64() if whole else pa.float64()


def _call(name: str, arguments: Sequence[pa.DataType]) -> pa.DataType:
    function = SQL_FUNCTIONS[name]
    if name in INTEGER_RESULTS:
        return pa.int64()
    if name == "if":
        return _common(arguments[1:])
    if function.result == "the same":
        return _common(arguments)
    if name == "abs":
        return arguments[0] if pa.types.is_integer(arguments[0]) else pa.float64()
    return {TEXT: pa.string(), BOOLEAN: pa.bool_()}.get(function.result, pa.float64())


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    known = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    if len(known) <= 1:
        return known[0] if known else pa.null()
    if all(_is_number(kind) for kind in known):
        return pa.int64() if all(pa.types.is_integer(kind) for kind in known) else pa.float64()
    return pa.string() if any(_is_text(kind) for kind in known) else known[0]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def is_boolean(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


# Values


def column_of_array(array: pa.Array) -> Column:
    """What expressions can read of an array; anything that is not a single value is a list to them."""
    kind = array.type
    if _is_number(kind) or _is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column_from_arrow(array)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column_from_arrow(array)
    if pa.types.is_duration(kind):
        return column_from_arrow(pc.divide(array.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1000.0))
    there = array.is_valid().to_numpy(zero_copy_only=False)
    compounds = np.empty(len(array), np.object_)
    compounds[there] = ValueList()
    return Column(len(array), compounds=compounds)


def array_of(column: Column, kind: pa.DataType) -> pa.Array:
    """The values of a column as an array of a type."""
    if pa.types.is_list(kind) or column.compounds is not None:
        values = [column.value(row) for row in range(len(column))]
        return pa.array([plain_compound(v) if isinstance(v, ValueList) else plain(v) for v in values], _written(kind))
    if _is_text(kind):
        return _texts(column)
    if pa.types.is_boolean(kind):
        flags = np.full(len(column), -1, np.int8) if column.flags is None else column.flags
        return pa.array(flags == 1, mask=flags < 0)
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    numbers = np.full(len(column), np.nan) if column.numbers is None else column.numbers
    if column.rests is not None and pa.types.is_integer(kind) and (wholes := column.wholes) is not None:
        return pa.array(wholes, mask=np.isnan(numbers)).cast(kind, safe=False)
    return _numeric(numbers, kind)


def _written(kind: pa.DataType) -> pa.DataType:
    return kind if pa.types.is_list(kind) else None


def _texts(column: Column) -> pa.Array:
    if column.codes is None:
        return pa.nulls(len(column), pa.string())
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.texts, pa.string())).cast(pa.string())


def _numeric(numbers: Any, kind: pa.DataType) -> pa.Array:
    missing = np.isnan(numbers)
    if pa.types.is_floating(kind):
        return pa.array(numbers, mask=missing).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_duration(kind):
        micros = np.round(np.where(missing, 0, numbers) * 1000).astype(np.int64)
        moments = pa.array(micros, mask=missing)
        if pa.types.is_duration(kind):
            return moments.cast(pa.duration("us")).cast(kind)
        return moments.cast(pa.timestamp("us", getattr(kind, "tz", None))).cast(kind, safe=False)
    whole = pa.array(np.where(missing, 0, numbers), mask=missing)
    return whole.cast(kind, safe=False)
