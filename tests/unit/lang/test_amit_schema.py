"""The JSON Schema of rules in YAML: made from the parser's tables, up to date, and true of what the parser takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from amit_support import FILES, from_yaml, named, read
from hypothesis import given, settings

from coincide.lang.amit.definition import File
from coincide.lang.amit.grammar import CHOICES
from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.print_yaml import print_file
from coincide.lang.amit.schema import FILE, schema
from coincide.lang.shared.schema import schema_text
from coincide.testing.amit import rule_files

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(schema())


def test_the_file_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(schema()), "python -m coincide.lang.amit.schema writes it"
    assert json.loads(schema_text(schema())) == schema()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", FILES, ids=named)
def test_rule_files_are_valid(path: Path, validator: Any) -> None:
    validator.validate(yaml.safe_load(print_file(read(path))))


@settings(max_examples=30, deadline=None)
@given(rule_files())
def test_any_rules_are_valid(file: File) -> None:
    jsonschema.Draft202012Validator(schema()).validate(yaml.safe_load(print_file(file)))


SHORT = "events: {a: }\nlifespans: {l: {initiator: [startup], terminator: noTerminator}}\n"


@pytest.mark.parametrize(
    "text",
    [
        SHORT + "situations: {s: {lifespan: l, not: a}}",
        SHORT + "situations: {s: {lifespan: l, at: '*/*/* 9:00:00.000'}}",
        SHORT + "situations: {s: {lifespan: l, conjunction: {operands: {event: a, alias: x, quantifier: strict last}}}}",
        SHORT + "situations: {s: {lifespan: l, nth: {detectionMode: differed, condition: a.x > 0, operands: [a]}}}",
        "templates: {t: {parameters: p, situations: {s: {lifespan: l, atleast: {quantity: '${p}', operands: a}}}}}",
        "- use: {template: t, p: 3}\n- {}\n",
    ],
)
def test_short_forms(text: str, validator: Any) -> None:
    from_yaml(text)
    validator.validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "event: {}",
        "events: {a: {x: integer}}",
        "lifespans: {l: {initiator: a}}",
        "situations: {s: {lifespan: l}}",
        "situations: {s: {lifespan: l, all: a, not: b}}",
        "situations: {s: {lifespan: l, all: {operand: a}}}",
        "situations: {s: {lifespan: l, all: [{event: a, weight: 2}]}}",
        "situations: {s: {lifespan: l, not: {operands: a, keyBy: x}}}",
        "situations: {s: {lifespan: l, atmost: {quantity: few, operands: a}}}",
        "situations: {s: {lifespan: l, atmost: {quantity: 1, detectionMode: immediate, operands: a}}}",
        "use: {p: 1}",
    ],
)
def test_what_it_refuses_the_parser_refuses(text: str, validator: Any) -> None:
    assert not validator.is_valid(yaml.safe_load(text))
    with pytest.raises(Exception, match="error"):
        from_yaml(text)


def test_every_operator_and_choice_is_in_it() -> None:
    found = schema()["$defs"]
    assert {f"operator-{kind}" for kind in OPERATORS} <= found.keys()
    assert set(CHOICES) <= found.keys()
    assert found["operator-after"]["anyOf"][1]["properties"]["correlate"]["anyOf"][0] == {"enum": ["add", "ignore", "replace"]}
