"""Conformance cases as a library: what is found, how outcomes are compared, each kind of case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coincide.testing.cases import Case, CaseResult, find_cases, run_case
from coincide.testing.compare import answers, same, unmatched

RULES = "monitor m = repeat { push(x, v: v) { a } }\n"
EVENTS = [{"type": "a", "time": 1, "v": 0.1}, {"type": "b", "time": 2}, {"type": "a", "time": 3}]
FOUND = [{"type": "x", "time": 1, "from": ["1"], "v": 0.1}, {"type": "x", "time": 3, "from": ["3"]}]


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def result(folder: Path, **files: str) -> CaseResult:
    """Of a case with these files; `__` in a name is a dot, `_` a dash."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"rules__ecl": RULES, **files}.items():
        (folder / name.replace("__", ".").replace("_", "-")).write_text(text, encoding="utf-8")
    return run_case(Case(folder))


def signs(outcome: CaseResult) -> str:
    return "".join(problem.sign for problem in outcome.problems)


# Comparison.


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (1, 1.001, False),
        (1, True, False),
        ("1", 1, False),
        (None, 0, False),
        ({"a": None}, {}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], (1, 2), True),
        ([1, 2], [2, 1], False),
        ([], [1], False),
    ],
)
def test_equality(one: object, other: object, equal: bool) -> None:
    assert same(one, other) is equal
    assert same(other, one) is equal


def test_detections_compare_as_multisets() -> None:
    a, b = {"type": "x", "time": 1, "from": ["1"]}, {"type": "y", "time": 1, "from": ["1"]}
    assert unmatched([a, b, a], [b, a, a]) == ([], [])
    assert unmatched([a, a], [a, b]) == ([a], [b])
    assert unmatched([a], [a, a]) == ([], [a])


def test_what_does_not_count_in_a_detection() -> None:
    made = {"type": "x", "id": "x#1", "time": [5, 5], "from": [1], "v": None}
    assert unmatched([{"type": "x", "time": 5, "from": ["1"]}], [made]) == ([], [])


def test_answers_need_only_have_what_is_expected() -> None:
    answer = {"a": {"b": [1, 2], "c": 3}, "d": None}
    assert answers({"a": {"b": [1, 2]}, "d": None, "e": None}, answer) == []
    assert answers({"a": {"b": [2, 1]}}, answer) == ["a.b: expected [2, 1], found [1, 2]"]
    assert answers({"x": {"y": 1}}, answer) == ["x: expected {'y': 1}, found none"]


# Finding.


def test_cases_are_found_anywhere_below(tmp_path: Path) -> None:
    for name in ("b/2", "a/deep/er/1", "b/.hidden/3", "b"):
        result(tmp_path / name, expected__jsonl="")
    (tmp_path / "b/empty").mkdir()
    assert [str(case.folder.relative_to(tmp_path)) for case in find_cases(tmp_path)] == ["a/deep/er/1", "b", "b/2"]
    assert find_cases(tmp_path / "nowhere") == []


def test_rule_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        (tmp_path / f"rules.{number}.ecl").write_text("")
    assert [path.name for path in Case(tmp_path).rules] == ["rules.1.ecl", "rules.9.ecl", "rules.10.ecl"]


# Kinds.


def test_detections(tmp_path: Path) -> None:
    assert result(tmp_path, events__jsonl=lines(*EVENTS), expected__jsonl=lines(*FOUND)).passed


def test_detections_that_differ(tmp_path: Path) -> None:
    expected = [{**FOUND[0], "v": 0.2}, {"type": "y", "time": 1, "from": []}]
    outcome = result(tmp_path, events__jsonl=lines(*EVENTS), expected__jsonl=lines(*expected))
    assert signs(outcome) == "~-+"
    assert "v is 0.1, not 0.2" in str(outcome)
    assert str(outcome).startswith("FAILED ")


