"""`coincide draw`: forms, files, what cannot be drawn."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_support import RULES, Coincide, written

from coincide.testing.cases import find_cases

CASES = Path(__file__).parents[2] / "conformance" / "cases"
OFFICE = "detect Visit = [Brian] ; [Peter]\ndetect Twice = [Visit] [Visit]\n"


@pytest.fixture
def office(tmp_path: Path) -> Path:
    return written(tmp_path / "office.ce", OFFICE)


def test_dot_is_the_default(coincide: Coincide, office: Path) -> None:
    outcome = coincide("draw", office)
    assert outcome.code == 0
    assert outcome.out.count("digraph ") == 2
    assert "shape=box, style=rounded" in outcome.out
    assert "doublecircle" in coincide("draw", office, "--automaton").out


def test_the_ending_tells_the_form(coincide: Coincide, office: Path, tmp_path: Path) -> None:
    for name, start in (("a.svg", "<svg "), ("a.mmd", "flowchart"), ("a.gv", "digraph")):
        outcome = coincide("draw", office, "--out", tmp_path / name)
        assert (outcome.code, outcome.out) == (0, "")
        assert (tmp_path / name).read_text().startswith(start)
    assert coincide("draw", office, "--format", "svg", "--only", "Twice").out.startswith("<svg ")


def test_the_english_like_language_and_monitors(coincide: Coincide, tmp_path: Path, rules: Path) -> None:
    say = written(tmp_path / "rules.say", "Report Visit when Brian followed by Peter.\n")
    assert 'digraph "Visit"' in coincide("draw", say).out
    assert 'digraph "pairs"' in coincide("draw", rules).out


def test_what_is_not_there(coincide: Coincide, office: Path) -> None:
    outcome = coincide("draw", office, "--only", "Visti")
    assert outcome.code == 2
    assert "did you mean 'Visit'" in outcome.err


def test_rules_without_drawings(coincide: Coincide, tmp_path: Path) -> None:
    sigma = CASES / "sigma" / "values" / "rules.yml"
    outcome = coincide("draw", sigma)
    assert outcome.code == 2
    assert "there is nothing to draw" in outcome.err
    mixed = coincide("draw", sigma, written(tmp_path / "rules.ecl", RULES))
    assert mixed.code == 0
    assert "there are no drawings of sigma" in mixed.err
    assert coincide("draw").code == 2


@pytest.mark.parametrize("language", ["amit", "cdl", "ecco", "ecl", "opera", "pretty"])
def test_every_language_can_be_drawn(coincide: Coincide, language: str) -> None:
    for case, form in zip(find_cases(CASES / language)[::3], cycle(["svg", "svg", "dot", "mermaid"]), strict=False):
        outcome = coincide("draw", *case.rules, "--format", form)
        if "too many" in outcome.err:  # states of a machine
            continue
        assert (outcome.code, outcome.err) == (0, ""), case.name
        if form == "svg":
            ElementTree.fromstring(outcome.out)
        assert "p_" not in outcome.out or language != "pretty"


def test_what_a_query_of_eql_finds(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "rules.eql", "// @name pair\nsequence by k with maxspan=9s [a where true] [b where true]")
    events = written(tmp_path / "events.jsonl", '{"type":"a","time":1,"k":1}\n{"type":"b","time":2,"k":1}\n')
    outcome = coincide("draw", rules, "--events", events)
    assert outcome.code == 0
    texts = [element.text for element in ElementTree.fromstring(outcome.out).iter() if element.text]
    assert any("pair" in text for text in texts)
    assert any(text.strip() == "a" for text in texts)
