"""What `coincide check` says of row patterns that are accepted but most likely not meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import coincide
from coincide.cli.main import main

WITHIN = "ORDER BY time PATTERN (A B+) WITHIN 1 hour DEFINE B AS"


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("PATTERN (A | B) DEFINE B AS v > 1", ["'B' is never reached: 'A' before it takes every row"]),
        ("PATTERN (C (A B | A B)) DEFINE B AS v > 1", ["'A' is never reached: the same alternative stands before it"]),
        ("PATTERN (A B) SUBSET U = (A, B) DEFINE B AS v > 1", ["the subset 'U' is never used"]),
        ("PATTERN (A B) SUBSET U = (A, B) DEFINE B AS SUM(U.v) > 1", []),
        (f"{WITHIN} v > 3 AND v < 2", ["the condition of 'B' is never true"]),
        (f"{WITHIN} B.v BETWEEN 5 AND 2", ["the condition of 'B' is never true"]),
        (f"{WITHIN} s = 'x' AND s IN ('y', 'z')", ["the condition of 'B' is never true"]),
        (f"{WITHIN} v IS NULL AND v >= 0", ["the condition of 'B' is never true"]),
        (f"{WITHIN} s = 'x' AND s > 3", ["the condition of 'B' is never true"]),
        (f"{WITHIN} v > 2 AND v < 3 AND A.v < 2", []),
        (f"{WITHIN} v > 3 OR v < 2", []),
        (f"{WITHIN} s > 'a' AND s < 'b' AND s <> 'aa'", []),
    ],
)
def test_warnings(clause: str, expected: list[str]) -> None:
    book = coincide.loads(f"SELECT * FROM t MATCH_RECOGNIZE ({clause}) AS m", "matchrecognize")
    assert [warning.message for warning in book.warnings] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A+) DEFINE A AS v > 1) AS m", "1:34: warning: on a stream: no WITHIN"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A $) DEFINE A AS v > 1) AS m", "on a stream: the query needs the end"),
        ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY v PATTERN (A) DEFINE A AS v > 1) AS m", "needs ORDER BY the column"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 1) AS m; "
            "SELECT * FROM m MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 1) AS n",
            "warning: 'n' reads 'm': on a stream both run in one task",
        ),
    ],
)
def test_what_streams_would_say(query: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.mr.sql").write_text(query)
    assert main(["check", str(tmp_path / "q.mr.sql")]) == 0
    assert expected in capsys.readouterr().err
