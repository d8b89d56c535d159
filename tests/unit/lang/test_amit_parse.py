"""Amit's XML: what is accepted, what the words mean, and that printing and parsing are inverses."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.errors import RuleError
from coincide.lang.amit.attributes import duration_of
from coincide.lang.amit.definition import File, Situation, Use
from coincide.lang.amit.parse import parse
from coincide.lang.amit.print import print_file
from coincide.rulebook import load
from coincide.source import SourceText

ROOT = Path(__file__).parents[3]
FILES = [
    *sorted((ROOT / "tests/conformance/cases/amit").glob("*/rules*")),
    *sorted((ROOT / "tests/conformance/cases/amit-warnings").glob("*/rules*")),
    *sorted((ROOT / "benchmarks/amit").glob("*.amit.xml")),
]


def parsed(text: str) -> File:
    return parse(SourceText("rules.amit.xml", text))


def message(*texts: str) -> str:
    with pytest.raises(RuleError) as caught:
        load(*(SourceText(f"{n}.amit.xml", text) for n, text in enumerate(texts, 1)))
    return caught.value.diagnostics[0].head


def situation(operator: str, events: str = "<event name='A'/><event name='B'/>", attributes: str = "") -> str:
    lifespan = "<lifespan name='l'><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>"
    return f"<amit>{events}{lifespan}<situation name='s' lifespan='l'>{operator}{attributes}</situation></amit>"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_printing_and_parsing_are_inverses(path: Path) -> None:
    file = parsed(path.read_text(encoding="utf-8"))
    printed = print_file(file)
    assert parsed(printed) == file
    assert print_file(parsed(printed)) == printed


def test_synonyms_are_the_same_definitions() -> None:
    written = """<conjunction detectionMode="differed" condition="p.x > 1">
        <operand event="A" alias="p" quantifier="strict-last"/></conjunction>"""
    canonical = """<operator><all detectionMode="deferred" where="p.x > 1">
        <operandAll event="A" as="p" quantifier="last" quantifierType="absolute"/></all></operator>"""
    assert parsed(situation(written)) == parsed(situation(canonical))


def test_the_second_operand_of_unless_takes_a_quantifier_without_effect() -> None:
    plain = "<unless><operandUnless event='A'/><operandNot event='B'/></unless>"
    assert parsed(situation(plain)) == parsed(situation(plain.replace("'B'", "'B' quantifier='strict last'")))


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [("250", 250_000), ("5 minutes", 300_000_000), ("1h 30min", 5_400_000_000), ("0.5", 500), ("0", None), ("-1", None)],
)
def test_durations(text: str, microseconds: int | None) -> None:
    assert duration_of(text) == microseconds


def test_errors_of_the_second_file_stand_there() -> None:
    first = "<amit><event name='A'/></amit>"
    assert message(first, "<amit>\n<event name='A'/></amit>") == "2.amit.xml:2:1: error: event or situation 'A' is defined twice"


def test_a_template_that_is_never_used_is_not_checked_further() -> None:
    body = "<situation name='${n}' lifespan='nowhere'><every interval='${i}'/></situation>"
    file = parsed(f"<amit><template name='t' parameters='n i'>{body}</template></amit>")
    assert not [entry for entry in file.items if isinstance(entry, (Situation, Use))]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("<atmost quantity='1' detectionMode='immediate'><operandAtmost event='A'/></atmost>", "must be one of deferred, not"),
        ("<every/>", "element 'every' needs the attribute 'interval'"),
        ("<unless><operandNot event='A'/><operandUnless event='B'/></unless>", "unknown element 'operandNot' in 'unless'"),
        ("<all/>", "operator 'all' has 0 operands, needs at least 1"),
        ("<all><operandAll event='A'>x</operandAll></all>", "unexpected text 'x'"),
        ("<all where='start() > 1'><operandAll event='A'/></all>", "'start' wants an alias at column 1 of"),
        ("<all where='Z.x = 1'><operandAll event='A'/></all>", "unknown name 'Z.x' at column 1 of"),
        ("<at timePattern='1/1/2020 25:0:0.0'/>", "hour out of range"),
    ],
)
def test_more_that_is_refused(operator: str, expected: str) -> None:
    assert expected in message(situation(operator))


def test_two_initiators_of_one_alias_are_one_name_if_they_are_of_one_type() -> None:
    events = "<event name='A'><eventAttribute name='x' type='number'/></event><event name='B'/>"
    attributes = "<situationAttribute name='v' type='number' expression='go.x'/>"
    rules = situation("<not><operandNot event='B'/></not>", events, attributes)
    two = "<eventInitiator event='A' as='go' where='x > 1'/><eventInitiator event='{}' as='go'/>"
    load(SourceText("r.amit.xml", rules.replace("<startup/>", two.format("A"))))
    assert "alias 'go' is ambiguous" in message(rules.replace("<startup/>", two.format("B")))


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(RuleError, match="did you mean 'quote'"):
        load(SourceText("r.amit.xml", situation("<all><operandAll event='quotes'/></all>", "<event name='quote'/>")))
