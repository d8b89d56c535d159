from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from coincide.expr.parse import parse_expression
from coincide.expr.spark import Untranslatable, holds, relaxed, value

pytestmark = pytest.mark.spark

SCHEMA = "v double, i bigint, s string, b boolean, at timestamp, on_day date, many array<int>, type string"
BIG = 2**53 + 1  # not a double
ROWS: list[tuple[Any, ...]] = [
    (6.0, 1, "a\\b", True, datetime(2020, 1, 1, 0, 0, 0, 1500, UTC), date(1970, 1, 2), [1], "a"),
    (float("nan"), 2, "😀", False, None, None, [2], "b"),
    (float("inf"), None, None, None, None, None, None, "a"),
    (4503599627370497.5, -3, "a%", None, datetime(9999, 12, 31, 23, 59, 59, 999000, UTC), None, None, "a"),
]


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(ROWS, SCHEMA)


def values(frame: Any, *texts: str) -> list[list[Any]]:
    chosen = [value(parse_expression(t), frame.schema).alias(f"v{i}") for i, t in enumerate(texts)]
    return [list(column) for column in zip(*frame.select(*chosen).collect(), strict=True)]


def test_columns(frame: Any) -> None:
    found = values(frame, "v", "i / 2", "at", "on_day", "many", "absent", "length(s)", "v > 5", "s like '%\\%'", "round(v)")
    v, half, at, day, many, absent, length, above, like, rounded = found
    assert v == [6.0, None, None, 4503599627370497.5]
    assert half == [0.5, 1.0, None, -1.5]
    assert at == [1577836800001.5, None, None, 253402300799999.0]
    assert day == [86_400_000.0, None, None, None]
    assert many == absent == [None] * 4
    assert length == [3.0, 1.0, None, 2.0]
    assert above == [True, None, None, True]
    assert like == [True, False, None, False]
    assert rounded == [6.0, None, None, 4503599627370498.0]


def test_whole_numbers_compare_by_all_their_digits(spark: Any) -> None:
    frame = spark.createDataFrame([(BIG, 7), (-3, 8)], "i bigint, j int")
    found = values(frame, "i = 9007199254740992", "i > 5", "i < -2.5", "i = j", "j = 7", "7 < j", "i in (1, 2, -3)")
    assert found == [[False, False], [True, False], [False, True], [False] * 2, [True, False], [False, True], [False, True]]


def test_an_infinite_divisor_is_null(frame: Any) -> None:
    assert values(frame, "1 / (v * 1e308)", "min(v * 1e308, 3)", "i % (i - 1)") == [
        [None] * 4,
        [None] * 4,
        [None, 0.0, None, -3.0],
    ]


def test_mixed_results_are_structs(frame: Any) -> None:
    (found,) = values(frame, "if(i = 1, s, i / 1)")
    assert [tuple(f) for f in found] == [(None, "a\\b", None), (2.0, None, None), (None, None, None), (-3.0, None, None)]


@pytest.mark.parametrize(
    "text", ["lower(s) = 'a'", "matches(s, 'a')", "concat(i, 'a') = 's'", "power(i, 2) > 1", "time > 5", "id = '1'"]
)
def test_what_may_differ_is_not_translated(frame: Any, text: str) -> None:
    with pytest.raises(Untranslatable):
        holds(parse_expression(text), frame.schema)


def test_a_tree_that_would_explode_is_not_translated(frame: Any) -> None:
    nested = "i"
    for _ in range(20):
        nested = f"1 / ({nested})"
    with pytest.raises(Untranslatable, match="too large"):
        holds(parse_expression(f"{nested} > 1"), frame.schema)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("v > 5 and lower(s) = 'a'", "v > 5"),
        ("not (v > 5 or matches(s, 'a'))", "v <= 5"),
        ("i between 1 and power(i, 2)", "i >= 1"),
        ("i not in (1, power(i, 2))", "i != 1"),
        ("(i = 1 or lower(s) = 'a' and i = 2) and type = 'a'", "(i = 1 or i = 2) and type = 'a'"),
    ],
)
def test_relaxed_keeps_what_it_can(frame: Any, text: str, same: str) -> None:
    column = relaxed(parse_expression(text), frame.schema)
    assert str(column) == str(holds(parse_expression(same), frame.schema))


@pytest.mark.parametrize("text", ["v > 5 or lower(s) = 'a'", "not (v > 5 and lower(s) = 'a')", "lower(s)", "upper(s) = 'A'"])
def test_relaxed_says_nothing_where_nothing_follows(frame: Any, text: str) -> None:
    assert relaxed(parse_expression(text), frame.schema) is None


def test_filters_are_pushed_down(frame: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame.drop("many").write.parquet(str(tmp_path / "events"))
    stored = frame.sparkSession.read.parquet(str(tmp_path / "events"))
    for text, pushed in {
        "v > 5": "GreaterThan(v,5.0)",
        "type = 'a'": "EqualTo(type,a)",
        "i >= 2": "GreaterThanOrEqual(i,2)",
    }.items():
        stored.filter(holds(parse_expression(text), stored.schema)).explain()
        assert pushed in capsys.readouterr().out


def test_names_are_quoted(spark: Any) -> None:
    frame = spark.createDataFrame([(1.0, "x")], "`stock-quote.change` double, `S` string")
    found = values(frame, "stock-quote.change + 1", "s is null")
    assert found == [[2.0], [True]]
