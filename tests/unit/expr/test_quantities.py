"""Numbers, counts and durations: the same words and the same bounds in every language."""

from __future__ import annotations

from typing import Any

import pytest

import coincide
from coincide import amit, opera
from coincide.errors import RuleError
from coincide.expr.parse import parse_duration, parse_expression
from coincide.expr.quantities import MOST, UNITS, QuantityError, count_of, microseconds_of, number_of
from coincide.expr.tree import Literal

MICROSECONDS = {
    "5 mins": 300_000_000, "5m": 300_000_000, "5 m": 300_000_000, "1 hr": 3_600_000_000, "300 secs": 300_000_000,
    "2 days": 172_800_000_000, "7us": 7, "7 micros": 7, "2 millis": 2_000, "1w": 604_800_000_000, "1 h 30 min": 5_400_000_000,
    "2 weeks": 1_209_600_000_000, "1.5s": 1_500_000, "12": 12_000, "0": 0,
}  # fmt: skip


RULES = {
    "ecl": "monitor late = push(late) {{ a and duration() < {0} }}",
    "opera": "detect late = ([a], [T in {{T, b}}]) T = {0}",
    "pretty": 'Report late when a not followed by b within "{0}".',
    "ecco": "detect late = (a ; b) within {0}",
    "amit.xml": """<amit>
      <lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
      <situation name="late" lifespan="l"><every interval="{0}"/></situation></amit>""",
    "amit.yaml": """
lifespans: {{l: {{initiator: startup, terminator: noTerminator}}}}
situations: {{late: {{lifespan: l, every: {0}}}}}""",
    "cdl.xml": """<cd id="c" version="1" within="{0}"><sources><source class="a" anchor="A"/></sources>
      <predicates><predicate name="greater" anchor="P">A.time, 0</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions><events><event class="e" trigger="X"/></events></cd>""",
    "cdl.yaml": """
cd: late
within: {0}
sources: {{A: {{class: a}}}}
predicates: {{P: A.time > 0}}
expressions: {{X: P}}
events: {{e: {{trigger: X}}}}""",
}


def loaded(language: str, duration: str) -> Any:
    return coincide.loads(RULES[language].format(duration), language)


