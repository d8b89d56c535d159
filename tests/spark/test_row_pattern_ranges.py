"""MATCH_RECOGNIZE without PARTITION BY, in ranges of time: the same rows as in one task."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

import coincide
from coincide.spark import match_recognize, sql

pytestmark = pytest.mark.spark

COUNT = 400
RISES = """ORDER BY t, n MEASURES MATCH_NUMBER() AS number, FIRST(n) AS since, COUNT(*) AS size, NEXT(v) AS following
    {rows} AFTER MATCH SKIP {skip} PATTERN (A B* C) WITHIN {within} ms
    DEFINE A AS v < PREV(v, 2), B AS v <> NEXT(v), C AS C.v > A.v"""


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Many at one time; some without."""
    rng = random.Random(3)
    times = sorted(rng.randrange(300) for _ in range(COUNT))
    return [{"t": None if n % 61 == 7 else float(t), "n": n, "v": rng.randrange(8)} for n, t in enumerate(times)]


@pytest.fixture(scope="module")
def frame(spark: Any, rows: list[dict[str, Any]]) -> Any:
    shuffled = random.Random(4).sample(rows, len(rows))
    return spark.createDataFrame([tuple(row.values()) for row in shuffled], "t double, n long, v long").repartition(3)


CASES = [
    ("PAST LAST ROW", "ONE ROW PER MATCH", 9, 5),
    ("TO NEXT ROW", "ALL ROWS PER MATCH WITH UNMATCHED ROWS", 40, 7),
    ("TO LAST C", "ONE ROW PER MATCH WITH TIMED OUT MATCHES", 3, 2),
]


@pytest.mark.brief(parameters=2)
@pytest.mark.parametrize(("skip", "shown", "within", "ranges"), CASES)
def test_ranges_give_what_one_task_gives(
    frame: Any, rows: list[dict[str, Any]], skip: str, shown: str, within: int, ranges: int
) -> None:
    clause = RISES.format(skip=skip, rows=shown, within=within)
    expected = coincide.match_recognize(rows, clause)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "no PARTITION BY")
        made = match_recognize(frame, clause, ranges=ranges)
    assert made.rdd.getNumPartitions() == ranges
    found = [row.asDict() for row in made.collect()]
    assert len(expected) > 10
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_what_goes_to_one_task_says_why(frame: Any, spark: Any) -> None:
    with pytest.warns(UserWarning, match="all rows go to one task\n.*without WITHIN"):
        match_recognize(frame, "ORDER BY t MEASURES 1 AS x PATTERN (A) DEFINE A AS v > 1", ranges=4)
    with pytest.warns(UserWarning, match="all rows go to one task"):  # there are too few of them to cut
        match_recognize(frame, "ORDER BY t MEASURES 1 AS x PATTERN (A) WITHIN 1 ms DEFINE A AS v > 1")
    frame.createOrReplaceTempView("few")
    numbered = "ORDER BY t MEASURES 1 AS x PATTERN (A) WITHIN 1 ms DEFINE A AS MATCH_NUMBER() > v"
    with pytest.warns(UserWarning, match=r"MATCH_NUMBER\(\), which depends on all matches before"):
        sql(spark, f"SELECT * FROM few MATCH_RECOGNIZE ({numbered})")


def test_an_error_of_the_scan_is_one_of_the_ranges(frame: Any) -> None:
    clause = "ORDER BY t, n MEASURES 1 AS x AFTER MATCH SKIP TO LAST B PATTERN (A B?) WITHIN 4 ms DEFINE A AS v > 1, B AS v > 6"
    with pytest.raises(Exception, match="AFTER MATCH SKIP TO B: the match has no row of 'B'"):
        match_recognize(frame, clause, ranges=4).collect()
