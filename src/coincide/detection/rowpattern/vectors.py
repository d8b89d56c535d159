"""Expressions of SQL over columns: what all languages share is vectorised; what only SQL has goes over the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from coincide.detection.rowpattern.expressions import ColumnCompiler
from coincide.expr.tree import Call, Expr, Reference, transform
from coincide.expr.vector import Table, evaluate
from coincide.lang.matchrecognize.functions import OWN
from coincide.model.column import Column, column_of
from coincide.model.event import Value
from coincide.syntax import walk

Columns = Mapping[str, Column]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SAME = {"least": "min", "greatest": "max"}
"""Functions of SQL under their names in other languages."""


def values_of(tree: Expr, columns: Columns, length: int) -> Column:
    """A lowered tree whose references are names of columns."""
    if isinstance(tree, Reference):
        return columns.get(tree.name) or Column(length)
    columns = read_by(tree, columns)
    if any(column.compounds is not None for column in columns.values()):
        return _row_by_row(tree, columns, length)
    made: dict[str, Column] = {}

    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Call) and node.name in SAME:
            return Call(SAME[node.name], node.arguments)
        if not (isinstance(node, Call) and node.name in OWN):
            return node
        name = f" call {len(made)}"
        made[name] = _row_by_row(node, {**columns, **made}, length)
        return Reference(name)

    plain = transform(tree, rewrite)
    return evaluate(plain, Table(length, {**columns, **made}))


def truth_of(tree: Expr, columns: Columns, length: int) -> Mask:
    flags = values_of(tree, columns, length).flags
    return np.zeros(length, np.bool_) if flags is None else flags == 1


def read_by(tree: Expr, columns: Columns) -> dict[str, Column]:
    """Of the columns those that a tree reads: to make all of them may be costly."""
    names = {node.name for node in walk(tree) if isinstance(node, Reference)}
    return {name: column for name in names if (column := columns.get(name)) is not None}


def _row_by_row(tree: Expr, columns: Columns, length: int) -> Column:
    compute = ColumnCompiler().compile(tree)
    read = read_by(tree, columns)
    known: dict[tuple[object, ...], Value] = {}
    values: list[Value] = []
    for row in range(length):
        here = {name: column.value(row) for name, column in read.items()}
        key = tuple((type(value), value) for value in here.values())
        if key not in known:
            known[key] = compute(here)
        values.append(known[key])
    return column_of(values)


def taken(column: Column, rows: Numbers) -> Column:
    """Values of some rows; null where the row is -1."""
    missing = rows < 0
    if not missing.any():
        return column.take(rows)
    if not len(column):
        return Column(len(rows))
    found = column.take(np.where(missing, 0, rows))
    numbers = None if found.numbers is None else np.where(missing, np.nan, found.numbers)
    codes = None if found.codes is None else np.where(missing, np.int32(-1), found.codes)
    flags = None if found.flags is None else np.where(missing, np.int8(-1), found.flags)
    compounds = found.compounds
    if compounds is not None:
        compounds = compounds.copy()
        compounds[missing] = None
    rests = None if found.rests is None else np.where(missing, np.int16(0), found.rests)
    return Column(len(rows), numbers, codes, found.texts, flags, compounds, rests)
