from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from coincide.expr.compiled import Condition, Leaf, supports
from coincide.expr.parse import parse_expression
from coincide.expr.parts import Unsupported
from coincide.expr.tree import Expr, with_aliases
from coincide.expr.vector import Table
from coincide.model.column import column_of
from coincide.model.event import Value


def tree(text: str) -> Expr:
    return with_aliases(parse_expression(text), frozenset("ABC"))


def table(columns: Mapping[str, Sequence[Value]]) -> Table:
    return Table(len(next(iter(columns.values()))), {name: column_of(v) for name, v in columns.items()})


def matrix(
    text: str, a: Mapping[str, Sequence[Value]], b: Mapping[str, Sequence[Value]], jitted: bool = False
) -> list[list[bool]]:
    """What holds for each row of A with each row of B."""
    condition = Condition(tree(text))
    tables = {"A": table(a), "B": table(b)}
    bound = condition.bind(condition.hoist(tables))
    function = bound.function if jitted else bound.python

    def holds(i: int, j: int) -> bool:
        rows = np.array([{"A": i, "B": j}[str(alias)] for alias in condition.aliases])
        return bool(function(rows, bound.columns, bound.constants))

    return [[holds(i, j) for j in range(tables["B"].length)] for i in range(tables["A"].length)]


def test_what_is_about_one_alias_is_hoisted() -> None:
    condition = Condition(tree("A.x = C.x and B.v > A.v + 20 and A.v > 1 and A.w > 2"))
    assert condition.leaves == (
        Leaf("A", parse_expression("v > 1 and w > 2")),
        Leaf("A", parse_expression("x")),
        Leaf("C", parse_expression("x")),
        Leaf("B", parse_expression("v")),
        Leaf("A", parse_expression("v + 20")),
    )


@pytest.mark.parametrize("jitted", [False, True])
def test_a_condition_on_two_events(jitted: bool) -> None:
    a: dict[str, list[Value]] = {"x": ["k", "l"], "v": [1.0, None]}
    b: dict[str, list[Value]] = {"x": ["l", "k", "k"], "v": [50.0, 22.0, 21.0]}
    found = matrix("A.x = B.x and B.v > A.v + 20", a, b, jitted)
    assert found == [[False, True, False], [False, False, False]]


def test_texts_compare_by_order() -> None:
    assert matrix("A.s < B.s", {"s": ["b", "\uffff"]}, {"s": ["a", "c", "\U00010000"]}) == [
        [False, True, True],
        [False, False, True],
    ]


def test_constants_are_not_in_the_source() -> None:
    first, second = (Condition(tree(f"A.v + B.v > {n}")).bind([column_of([1.0]), column_of([2.0])]) for n in (1, 2))
    assert first.source == second.source
    assert first.function is second.function


def test_a_missing_event_is_null_in_every_attribute() -> None:
    condition = Condition(tree("A.v > 1 and (C.v is null or C.v > A.v)"))
    bound = condition.bind(condition.hoist({"A": table({"v": [2.0]})}))
    rows = np.array([0 if alias == "A" else -1 for alias in condition.aliases])
    assert bound.python(rows, bound.columns, bound.constants)


def test_texts_of_several_events_are_not_supported() -> None:
    assert supports(tree("concat(A.s, B.s) = 'x'")) == ["'concat' makes something of texts of several events"]
    assert supports(tree("distance(A, B) < 5")) == ["'distance' of several events"]
    assert supports(tree("lower(A.s) = lower(B.s) and length(concat(A.s, 1)) > B.n")) == []
    with pytest.raises(Unsupported):
        Condition(tree("contains(A.s, B.s)")).bind([column_of(["a"]), column_of(["a"])])


def test_numba_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, coincide.expr.compiled, coincide.expr.spark; assert not {'numba', 'pyspark'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("jitted", [False, True])
def test_a_remainder_between_two_events(jitted: bool) -> None:
    assert matrix("A.v % B.v = 1", {"v": [7.0, 8.0]}, {"v": [3.0, 0.0]}, jitted) == [[True, False], [False, False]]


def test_rounding_to_digits_across_events_is_not_compiled() -> None:
    assert supports(tree("round(A.v + B.v, 2) = 1")) == ["'round' to digits of values of several events"]
    assert supports(tree("round(A.v, 2) = round(B.v, 2)")) == []
