"""What is printed parses back to equal definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from coincide.errors import RuleError
from coincide.lang.ecl.definition import File
from coincide.lang.ecl.parse import parse
from coincide.lang.ecl.print import WIDTH, print_file
from coincide.source import SourceText
from coincide.testing.ecl import rule_texts

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def read(text: str) -> File:
    return parse(SourceText("rules.ecl", text))


@pytest.mark.parametrize("path", sorted(CASES.glob("ecl*/*/*.ecl")), ids=lambda path: "/".join(path.parts[-3:]))
def test_cases_parse_back(path: Path) -> None:
    try:
        file = read(path.read_text())
    except RuleError:
        assert path.parent.parent.name == "ecl-errors"
        return
    assert read(print_file(file)) == file


@settings(max_examples=60, deadline=None)
@given(rule_texts())
def test_random_rules_parse_back(text: str) -> None:
    file = read(text)
    printed = print_file(file)
    assert read(printed) == file
    assert print_file(read(printed)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "machine A { initial q; t: q clear r -> ; }",  # r occurs in 'clear' only
        "machine A { initial q; t: q clear q, r -> ; u: q clear * -> q; }",
        "machine A { initial none; t: none clear * -> none; u: q clear q, none -> r; }",
        "machine A { t: q -> r; initial r; u: q | r clear * -> push(x, v: 1); order u < t; }",
        "monitor m = v > 1e300 and v < 0.1 and s = 'it''s' and v > 5 min",
        "monitor m = push(x, hot: p and a, p: p) { a }  p = v > 1",
        "monitor m = " + "repeat { " * 99 + "a" + " }" * 99,
        "monitor m = " + "(not " * 49 + "a" + ")" * 49,
        "",
    ],
)
def test_parses_back(text: str) -> None:
    file = read(text)
    assert read(print_file(file)) == file


def test_layout() -> None:
    text = (
        "high=v>5 monitor short by k = repeat{push(x){high}} machine A{initial q;t:q on a clear*->q push(y);order t<u;u:q->;}"
        "monitor long=repeat{do{push(first,value:v*2,unit:'m'){accumulate{high and a,b,sequential{c,d}}}}"
        "unless{select*{stop,in(p)do{persist(3){e}}in(q)do{f}}}}"
    )
    printed = print_file(read(text))
    assert printed == LAYOUT
    assert max(map(len, printed.splitlines())) <= WIDTH


LAYOUT = """\
high = v > 5

monitor short by k = repeat { push(x) { high } }

machine A {
    initial q;
    t: q on a -> q push(y);
    u: q ->;
    order t < u;
}

monitor long =
    repeat {
        do {
            push(first, value: v * 2, unit: 'm') {
                accumulate { high and a, b, sequential { c, d } }
            }
        } unless {
            select* { stop, in (p) do { persist(3) { e } } in (q) do { f } }
        }
    }
"""