@pytest.mark.parametrize(("text", "microseconds"), MICROSECONDS.items())
def test_a_duration_is_the_same_wherever_it_stands(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds
    assert parse_expression(text) == Literal(microseconds / 1000)
    expression: Any = opera.event("a").then(opera.event("b"), within=text).expression
    assert expression.time.microseconds == microseconds
    for language in RULES:
        if microseconds or "amit" not in language:
            (_, spelt), (_, plain) = (*loaded(language, text).files, *loaded(language, f"{microseconds}us").files)
            assert spelt == plain


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_with_and_without_a_space(unit: str) -> None:
    for text in (f"3{unit}", f"3 {unit}"):
        assert parse_duration(text) == round(3000 * UNITS[unit])
        for language in RULES:
            assert loaded(language, text).detectors


@pytest.mark.parametrize("language", RULES)
@pytest.mark.parametrize("text", ["1hh", "1e308 s", "9" * 400, "1e400"])
def test_what_is_no_duration_is_refused_with_its_place(language: str, text: str) -> None:
    with pytest.raises(RuleError) as refused:
        loaded(language, text)
    assert refused.value.diagnostics[0].span is not None


@pytest.mark.parametrize("language", [language for language in RULES if language != "ecl"])
def test_an_unknown_unit_is_told_with_those_that_there_are(language: str) -> None:
    with pytest.raises(RuleError, match="hh") as refused:
        loaded(language, "1 hh")
    assert "us, ms, s, min, h, d, w" in (refused.value.diagnostics[0].hint or "")


@pytest.mark.parametrize("text", ["1e-9", "1e300", "0.0001", "5000000000000000 s"])
def test_durations_have_bounds(text: str) -> None:
    for language in ("opera", "pretty", "ecco"):
        with pytest.raises(RuleError):
            loaded(language, text)
    with pytest.raises(QuantityError, match=r"a duration is 0 or from 1 µs to 2\^62 µs"):
        parse_duration(text)


def test_bounds_of_the_conversions() -> None:
    assert microseconds_of(2**62 / 1000) <= 2**62
    assert microseconds_of(0.001) == 1
    assert count_of("0007", 1) == 7
    assert count_of(str(MOST)) == MOST
    for wrong in ("", "-1", "1.5", "1e3", "9" * 5000, str(MOST + 1), "٣"):
        with pytest.raises(QuantityError):
            count_of(wrong)
    with pytest.raises(QuantityError, match="too large"):
        number_of("1e400")


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("pretty", "Report X when A after B 100000 times.", "1:25: error: expected a whole number of at most 2,000"),
        ("pretty", "Report X when (A 1000 times) 1000 times.", "1:30: error: expected a whole number of at most 2,"),
        ("opera", "detect X = ([A], [B]) T = 1e308s", "1:27: error: the duration is too long"),
        ("opera", "detect X = ([A], [B]) T = 5 moons", "1:29: error: unknown unit of time 'moons'"),
        ("ecco", "detect x = not a over 1e308", "1:23: error: a duration is"),
        ("ecco", "detect x = a ; not b over 1e-9 ; c", "1:27: error: a duration is"),
        ("ecco", "detect x = a @ circle(0, 0, 1e400)", "1:29: error: the number '1e400' is too large"),
        ("ecco", "detect x = a^COUNT over 1e9 every 5", "1:35: error: an event would be in more than 10,000 windows"),
        ("ecco", "option skew 1e308 detect x = a", "1:13: error: a skew is a ratio from 0 to below 1"),
        ("ecco", "option skew -1 ppm detect x = a", "1:13: error: a skew is a ratio from 0 to below 1"),
        ("ecco", "stamp a drift 1e300 ppm detect x = a", "1:15: error: a drift is from 0"),
        ("ecco", "detect x = a*{" + "9" * 400 + "}", "1:15: error: expected a whole number of at most"),
        ("ecco", "detect x = a ^ " + "9" * 5000, "1:16: error: expected a whole number of at most"),
        ("ecl", "monitor x = push(x) { a and v > " + "9" * 400 + " }", "1:33: error: the number"),
        ("ecl", "monitor x = repeat(" + "9" * 5000 + ") { push(x) { a } }", "1:20: error: the maximum of 'repeat'"),
        ("cdl.xml", RULES["cdl.xml"].format("1e308 s"), "1:1: error: 'within' is not a duration: 1e308 s"),
        ("cdl.yaml", RULES["cdl.yaml"].format("1 hh"), "3:9: error: 'within' is not a duration: 1 hh (unknown unit"),
        ("amit.xml", RULES["amit.xml"].format("1e308 s"), "must be a duration above zero, not '1e308 s'"),
        ("amit.yaml", RULES["amit.yaml"].format("1 hh"), "must be a duration above zero, not '1 hh'"),
    ],
)  # fmt: skip
def test_numbers_that_broke_it(language: str, text: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        coincide.loads(text, language)
    assert message in str(refused.value)


def test_a_word_that_may_follow_a_bare_number_is_no_unit() -> None:
    rules = coincide.loads("stamp a hops p max 5 error 3 delay 2 detect x = (a ; b) within 300 as y", "ecco")
    assert rules.detectors
    assert coincide.loads("limit a every 300 detect X = [a]", "opera").detectors


def test_a_stamp_beyond_all_times_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    rules = coincide.loads("stamp r hops path\ndetect d = r", "ecco")
    events = [{"type": "r", "time": number, "path": path} for number, path in enumerate([1, 1e300, -1e300])]
    for tier in ("interpreter", "kernel"):
        assert [d["from"] for d in coincide.detect(rules, events, tier=tier)] == [["1"]]
    assert "beyond all times" in caplog.text


def test_builders_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="unknown unit of time 'hh'"):
        opera.event("a").then(opera.event("b"), within="5 hh")
    with pytest.raises(ValueError, match="at most 2,000"):
        opera.event("a").repeated(100_000)
    situation = amit.situation("s").within(amit.lifespan("l").opened_at_startup()).every("5 hh")
    with pytest.raises(RuleError, match="duration above zero"):
        _ = amit.rules(situation).book


def test_a_time_event_beyond_all_times_never_comes() -> None:
    text = """<cd id="c" version="1">
      <sources><source class="a" anchor="A"/><time anchor="T" trigger="A"><relative>1e308</relative></time></sources>
      <predicates><predicate name="any" anchor="P">T</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions><events><event class="e" trigger="X"/></events></cd>"""
    assert coincide.detect(coincide.loads(text, "cdl"), [{"type": "a", "time": 1}], until="inf") == []
