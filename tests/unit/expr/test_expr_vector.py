from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from coincide.expr.parse import parse_expression
from coincide.expr.parts import Unsupported
from coincide.expr.tree import Call
from coincide.expr.vector import Table, evaluate, holds, milliseconds_of, spaces_of
from coincide.model.column import column_of
from coincide.model.event import Value
from coincide.model.space import Space


def values(text: str, **columns: Sequence[Value]) -> list[Value]:
    length = len(next(iter(columns.values()))) if columns else 1
    column = evaluate(parse_expression(text), Table(length, {name: column_of(v) for name, v in columns.items()}))
    return [column.value(i) for i in range(length)]


def test_types_meet_only_their_like() -> None:
    assert values("x = 1", x=[1.0, "1", True, None]) == [True, None, None, None]
    assert values("x != 'a'", x=[1.0, "a", "b", False]) == [None, False, True, None]


def test_booleans_are_ordered() -> None:
    assert values("x < true", x=[False, True, None]) == [True, False, None]
    assert values("x >= true", x=[False, True, None]) == [False, True, None]


def test_three_valued_logic() -> None:
    assert values("x and y", x=[True, None, None, False], y=[None, False, True, None]) == [None, False, None, False]
    assert values("not x or y", x=[None, True], y=[True, None]) == [True, None]
    assert values("1 and x", x=[True, False]) == [None, False]


def test_an_option_of_another_type_makes_in_null_instead_of_false() -> None:
    assert values("x in (1, 'a', 2)", x=[1.0, 3.0, "a", "b", None]) == [True, None, True, None, None]
    assert values("x not in ('a', 'b', 'c')", x=["a", "d", 1.0]) == [False, True, None]


def test_overflow_and_division_by_zero_are_null() -> None:
    assert values("x * x", x=[1e200, 2.0]) == [None, 4.0]
    assert values("1 / (x * x)", x=[1e200, 2.0]) == [None, 0.25]
    assert values("x / 0 is null and x % 0 is null", x=[1.0]) == [True]


def test_halves_round_away_from_zero() -> None:
    assert values("round(x)", x=[0.5, -0.5, 2.5, 0.49999999999999994, 4503599627370497.0]) == [1, -1, 3, 0, 4503599627370497]


def test_rounding_to_digits_is_of_the_number_as_written() -> None:
    assert values("round(x, 2)", x=[2.675, -2.675, 0.125, 1e300, None]) == [2.68, -2.68, 0.13, 1e300, None]
    assert values("round(1250, x)", x=[-2.0, -3.0, 0.0, 500.0, -500.0, 0.5, None]) == [1300, 1000, 1250, 1250, 0, None, None]
    assert values("round(1.7e308, -308)", x=[0.0]) == [None]


def test_power_of_a_null_is_null() -> None:
    assert values("power(1, x)", x=[None, 2.0]) == [None, 1.0]
    assert values("power(x, 0)", x=[None, 2.0]) == [None, 1.0]


def test_texts_of_two_columns() -> None:
    assert values("s = t", s=["a", "b", None], t=["a", "a", "a"]) == [True, False, None]
    assert values("s < t", s=["a", "\U00010000", "b"], t=["b", "\uffff", "a"]) == [True, False, False]
    assert values("concat(s, t)", s=["a", "b", None, "a"], t=["x", "y", "z", "x"]) == ["ax", "by", None, "ax"]
    assert values("max(s, t)", s=["a", "b"], t=["b", None]) == ["b", None]


def test_concat_spells_numbers_as_json_does() -> None:
    assert values("concat(x, '/', 1.5)", x=[1.0, "a", 1e20, True, -0.0]) == ["1/1.5", "a/1.5", "1e+20/1.5", None, "0/1.5"]


def test_a_bad_regular_expression_is_null() -> None:
    assert values("matches('a', s)", s=["(", "a", "b"]) == [None, True, False]


def test_if_and_coalesce_mix_types() -> None:
    assert values("if(x > 1, 'big', x)", x=[0.0, 2.0, None]) == [0.0, "big", None]
    assert values("coalesce(x, y, 7)", x=[None, "a", None], y=[True, None, None]) == [True, "a", 7.0]


def test_constants_are_stretched() -> None:
    assert values("'a'", x=[1.0, 2.0]) == ["a", "a"]
    assert holds(parse_expression("true"), Table(3)).tolist() == [True, True, True]
    assert holds(parse_expression("'a'"), Table(2)).tolist() == [False, False]
    assert values("concat('a', 'b')") == ["ab"]


def test_a_column_of_no_rows() -> None:
    assert values("lower(s) = 'a' and v > 1", s=[], v=[]) == []


def test_an_absent_attribute_is_null() -> None:
    assert values("y is null", x=[1.0]) == [True]


def test_within_a_radius_decides_the_border_as_objects_do() -> None:
    spaces = spaces_of([Space(3.0, 4.0), Space(3.0, 4.000001), None, Space(zone="hall"), Space(lat=0.0, lon=1.0)])
    table = Table(5, {}, space=spaces)
    found = evaluate(parse_expression("within_radius(0, 0, 5)"), table)
    assert [found.value(i) for i in range(5)] == [True, False, None, None, False]
    zones = evaluate(parse_expression("zone()"), table)
    assert zones.value(3) == "hall"


def test_huge_numbers_do_not_hide_a_box() -> None:
    table = Table(1, {}, space=spaces_of([Space(1e308, 1e308)]))
    assert holds(parse_expression("within_box(-1e308, -1e308, 1.5e308, 1.5e308)"), table).tolist() == [True]


def test_milliseconds_are_exact_after_2255() -> None:
    instants = np.array([253402300799001000, 1_001, -5], np.int64)
    assert milliseconds_of(instants).tolist() == [253402300799001.0, 1.001, -0.005]


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(Unsupported, match="'total'"):
        evaluate(Call("total", ()), Table(1))


def test_ten_thousand_options() -> None:
    options = ", ".join(f"'t{i}'" for i in range(10_000))
    assert values(f"s in ({options})", s=["t9999", "u"]) == [True, False]
