"""Why, over a DataFrame: detections of Spark by their row or key, and why there is none."""

from __future__ import annotations

from typing import Any

import pytest

import coincide
from coincide.errors import InputError
from coincide.spark import detect, why

pytestmark = pytest.mark.spark

RULES = coincide.loads("detect X per u = (a ; b{v > 3}) within 5s", "ecco")
ROWS = [("a", 1000, "1", 1, 0), ("b", 2000, "2", 1, 4), ("a", 1000, "3", 2, 0), ("b", 9000, "4", 2, 4), ("a", 3000, "5", 1, 0)]
COLUMNS = ["type", "time", "id", "u", "v"]


def test_by_row_and_by_key(spark: Any) -> None:
    df = spark.createDataFrame(ROWS, COLUMNS)
    (row,) = detect(RULES, df, keys=True).collect()
    for named in (row, row.asDict(), row["_key"]):
        cause = why(RULES, df, detection=named)
        assert [part.event.id for part in cause.parts] == ["1", "2"]
        assert [met.text for met in cause.parts[1].conditions] == ["v > 3"]
    with pytest.raises(InputError, match="no detection has the key"):
        why(RULES, df, detection="nothing")
    with pytest.raises(InputError, match="more than 2 rows"):
        why(RULES, df, detection=row["_key"], most=2)
    assert why(RULES, df, detection=row, most=3).event.attributes["u"] == 1  # of its key there are three


def test_why_not(spark: Any) -> None:
    df = spark.createDataFrame(ROWS, COLUMNS)
    answer = why(RULES, df, rule="X", key={"u": 2})
    assert answer.misses[0].text == "a at 1000; b at 9000 is 3 s too late"
    assert why(RULES, df, key={"u": 1}).detections
