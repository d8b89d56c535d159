"""Every EQL query of the conformance cases is printed back, and what the cases leave out of errors, names and warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

import coincide
from coincide.errors import RuleError
from coincide.lang.eql.parse import parse
from coincide.lang.eql.print import print_file
from coincide.lang.shared.about import made_name
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases

CASES = Path(__file__).parents[2] / "conformance" / "cases"
ACCEPTED = find_cases(CASES / "eql")


def test_the_cases_are_there() -> None:
    assert len(ACCEPTED) >= 72
    assert len(find_cases(CASES / "eql-errors")) >= 58


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_print_parses_back(case: Case) -> None:
    for path in case.rules:
        file = parse(SourceText(path.name, path.read_text(encoding="utf-8")))
        printed = print_file(file)
        assert parse(SourceText(f"printed{path.suffix}", printed)) == file
        assert print_file(parse(SourceText(f"printed{path.suffix}", printed))) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('any where a == "\\u{110000}"', "1:17: unknown escape '\\u'"),
        ('any where a == """x', "1:16: text is not closed"),
        ("any where `a", "1:11: name is not closed"),
        ("any where a : ", "1:15: expected a constant after ':', found end of file"),
        ("any where " + "(" * 200, "1:111: the expression is nested more than 100 deep"),
        ("any where a ==", "1:15: expected a value or a condition, found end of file"),
        ("join by a with maxspan=1s [a where true] [b where true]", "1:11: 'with' is not supported in a join"),
        ("join [a where true]", "1:1: a join needs at least two items"),
        ("any where descendant of [a where true]", "1:11: 'descendant of' is not supported"),
        ("a where true | head", "1:20: 'head' takes a whole number from 1"),
        ("sequence with maxspan=0s [a where true] [b where true]", "1:23: 'maxspan' must be a whole number from 1"),
        ('any where s regex "(?i)a"', "1:19: invalid regular expression: '(?i' is not supported"),
        ("any where true; ;", "1:17: expected an event category, found ';'"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        coincide.loads(text, "eql")
    error = caught.value.diagnostics[0]
    assert error.span is not None
    assert f"{error.span.line}:{error.span.column}: {error.message}" == message


@pytest.mark.parametrize(
    ("text", "name"), [("2 Shells, then: a Download", "_2_shells_then_a_download"), ("Ünïcode", "n_code"), ("…", "rule")]
)
def test_made_names(text: str, name: str) -> None:
    assert made_name(text) == name


def test_other_languages_in_toml_are_skipped() -> None:
    rules = coincide.loads('[rule]\nlanguage = "kuery"\nname = "x"\nquery = "a:b"\n', "toml", "skipped")
    assert [warning.head for warning in rules.warnings] == ["skipped.toml:1:1: warning: language 'kuery' is skipped"]
    assert not rules.detectors


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ('"""\nany where\n  a = 1\n"""', (5, 5)),
        ("'any where a = 1'", (3, 22)),
        ('"any where \\"x\\" == b and a = 1"', (3, 37)),
    ],
)
def test_places_in_toml(query: str, place: tuple[int, int]) -> None:
    with pytest.raises(RuleError) as caught:
        coincide.loads(f'[rule]\nname = "x"\nquery = {query}\nlanguage = "eql"\n', "toml")
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert (span.line, span.column) == place


def test_a_tail_needs_an_end() -> None:
    rules = coincide.loads("a where true | tail 1", "eql")
    with pytest.raises(RuleError, match="'tail' needs the end of the input"):
        rules.check_endless()


def test_what_grows_with_keys_is_said_of_streams() -> None:
    pair = "[x where true] [y where true]"
    text = f"// @name a\nsequence by k {pair}; // @name b\nsequence by k with maxspan=1s {pair}"
    rules = coincide.loads(text, "eql")
    assert [w.message for w in rules.streaming_warnings] == ["rule 'a' keeps something for every key that it sees"]


TOML = "[rule]\nname = '{name}'\nlanguage = 'eql'\nseverity = '{severity}'\nquery = '''\n{query}\n'''\n"


def test_a_pack_with_rules_that_cannot_be_read(tmp_path: Path) -> None:
    rules = {"good": ("high", "any where a == 1"), "low": ("low", "any where a == 1"), "bad": ("high", "any where a = 1")}
    for name, (severity, query) in rules.items():
        (tmp_path / f"{name}.toml").write_text(TOML.format(name=name, severity=severity, query=query))
    (tmp_path / "plain.eql").write_text("any where a == 2")
    (tmp_path / "lineage.eql").write_text("process where child of [process where true]")
    with pytest.raises(RuleError, match=r"bad.toml:6:13: error: '=' is not a comparison"):
        coincide.load(tmp_path)
    book = coincide.load(tmp_path, keep_going=True)
    assert [detector.name for detector in book.detectors] == ["good", "low", "plain"]
    assert [f"{Path(w.span.source.name).name}:{w.span.line}: {w.message}" for w in book.warnings if w.span] == [
        "bad.toml:6: '=' is not a comparison: use '==' or ':'",
        "lineage.eql:1: 'child of' is not supported",
    ]
    assert [d.name for d in coincide.load(tmp_path, keep_going=True, level="high").detectors] == ["good", "plain"]
