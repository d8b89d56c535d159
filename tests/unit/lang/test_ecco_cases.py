"""Every ECCO rule file of the conformance cases that is accepted is printed back."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases

CASES = Path(__file__).parents[2] / "conformance" / "cases"
REFUSED = find_cases(CASES / "ecco-errors")
WARNED = find_cases(CASES / "ecco-warnings")
ACCEPTED = [*find_cases(CASES / "ecco"), *WARNED]


def named(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def test_the_cases_are_there() -> None:
    assert len(REFUSED) == 20
    assert len(WARNED) == 3
    assert len(ACCEPTED) >= 61


@named(ACCEPTED)
def test_print_parses_back(case: Case) -> None:
    file = parse(SourceText("rules.ecco", case.rules[0].read_text(encoding="utf-8")))
    printed = print_file(file)
    assert parse(SourceText("printed.ecco", printed)) == file
    assert print_file(parse(SourceText("printed.ecco", printed))) == printed
