"""All back ends of expressions agree, and what is printed parses back."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.detection.columns.keys import key_codes
from coincide.detection.columns.numbers import comparable
from coincide.detection.columns.rows import TableRows
from coincide.expr.classes import Classifier
from coincide.expr.guards import Guarded
from coincide.expr.parse import parse_expression
from coincide.expr.print import expression_text
from coincide.expr.scalar import AliasScope, EventScope, compile_scalar
from coincide.expr.spark import Untranslatable, relaxed
from coincide.expr.spark import value as spark_value_column
from coincide.expr.tree import And, Between, Compare, Expr, In, IsNull, Literal, Not, Reference, with_aliases
from coincide.expr.vector import evaluate, evaluate_joined, holds
from coincide.model.batch import EventBatch
from coincide.model.column import Column, column_from_arrow, column_of, concatenated
from coincide.model.event import Event, Value, primitive
from coincide.model.numbers import number_of
from coincide.testing.strategies import EVENT_LEAVES, events, joined_trees, samples, table_of, trees, wholes


def typed(value: Value) -> tuple[str, Value]:
    """In Python 1.0 == True; here they differ."""
    return type(value).__name__, value


def typed_rows(column: Column) -> list[tuple[str, Value]]:
    return [typed(column.value(i)) for i in range(len(column))]


@given(trees(EVENT_LEAVES))
def test_print_parses_back(tree: Expr) -> None:
    assert parse_expression(expression_text(tree)) == tree


@given(joined_trees(["A", "B"]))
def test_print_parses_back_with_aliases(tree: Expr) -> None:
    assert with_aliases(parse_expression(expression_text(tree)), frozenset({"A", "B"})) == tree


@settings(max_examples=300, deadline=None)
@given(trees(EVENT_LEAVES), st.lists(events(), max_size=6))
def test_vector_is_scalar(tree: Expr, rows: list[Event]) -> None:
    scalar = compile_scalar(tree, EventScope())
    table = table_of(rows)
    column = evaluate(tree, table)
    expected = [scalar(e) for e in rows]
    assert typed_rows(column) == [typed(v) for v in expected]
    assert holds(tree, table).tolist() == [v is True for v in expected]


CONSTANTS: tuple[Value, ...] = (True, False, 0.0, 1.0, 2.0, 2.0**53, 2**53 + 1, 2.0**63, 2**63 - 1, "a", "b", None)


@st.composite
def comparisons(draw: st.DrawFn) -> Expr:
    """Of one attribute of mixed types with constants."""
    options = [Literal(value) for value in draw(st.lists(st.sampled_from(CONSTANTS), min_size=2, max_size=3))]
    x, (first, second, *_) = Reference("x"), options
    made = [Compare(draw(st.sampled_from(["=", "!=", "<", ">="])), x, first), In(x, tuple(options)), Between(x, first, second)]
    tree: Expr = draw(st.sampled_from([*made, IsNull(x)]))
    return Not(tree) if draw(st.booleans()) else tree


MORE: tuple[Value, ...] = (*CONSTANTS, 3.0, 2**53 + 3, 2**63 - 2, "c")


@given(st.lists(comparisons(), min_size=1, max_size=3), st.lists(st.sampled_from(MORE), min_size=1))
def test_classes_tell_apart_what_tests_do(tests: list[Expr], values: list[Value]) -> None:
    rows = TableRows(EventBatch([primitive("a", 0, 0, str(n), {"x": value}) for n, value in enumerate(values)]).table)
    classes = Classifier(tests).classify(rows)
    of_row = classes.numbers[classes.of_row]
    for test in tests:
        assert holds(test, rows).tolist() == holds(test, classes.representatives)[of_row].tolist()


KINDS_AND_VALUES = st.tuples(st.sampled_from("abe"), st.sampled_from(MORE))


def _typed_rows(values: list[tuple[str, Value]]) -> TableRows:
    return TableRows(EventBatch([primitive(kind, 0, 0, str(n), {"x": value}) for n, (kind, value) in enumerate(values)]).table)


@st.composite
def guarded(draw: st.DrawFn) -> Expr:
    """A comparison, of events of some types as a rule."""
    tree, kinds = draw(comparisons()), [Literal(kind) for kind in draw(st.sets(st.sampled_from("abcd"), max_size=2))]
    if not kinds:
        return tree
    of_kind = In(Reference("type"), tuple(kinds)) if len(kinds) > 1 else Compare("=", Reference("type"), kinds[0])
    return And((of_kind, tree))


@given(
    st.lists(guarded(), min_size=1, max_size=6),
    st.lists(st.lists(KINDS_AND_VALUES, min_size=1), min_size=2, max_size=2),
)
def test_classes_in_contexts_tell_apart_what_tests_do(tests: list[Expr], batches: list[list[tuple[str, Value]]]) -> None:
    """In each batch, and from one to the next."""
    with patch("coincide.expr.classes.MANY", 1):
        classifier = Classifier(tests)
    known: dict[tuple[int, ...], list[bool]] = {}
    for values in batches:
        rows = TableRows(
            EventBatch([primitive(kind, 0, 0, str(n), {"x": value}) for n, (kind, value) in enumerate(values)]).table
        )
        classes = classifier.classify(rows)
        truths = np.array([holds(test, rows) for test in tests]).T.tolist()
        for number, truth in zip(classes.numbers[classes.of_row].tolist(), truths, strict=True):
            assert known.setdefault(classes.keys[number], truth) == truth


@given(
    st.lists(guarded(), min_size=1, max_size=6), st.lists(st.tuples(st.sampled_from("abe"), st.sampled_from(MORE)), min_size=1)
)
def test_a_test_holds_only_where_it_is_looked_for(tests: list[Expr], values: list[tuple[str, Value]]) -> None:
    rows, found = _typed_rows(values), Guarded(tests)
    for row in range(len(values)):
        looked = {*found.others}
        for name, by_text in found.by_text.items():
            looked |= {*by_text.get(str(rows.table.column(name).value(row)), ())}
        held = [n for n, test in enumerate(tests) if holds(test, rows)[row]]
        assert looked.issuperset(held)


@settings(deadline=None)
@given(joined_trees(["A", "B", "C"]), st.lists(st.tuples(events(), events()), max_size=5))
def test_vector_over_joined_rows_is_scalar(tree: Expr, pairs: list[tuple[Event, Event]]) -> None:
    scalar = compile_scalar(tree, AliasScope())
    tables = {"A": table_of([a for a, _ in pairs]), "B": table_of([b for _, b in pairs])}  # C has no event
    column = evaluate_joined(tree, tables, len(pairs))
    assert typed_rows(column) == [typed(scalar({"A": a, "B": b})) for a, b in pairs]


def spark_schema() -> Any:
    from pyspark.sql import types as t

    mixed = t.StructType().add("number", "double").add("text", "string").add("flag", "boolean")
    kinds = {"double": "nm", "bigint": "kj", "string": ("s", "t", "type", "source"), "boolean": "b"}
    plain = {name: kind for kind, names in kinds.items() for name in names}
    fields = [t.StructField(name, t._parse_datatype_string(kind)) for name, kind in plain.items()]
    return t.StructType([*fields, t.StructField("x", mixed), t.StructField("missing", t.ArrayType(t.LongType()))])


def spark_row(event: Event) -> dict[str, Any]:
    mixed = event.attributes["x"]
    parts = {name: mixed if type(mixed) is kind else None for name, kind in (("number", float), ("text", str), ("flag", bool))}
    odd = {"n": math.nan, "m": -math.inf} if event.source == "a" else {}  # numbers of a frame that are none of ours
    missing = {name: number for name, number in odd.items() if event.attributes[name] is None}
    wholes = {name: None if (whole := event.attributes[name]) is None else int(whole) for name in ("k", "j")}  # type: ignore[arg-type]
    return event.attributes | wholes | missing | {"x": parts, "type": event.type, "source": event.source, "missing": [1]}


def spark_value(found: Any) -> Value:
    parts = found if isinstance(found, tuple) else (found,)
    value = next((p for p in parts if p is not None), None)
    return number_of(value) if type(value) is int else value


def translated(tree: Expr, schema: Any) -> Any:
    try:
        return spark_value_column(tree, schema)
    except Untranslatable:
        return None


@given(st.lists(wholes | st.none() | st.sampled_from([0.5, True, "1"]), max_size=8))
def test_columns_keep_whole_numbers(values: list[Value]) -> None:
    """As arrays, through Arrow and back, and joined with others."""
    column = column_of(values)
    back = column_from_arrow(column.to_arrow())
    assert typed_rows(back) == [typed(value) for value in values]
    assert typed_rows(concatenated([back, column_of([0.5]), column])) == [typed(value) for value in (*values, 0.5, *values)]


@given(st.lists(st.tuples(wholes | st.none(), wholes | st.floats(-1e19, 1e19)), min_size=1, max_size=8))
def test_keys_and_ranks_tell_whole_numbers_apart(pairs: list[tuple[Value, Value]]) -> None:
    first, second = (column_of([pair[side] for pair in pairs]) for side in (0, 1))
    codes, keys = key_codes([first])
    assert [None if code < 0 else keys[code][0] for code in codes.tolist()] == [a for a, _ in pairs]
    ranks = [array.tolist() for array in comparable([first, second])]
    for (a, b), rank, other in zip(pairs, *ranks, strict=True):
        if a is not None:
            assert ((a < b), (a == b)) == ((rank < other), (rank == other))  # type: ignore[operator]


@pytest.mark.spark
@pytest.mark.parametrize("start", [0, pytest.param(1, marks=pytest.mark.matrix)])
def test_spark_is_scalar(spark: Any, start: int) -> None:
    """Many trees in one job: starting a job takes longer than evaluating a tree."""
    some, rows = samples(trees(max_leaves=8, depth=2), 120, start), samples(events(), 40, start)
    schema = spark_schema()
    pairs = [(tree, column) for tree in some if (column := translated(tree, schema)) is not None]
    filters = [(tree, column) for tree in some if (column := relaxed(tree, schema)) is not None]
    frame = spark.createDataFrame([spark_row(e) for e in rows], schema)
    chosen = [c.alias(f"v{i}") for i, (_, c) in enumerate(pairs)] + [c.alias(f"f{i}") for i, (_, c) in enumerate(filters)]
    found = frame.select(*chosen).collect()
    assert len(pairs) > len(some) / 4
    for i, (tree, _) in enumerate(pairs):
        scalar = compile_scalar(tree, EventScope())
        assert [typed(spark_value(f[i])) for f in found] == [typed(scalar(e)) for e in rows], expression_text(tree)
    for i, (tree, _) in enumerate(filters, len(pairs)):
        scalar = compile_scalar(tree, EventScope())
        missed = [e for e, f in zip(rows, found, strict=True) if scalar(e) is True and f[i] is not True]
        assert not missed, expression_text(tree)
