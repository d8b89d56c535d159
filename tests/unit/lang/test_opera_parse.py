"""Opera's core language: text to definitions and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.errors import RuleError
from coincide.lang.opera.definition import Alternation, Concatenation, Detect, Group, Iteration, Sequence, Timing
from coincide.lang.opera.parse import parse
from coincide.lang.opera.print import definition_text, print_file
from coincide.lang.shared.times import CYCLE, At
from coincide.rulebook import loads
from coincide.source import SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases"
RULES = sorted(CASES.glob("opera/*/rules.ce")) + sorted(CASES.glob("opera-policies/*/rules.ce"))


def parsed(text: str):
    return parse(SourceText("rules.ce", text))


def body(text: str):
    return parsed(f"detect X = {text}").statements[0].body


def error(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        parsed(text)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.span is not None
    return f"{diagnostic.span.line}:{diagnostic.span.column}: {diagnostic.message}"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
def test_printing_a_case_and_parsing_it_gives_the_same(path: Path) -> None:
    file = parsed(path.read_text())
    assert parsed(print_file(file)) == file
    assert [definition_text(d) for d in parsed(print_file(file)).definitions] == [definition_text(d) for d in file.definitions]


@pytest.mark.parametrize(
    "text",
    [
        "[A] [B] ; [C] | [D] || [E]",
        "[A] ([B] [C])",
        "([A] | [B]) ([C] ; [D])*",
        "[A] || ([B] || [C])",
        "([A], eps ; [B]) T = at '19:00 Europe/London' [C]",
        "[([A] ; [B]) in {C}]",
        "[!A(x = 1) as a in all(y > 2)] [B \\ {C, D} & E as e]",
        "[A(k = ?k, v > 3 or v is null) as a, B in {A, B, C(k = ?k)}]",
        "([A], [B]) T = 1h 30min",
    ],
)
def test_minimal_parentheses_stay_as_they_are(text: str) -> None:
    file = parsed(f"detect X = {text}")
    assert print_file(file) == f"detect X = {text}\n"
    assert parsed(print_file(file)) == file


def test_operators_bind_as_the_grammar_says() -> None:
    tree = body("[A] [B]* ; [C] | [D]")
    assert isinstance(tree, Alternation)
    assert isinstance(tree.parts[0], Sequence)
    assert isinstance(tree.parts[0].parts[0], Concatenation)
    assert isinstance(tree.parts[0].parts[0].parts[1], Iteration)


def test_left_chains_are_flat_and_right_ones_are_not() -> None:
    assert body("([A] [B]) [C]") == body("[A] [B] [C]")
    assert body("[A] ([B] [C])") != body("[A] [B] [C]")


def test_signs_of_the_paper() -> None:
    assert body("[¬A ⊆ {A, B}] ‖ [C] (ε | [D])") == body("[!A in {A, B}] || [C] (eps | [D])")


def test_a_group_begins_with_a_bracket() -> None:
    assert isinstance(body("[[A] [B] in {C}]"), Group)
    assert isinstance(body("[([A], [B]) T = 5 in {C}]"), Group)


def test_a_unit_after_a_number_is_its_unit() -> None:
    tree = body("([A], [B]) T = 10 s [C]")
    assert isinstance(tree, Concatenation)
    assert isinstance(tree.parts[0], Timing)
    assert tree.parts[0].time.due(0) == 10_000_000


def test_detect_options() -> None:
    (statement,) = parsed("detect X policy probabilistic 0.5 restart = [A]").statements
    assert isinstance(statement, Detect)
    assert statement.restart
    assert statement.policy is not None
    assert (statement.policy.kind, statement.policy.threshold) == ("probabilistic", 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("detect X = [A] with v = 1, v = 2", "1:28: attribute 'v' is given twice"),
        ("detect X = [A(k = ?k)] with k = 2", "1:29: attribute 'k' is given twice"),
        ("detect X = [A] with time = 2", "1:21: 'time' cannot be an attribute name"),
        ("detect X = [heartbeat]", "1:13: heartbeats never reach a detector"),
        ("detect X = ([A], [T(x = 1)]) T = 1s", "1:19: the timer 'T' takes no filter"),
        ("set T = {A}\ndetect X = ([A], [B]) T = 1s", "2:23: the timer name 'T' is already defined"),
        ("set S = {R}\nset R = {S}", "2:10: set 'S' is defined in terms of itself"),
        ("detect X = [Y]\ndetect Y = [X]", "1:8: detector 'X' uses its own detections"),
        ("detect X = [A(v = 1 and k = ?x)]", "1:29: a free parameter stands only as"),
        ("detect X = [A(k = ?x and v = 1)]", "1:19: a free parameter stands only as"),
        ("detect X = [A as a] with n = count(b)", "1:26: 'count(b)' is neither a parameter nor"),
        ("detect X = [A as a] with n = sum(a)", "1:26: 'sum(a)' is neither a parameter nor"),
        ("detect X policy often = [A]", "1:17: expected best-effort, guaranteed or probabilistic, found 'often'"),
        ("detect X = ([A], [B]) T = 2mn", "1:28: unknown unit of time 'mn'"),
        ("detect X = ", "1:12: expected an expression, found end of file"),
        ("X = [A]", "1:1: expected a definition, found 'X'"),
        ("expr E = [A]** ", "1:14: cannot iterate"),
        (
            "event A(k number)\nevent B(k string)\ndetect X = [A(k = ?k)] [B(k = ?k)]",
            "3:25: cannot compare a number with a string",
        ),
        ("set S = {P, B}\ndetect P = [A]\ndetect X = [S(id = '1')]", "3:13: the ids of composite type 'P'"),
        ("detect X = ([A], [B]) T = at '25:00'", "1:30: expected an ISO-8601 instant"),
        ("detect X = " + "(" * 120 + "[A]" + ")" * 120, "1:112: the expression is nested more than 100 deep"),
    ],
)
def test_errors(text: str, message: str) -> None:
    assert message in error(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("detect X policy garanteed = [A]", "guaranteed"),
        ("detekt X = [A]", "detect"),
        ("event A(k numbr)", "number"),
        ("event A(key number)\ndetect X = [A(kee = 1)]", "key"),
    ],
)
def test_hints(text: str, meant: str) -> None:
    with pytest.raises(RuleError) as caught:
        parsed(text)
    assert caught.value.diagnostics[0].hint == f"did you mean '{meant}'?"


def test_several_files_share_the_names_of_detectors() -> None:
    from coincide.rulebook import load

    with pytest.raises(RuleError, match="'X' is already defined"):
        load(SourceText("a.ce", "detect X = [A]"), SourceText("b.ce", "detect X = [B]"))


def messages(text: str) -> list[str]:
    return [warning.message for warning in loads(text, "ce").warnings]


def test_warnings() -> None:
    assert messages("detect X = [A]") == []
    assert messages("detect X = [A] ; [B]") == ["X can wait without limit for B"]
    assert messages("detect X = ([A], [B]) T = 1s") == []
    assert messages("detect X = [A in {A, B}]") == ["the start of 'X' can fail, and then it detects no more; 'restart' keeps it"]
    assert messages("detect X restart = [A in {A, B}]") == []
    assert messages("detect X = ([A], [A]*) T = 5") == ["X reports every run of A: cost grows with the square of the input"]
    assert "without 'sources'" in messages("detect X policy guaranteed = [A]")[0]
    assert messages("sources s\ndetect X policy guaranteed = [A]") == []


def test_the_digest_follows_what_is_meant_not_how_it_is_written() -> None:
    def digests(text: str) -> list[str]:
        return [d.digest for d in loads(text, "ce").detectors]

    assert digests("detect X = [A];[B]") == digests("expr E = [A] ; [B]  # named\ndetect X = E")
    assert digests("set S = {A}\ndetect X = [S]") != digests("set S = {B}\ndetect X = [S]")
    assert digests("limit B every 1s\ndetect X = [A]") == digests("detect X = [A]")
    assert digests("limit A every 1s\ndetect X = [A]") == digests("detect X = [A]")  # a limit remembers by itself


@pytest.mark.parametrize("cycles", [-300, -5, 5, 300])
def test_a_time_of_day_comes_in_every_year_that_an_event_may_have(cycles: int) -> None:
    time, now = At("19:00 Europe/London"), 1_700_000_000_000_000
    assert time.due(now + cycles * CYCLE) == time.due(now) + cycles * CYCLE
