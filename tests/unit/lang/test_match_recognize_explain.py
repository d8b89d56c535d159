"""What `explain` says of row patterns (MR-48)."""

from __future__ import annotations

import pytest

import coincide
from coincide.draw.rules import drawing


def explained(clause: str) -> dict[str, str]:
    text = coincide.explain(coincide.loads(f"SELECT * FROM t MATCH_RECOGNIZE ({clause}) AS m", "matchrecognize"))
    rows = (line.strip().split(None, 1) for line in text.splitlines() if line.startswith("    "))
    return {row[0]: row[1] for row in rows if len(row) == 2}


@pytest.mark.parametrize(
    ("clause", "what", "text"),
    [
        ("PATTERN (A B) DEFINE B AS v > PREV(v)", "decided", "with its last row"),
        ("PATTERN (A B) DEFINE B AS v > PREV(v)", "looks", "1 row back, 0 ahead"),
        ("PATTERN (A B) DEFINE B AS v > PREV(v)", "memory", "bounded by the length of the pattern"),
        ("PATTERN (A B+) DEFINE B AS v > 1", "decided", "one row later"),
        ("PATTERN (A B+) DEFINE B AS v > 1", "memory", "not bounded"),
        ("PATTERN (A B+) WITHIN 1 h DEFINE B AS v > 1", "memory", "bounded by WITHIN"),
        ("PATTERN (A B+) WITHIN 1 h DEFINE B AS v > PREV(v, 3)", "ranges", "overlap by 1h, 3 rows before and 1 after"),
        ("PATTERN (A B+) DEFINE B AS v > 1", "ranges", "one task on Spark: without WITHIN a match may be as long as the table"),
        ("PATTERN (A B) WITHIN 1 h DEFINE B AS MATCH_NUMBER() < v", "ranges", "a condition reads MATCH_NUMBER()"),
        ("PATTERN (A B $) DEFINE B AS v > 1", "streams", "`$` never holds there"),
        ("ORDER BY v PATTERN (A B) DEFINE B AS v > 1", "streams", "no: its rows are in order only when all of them are there"),
        ("PATTERN (A B) DEFINE B AS B.v > A.v", "merges", "that of B reads rows of the match before its own"),
        ("PATTERN (A B) DEFINE B AS B.v > A.v + SUM(v)", "tier", "kernel (compiled) from"),
        ("PATTERN (A B) DEFINE B AS MATCH_NUMBER() < 3", "tier", "kernel (compiled) from"),
        ("PATTERN (A B) DEFINE B AS ROUND(SUM(v)) = 1", "tier", "the condition of B uses ROUND() of rows of the match"),
        ("PATTERN (A B) DEFINE B AS ARRAY_AGG(v) IS NULL", "tier", "the condition of B keeps ARRAY_AGG of rows of the match"),
        ("PATTERN (A B) DEFINE B AS PREV(CLASSIFIER()) = 'A'", "tier", "the condition of B reads labels of the match"),
    ],
)
def test_explained(clause: str, what: str, text: str) -> None:
    assert text in explained(clause)[what]


def test_the_automaton_is_drawn() -> None:
    rules = coincide.loads("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (^ A B+? C) DEFINE B AS v > 1) AS m", "matchrecognize")
    drawn = drawing(rules.detectors[0], False)
    assert drawn is not None
    assert drawn.caption == "PATTERN (^ A B+? C)"
    ways = {(arrow.source, arrow.target, *arrow.labels) for arrow in drawn.arrows}
    assert {("start", "s0", "^"), ("s0", "s1"), ("s1", "s2", "1"), ("s1", "s3", "2"), ("s2", "match")} <= ways
