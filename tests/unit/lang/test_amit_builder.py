"""Amit in Python: the same definitions as in XML and YAML, from calls."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, get_args

import pytest
from amit_support import FILES, expanded, from_xml, from_yaml, named, read
from hypothesis import given, settings

import coincide
from coincide import amit
from coincide.amit import Rules, event, key, lifespan, operand, rules, situation
from coincide.errors import RuleError
from coincide.lang.amit.definition import Definition, File
from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES, TYPES
from coincide.lang.amit.operators import MODES
from coincide.lang.amit.print_python import print_definitions
from coincide.testing.amit import rule_files

QUOTE = event("quote", symbol="string", change="number")
HOUR = lifespan("hour").opened_by(QUOTE, "change > 5").expires("1h")


def built(definitions: list[Definition]) -> Rules:
    """The definitions, through their Python text."""
    space: dict[str, Any] = {}
    exec(print_definitions(definitions).replace(").book\n", ")\n"), space)
    found: Rules = space["book"]
    return found


def same(definitions: list[Definition]) -> None:
    made = built(definitions)
    assert list(from_xml(made.xml()).items) == definitions
    assert list(from_yaml(made.yaml()).items) == definitions


def test_detects() -> None:
    surge = situation("surge").within(HOUR).at_least(2, operand(QUOTE, where="change > 0")).having("number", n="total()")
    events = [{"type": "quote", "time": t, "change": 10 - t} for t in range(5)]
    assert coincide.detect(rules(QUOTE, HOUR, surge).book, events) == [{"type": "surge", "time": 2, "from": ["2", "3"], "n": 2}]


def test_everything_that_can_be_said() -> None:
    symbol = key("symbol", {"quote": "symbol"}, "string")
    day = (
        lifespan("day")
        .opened_by("open", as_="go", correlate="add")
        .closed_by("close", "true", quantifier="last", discard=True)
        .expires("9h", discard=True)
        .keyed_by("exchange", key=symbol)
    )
    fall = (
        situation("fall")
        .within(day, internal=True)
        .nth(
            3,
            operand(QUOTE, "change < 0", as_="q", quantifier="each", strict=True, retain="true", weight=2, counted=False),
            "open",
        )
        .where("q.change < 1")
        .mode("delayed")
        .repeated("always")
        .keyed_by(key=symbol)
        .having("string", "symbol")
        .having("number", n="total()", change="q.change")
    )
    xml = (
        '<amit><key name="symbol" type="string"><eventKey event="quote" attribute="symbol"/></key>'
        '<lifespan name="day"><initiator><eventInitiator event="open" as="go" correlate="add"/></initiator><terminator>'
        '<eventTerminator event="close" where="true" quantifier="last" terminationType="discard"/>'
        '<expirationInterval timeInterval="9h" terminationType="discard"/></terminator>'
        '<keyBy attribute="exchange"/><keyBy name="symbol"/></lifespan>'
        '<situation name="fall" lifespan="day" internal="true">'
        '<nth quantity="3" where="q.change &lt; 1" detectionMode="delayed" repeatMode="always">'
        '<operandNth event="quote" as="q" threshold="change &lt; 0" quantifier="each" quantifierType="absolute" retain="true"'
        ' weight="2" counted="false"/><operandNth event="open"/><keyBy name="symbol"/></nth>'
        '<situationAttribute name="symbol" type="string"/><situationAttribute name="n" type="number" expression="total()"/>'
        '<situationAttribute name="change" type="number" expression="q.change"/></situation></amit>'
    )
    assert from_xml(rules(symbol, day, fall).xml()) == from_xml(xml)
    assert from_yaml(rules(symbol, day, fall).yaml()) == from_xml(xml)


def test_every_operator() -> None:
    always = lifespan("always").opened_at_startup()
    open_ = [situation(f"s{n}").within(always) for n in range(10)]
    made = [
        open_[0].all("quote"),
        open_[1].sequence(QUOTE, QUOTE),
        open_[2].at_least(1, QUOTE),
        open_[3].nth(1, QUOTE),
        open_[4].at_most(1, QUOTE),
        open_[5].none(QUOTE),
        open_[6].unless(QUOTE, operand(QUOTE, "change > 0")),
        open_[7].every("5 min"),
        open_[8].at("*/*/* 9:00:00.000"),
        open_[9].after(100, QUOTE, correlate="replace"),
    ]
    book = rules(QUOTE, always, *made).book
    kinds = [d.definition.operator.kind for d in book.detectors]
    assert kinds == ["all", "sequence", "atleast", "nth", "atmost", "not", "unless", "every", "at", "after"]


def test_objects_do_not_change() -> None:
    before = HOUR.whole()
    assert HOUR.keyed_by("symbol") != HOUR
    assert HOUR.whole() == before
    with pytest.raises(FrozenInstanceError):
        HOUR.keys = ()  # type: ignore[misc]


def test_errors_show_the_xml() -> None:
    wrong = situation("wrong").within(HOUR).all(operand("quote", "chnge > 0"))
    with pytest.raises(RuleError) as raised:
        _ = rules(QUOTE, HOUR, wrong, name="mine").book
    assert raised.value.diagnostics[0].message == "event 'quote' has no attribute 'chnge' at column 1 of \"chnge > 0\""
    assert raised.value.diagnostics[0].span is not None
    assert raised.value.diagnostics[0].span.file == "mine.amit.xml"


def test_names_that_python_does_not_have() -> None:
    odd = event("odd", **{"class": "string", "a-b": "number", "name": "string"})  # type: ignore[arg-type]
    assert rules(odd).book.detectors == ()
    same(list(from_xml(rules(odd).xml()).items))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", FILES, ids=named)
def test_rule_files_come_back_from_python(path: Path) -> None:
    others = [read(other) for other in path.parent.glob("rules*.amit.xml") if other != path]
    same(expanded(read(path), *others))


@settings(max_examples=60, deadline=None)
@given(rule_files())
def test_any_definitions_come_back_from_python(file: File) -> None:
    same(expanded(file))


def test_its_words_are_those_of_the_language() -> None:
    assert get_args(amit.Type) == TYPES
    assert get_args(amit.Mode) == MODES
    assert get_args(amit.Quantifier) == tuple(CHOICES["quantifier"])
    assert get_args(amit.Repeat) == tuple(CHOICES["repeatMode"])
    assert get_args(amit.Correlate) == AFTER_CORRELATES
