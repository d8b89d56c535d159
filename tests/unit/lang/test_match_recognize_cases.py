"""Every row pattern query of the conformance cases is printed back, and what the cases leave out of errors and names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import coincide
from coincide.adapters.read import open_events
from coincide.errors import RuleError
from coincide.lang.matchrecognize.parse import parse
from coincide.lang.matchrecognize.print import print_file
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import check_detector
from coincide.testing.expected import read_expected

CASES = Path(__file__).parents[2] / "conformance" / "cases"
ACCEPTED = find_cases(CASES / "match-recognize")


def test_the_cases_are_there() -> None:
    assert len(ACCEPTED) >= 84
    assert len(find_cases(CASES / "match-recognize-errors")) == 79


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_print_parses_back(case: Case) -> None:
    for path in case.rules:
        file = parse(SourceText("rules.mr.sql", path.read_text(encoding="utf-8")))
        printed = print_file(file)
        assert parse(SourceText("printed.mr.sql", printed)) == file
        assert print_file(parse(SourceText("printed.mr.sql", printed))) == printed


def refused(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        coincide.loads(text, "matchrecognize")
    error = caught.value.diagnostics[0]
    assert error.span is not None
    return f"{error.span.line}:{error.span.column}: {error.message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS /* x", "1:58: comment is not closed"),
        ('SELECT * FROM "t MATCH_RECOGNIZE', "1:15: name is not closed"),
        ("SELECT * FROM t, u", "1:16: ',' is left to Spark SQL: here a query is SELECT … FROM … MATCH_RECOGNIZE (…) [WHERE …]"),
        ("SELECT * FROM t MATCH_RECOGNIZE (FOO", "1:34: expected a clause of MATCH_RECOGNIZE, found 'FOO'"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS 1 < 2 < 3)", "1:64: comparisons do not chain: use 'and'"),
        ("SELECT * FROM t MATCH_RECOGNIZE (MEASURES SUM(A.*) AS s", "1:49: '.*' can only stand in count"),
        ("SELECT * FROM t MATCH_RECOGNIZE (MEASURES CAST(v AS blob) AS s", "1:53: unknown type 'blob'"),
        ("SELECT * FROM t MATCH_RECOGNIZE (MEASURES TIMESTAMP 'x' AS s", "1:53: 'x' is not a timestamp"),
        ("SELECT * FROM t MATCH_RECOGNIZE (MEASURES PREV(v, 3000000000) AS s", "1:51: the number 3000000000 is too large"),
        ("SELECT count(*) AS n FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true)", "1:8: unknown function 'count'"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert refused(text) == message


def test_an_alternative_behind_one_that_takes_every_row_is_warned_about() -> None:
    rules = coincide.loads("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (X | A B) DEFINE A AS true) AS m", "matchrecognize")
    assert [w.head for w in rules.warnings] == ["rules.mr.sql:1:47: warning: 'A' is never reached: 'X' before it takes every row"]


def test_what_a_stream_must_know_is_warned_about() -> None:
    rules = coincide.loads("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A+ $) DEFINE A AS v > 1) AS m", "matchrecognize")
    assert [w.head.partition("warning: ")[2] for w in rules.streaming_warnings] == [
        "no WITHIN: a match can grow for ever and its rows are kept",
        "the query needs the end of its input",
    ]
    assert rules.warnings == ()


def test_a_budget_of_steps_ends_what_would_not_end() -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (PATTERN ((A | B)* X) DEFINE A AS COUNT(*) > 0, B AS ARRAY_AGG(v) IS NOT NULL
              AND ARRAY_AGG(A.v) IS NULL OR v > 0, X AS SUM(A.v) = 0.5) AS m"""
    rules = coincide.loads(text, "matchrecognize")
    events = [{"type": "t", "time": n, "v": 2**n} for n in range(40)]
    with pytest.raises(coincide.errors.RunError, match="the pattern needs more than 2000 steps from row 1"):
        coincide.detect(replace(rules, steps=2000), events)


def test_a_partition_that_is_forgotten_between_two_rows_of_an_instant() -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY v
      MEASURES COUNT(*) AS n PATTERN (A A) DEFINE A AS v > 0) AS m"""
    rules = coincide.loads(text, "matchrecognize")
    events = [{"type": "t", "time": time, "k": "x", "v": v} for time, v in enumerate([-2, -1, 1, 2, 0, 3, 4])]
    assert [d["n"] for d in coincide.detect(rules, events, tier="interpreter")] == [2, 2]


def test_partitions_of_flags_among_many_texts() -> None:
    """Flags are bytes in columns; their numbers come after those of all texts."""
    text = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k MEASURES COUNT(*) AS n PATTERN (A A) DEFINE A AS v > 0) AS m"
    rules = coincide.loads(text, "matchrecognize")
    keys: list[object] = [f"k{number}" for number in range(300)] + [True, False]
    events = [{"type": "t", "time": n, "k": key, "v": 1} for n, key in enumerate(keys * 2)]
    found = [coincide.detect(rules, events, tier=tier) for tier in ("interpreter", "kernel")]
    assert found[0] == found[1]
    assert len(found[0]) == 302


@pytest.mark.parametrize("case", [case for case in ACCEPTED if "/found-" in case.name], ids=lambda case: case.name)
def test_what_was_found_is_made_in_the_same_order_however_it_is_run(case: Case) -> None:
    """Cases compare detections in any order; these are about their order, too."""
    events = [event for batch in open_events(case.folder / "events.jsonl") for event in batch.events]
    made = check_detector(coincide.load(*case.rules), events, [len(events) // 2])
    assert made == read_expected(case.folder / "expected.jsonl")