def test_several_files_and_until(tmp_path: Path) -> None:
    outcome = result(
        tmp_path,
        rules__ecl="",
        rules__1__ecl=RULES,
        rules__2__ecl="monitor n = repeat { push(y) { x } }",
        until="inf",
        events__jsonl=lines(EVENTS[2]),
        expected__jsonl=lines({"type": "y", "time": 3, "from": ["1"]}, {"type": "x", "time": 3, "from": ["1"]}),
    )
    assert outcome.passed, outcome


@pytest.mark.parametrize(
    ("expected", "passed"),
    [
        ("1:13: expected a predicate or a value, found '}'", True),
        ("1:13: expected a predicate", True),
        ("9:99: expected a predicate…", True),
        ("1:14: expected a predicate", False),
        ("1:13: something else", False),
        ("rules.ecl:1:13: expected a predicate", True),
        ("other.ecl:1:13: expected a predicate", False),
    ],
)
def test_errors(tmp_path: Path, expected: str, passed: bool) -> None:
    outcome = result(tmp_path, rules__ecl="monitor m = }", expected_error=expected + "\n")
    assert (outcome.kind, outcome.passed) == ("error", passed), outcome
    assert signs(outcome) == ("" if passed else "-+")


def test_rules_that_should_have_been_refused(tmp_path: Path) -> None:
    outcome = result(tmp_path, expected_error="1:1: no")
    assert outcome.problems[0].text == "expected the rules to be refused: 1:1: no"


def test_a_run_that_should_have_stopped(tmp_path: Path) -> None:
    outcome = result(tmp_path, expected_error="1:1: no", events__jsonl=lines(*EVENTS))
    assert outcome.problems[0].text == "expected the run to stop: 1:1: no"


def test_warnings(tmp_path: Path) -> None:
    rules = "monitor m = push(x) { a }"
    warning = "1:9: warning: monitor 'm' can push a bounded number of times only (no repeat?)"
    assert result(tmp_path, rules__ecl=rules, expected_warnings=warning + "\n").passed
    assert signs(result(tmp_path, rules__ecl=rules, expected_warnings="")) == "+"
    assert signs(result(tmp_path, rules__ecl=rules, expected_warnings=f"{warning}\n1:1: warning: more")) == "-"


def test_analysis(tmp_path: Path) -> None:
    folder = tmp_path / "ecl-analysis" / "case"
    assert result(folder, expected__json='{"monitors": {"m": {"letters": 2, "vacuous": false}}}').passed
    outcome = result(folder, expected__json='{"monitors": {"m": {"letters": 3}}}')
    assert outcome.problems[0].text == "monitors.m.letters: expected 3, found 2"


def test_what_cannot_be_run_fails_with_a_reason(tmp_path: Path) -> None:
    assert "there is no events.jsonl" in str(result(tmp_path / "1", expected__jsonl=""))
    assert "not a rule file that is known" in str(result(tmp_path / "2", rules__foo="", expected__jsonl=""))
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "expected.jsonl").touch()
    assert "there is no rule file" in str(run_case(Case(tmp_path / "0")))
    assert "no kind of case that is known" in str(result(tmp_path / "3", expected__json="{}"))
    assert "missing time" in str(result(tmp_path / "4", events__jsonl='{"type": "a"}\n', expected__jsonl=""))
    assert "expected.jsonl:1" in str(result(tmp_path / "5", events__jsonl=lines(*EVENTS), expected__jsonl="{"))
    assert "1:13: error: expected" in str(result(tmp_path / "6", rules__ecl="monitor m = }", expected__jsonl=""))


def test_a_mistake_of_ours_fails_its_case_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.rulebook.load", lambda *_, **__: 1 // 0)
    outcome = result(tmp_path, events__jsonl=lines(*EVENTS), expected__jsonl=lines(*FOUND))
    assert outcome.problems[0].text.startswith("ZeroDivisionError: ")
    assert "test_cases.py:" in outcome.problems[1].text
