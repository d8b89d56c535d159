"""The English-like language: what it becomes in the core, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.errors import RuleError
from coincide.lang.opera.print import print_file as core
from coincide.lang.pretty.print import NotExpressible
from coincide.languages.pretty import LANGUAGE
from coincide.rulebook import load, loads
from coincide.source import SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases"
RULES = sorted(CASES.glob("pretty/*/rules.say"))


def parsed(text: str):
    return LANGUAGE.parse(SourceText("rules.say", text))


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("A followed by B", "[A] ; [B]"),
        ("A then B", "[A] [B]"),
        ("A after B", "[B] ; [A]"),
        ('A followed by B within "1h"', "([A], eps ; [B]) T-1 = 1h"),
        ('A then B within "1h"', "([A], [B]) T-1 = 1h"),
        ("A then B within 1 hr 30 mins", "([A], [B]) T-1 = 1hr 30mins"),
        ("A 2 times within 500 Then B within 1h", "(([A], [A]) T-1 = 500ms, [B]) T-2 = 1h"),
        ('A then B by "19:00"', "([A], [B]) T-1 = at '19:00'"),
        ("A then B without C", "[A] [[B] in {C}]"),
        ('A not followed by B within "10 ms"', "([A], [T-1 in {T-1, B}]) T-1 = 10ms"),
        ('A then wait "10s"', "([A], [T-1]) T-1 = 10s"),
        ("A or B", "[A] | [B]"),
        ("A together with B", "[A] || [B]"),
        ("optionally A then B", "([A] | eps) [B]"),
        ("A 3 times", "[A] [A] [A]"),
        ("A at least 2 times", "[A] [A] [A]*"),
        ("A then B any number of times", "[A] [B]*"),
        ('A 3 times within "5min"', "([A], [A] [A]) T-1 = 5min"),
        ('A at least 2 times within "5min"', "([A], [A] [A]*) T-1 = 5min"),
        ('A 2 times within "5min" then B within "1h"', "(([A], [A]) T-1 = 5min, [B]) T-2 = 1h"),
        ('B after A 2 times within "5min"', "([A], [A]) T-1 = 5min ; [B]"),
        ('A then B 2 times within "5min"', "([A], [B] [B]) T-1 = 5min"),
        ("A where x = 1 and y > 2 3 times", "[A(x = 1 and y > 2)] [A(x = 1 and y > 2)] [A(x = 1 and y > 2)]"),
        ("A where (x = 1 or y = 2) called a or B", "[A(x = 1 or y = 2) as a] | [B]"),
        ('A where x not followed by B where y in (1, 2) within "1h"', "([A(x)], [T-1 in {T-1, B(y in (1, 2))}]) T-1 = 1h"),
        ("D then any of A where x = 1, B before C where z", "[D] [A(x = 1), B in {A(x = 1), B, C(z)}]"),
        ("2 of A, B, C called x", "[A as x] [B as x, C as x] | [B as x] [A as x, C as x] | [C as x] [A as x, B as x]"),
        ('2 of A, B within "1h"', "([A], [B]) T-1 = 1h | ([B], [A]) T-2 = 1h"),
        ("A called a if count(a) > 0 and duration() < 5", "[A as a] where count(a) > 0 and duration() < 5"),
        ("any of A, B called x", "[A as x, B as x]"),
        ('A then (B then C within "5min") within "1h"', "([A], ([B], [C]) T-1 = 5min) T-2 = 1h"),
        ("A then B then C followed by D", "[A] [B] [C] ; [D]"),
    ],
)
def test_core(text: str, body: str) -> None:
    file = parsed(f"REPORT X When {text}.")
    assert core(file) == f"detect X = {body}\n"
    assert parsed(LANGUAGE.print_file(file)) == file


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.parent.name)
def test_printing_a_case_and_parsing_it_gives_the_same(path: Path) -> None:
    file = parsed(path.read_text())
    assert parsed(LANGUAGE.print_file(file)).statements == file.statements


def test_the_example_of_the_specification() -> None:
    file = parsed(
        "\"Brian enters\" means Enter where who = 'Brian'. \"Peter enters\" means Enter where who = 'Peter'.\n"
        'Report Visit when "Brian enters" followed by "Peter enters" within "1h".'
    )
    assert core(file).splitlines()[-1] == "detect Visit = ([p_Brian_enters], eps ; [p_Peter_enters]) T-1 = 1h"


def test_phrases_with_the_same_slug() -> None:
    file = parsed('"Cold!" means A. "cold?" means B. "Cold" means C. Report X when "Cold" then "cold?".')
    assert core(file).splitlines()[-1] == "detect X = [p_Cold_2] [p_cold]"


def test_restart() -> None:
    assert core(parsed("Report X when A before B.")) == "detect X restart = [A in {A, B}]\n"
    assert core(parsed("Once report X when A before B.")) == "detect X = [A in {A, B}]\n"
    assert core(parsed("Always report X when A.")) == "detect X restart = [A]\n"
    assert core(parsed("Report X when A using probabilistic 0.9 detection.")) == "detect X policy probabilistic 0.9 = [A]\n"


def test_what_has_no_sentence() -> None:
    from coincide.lang.opera.parse import parse as parse_core

    with pytest.raises(NotExpressible):
        LANGUAGE.print_file(parse_core(SourceText("rules.ce", "detect X = [[A] in {B}]")))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("A where x = 1 or y = 2", "1:34: error: expected '.', found '='", "a condition with 'or' stands in parentheses"),
        ('A 1 times within "1h"', "1:25: error: 'within' wants something that comes at least 2 times", ""),
        ('A at least 1 times within "1h" then B', "1:46: error: 'at least … times within' can only end a pattern", "leave out"),
        ("A then B within 5 mn", "1:33: error: unknown unit of time 'mn'", "units: us"),
        ('A then B within "5 Mins"', "1:31: error: unknown unit of time 'Mins'", "units: us"),
        ("4625 then B", "1:15: error: expected an event type or a phrase, found '4625'", "in back quotes: `4625`"),
        ("3 of A, B", "1:15: error: there are only 2 to take 3 of", ""),
        ("5 of A, B, C, D, E, F, G, H", "1:15: error: there are more than 500 ways to take 5 of 8", ""),
        ("A called a if distinct(b.x) > 1", "'distinct(b.x)' is neither a parameter nor an attribute of an alias of 'X'", ""),
    ],
)
def test_errors_of_conditions_and_repeats(text: str, message: str, hint: str) -> None:
    with pytest.raises(RuleError) as found:
        parsed(f"Report X when {text}.")
    assert message in str(found.value)
    assert hint in str(found.value)


def test_phrases_keep_kernel_key_and_filter() -> None:
    """What a phrase stands for is found at the source, by key and in the kernel, as if it were written out."""
    said = load(
        SourceText(
            "rules.say",
            """"late departure" means departure where delay > 60.
            "late arrival" means arrival where delay > 90. "late arrival" also means diversion.
            Report dragged when "late departure" then "late arrival" within "6h" without "late departure"
            for the same aircraft.""",
        )
    )
    core = load(
        SourceText(
            "rules.ce",
            """detect dragged restart = ([departure(delay > 60, aircraft = ?aircraft)],
                [[arrival(delay > 90, aircraft = ?aircraft), diversion(aircraft = ?aircraft)]
                    in {departure(delay > 60, aircraft = ?aircraft)}]) T = 6h""",
        )
    )
    plan, other = said.plans()[0], core.plans()[0]
    assert plan.tier_reasons() == ()
    assert plan.partition == ("aircraft",)
    assert plan.relevant == other.relevant


def test_a_misspelt_key_word_is_named_in_the_hint() -> None:
    with pytest.raises(RuleError, match="did you mean 'where'"):
        parsed("Report X when A were x = 1.")


def test_warnings_have_the_phrases_of_the_rule() -> None:
    rules = loads('"it is fine" means cpu where used < 90.\nReport over when cpu where used > 90 then "it is fine".', "pretty")
    assert [w.message for w in rules.warnings] == ['over can wait without limit for "it is fine"']
