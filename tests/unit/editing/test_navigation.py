"""Definitions, references, renaming, outlines; over several files."""

from __future__ import annotations

import pytest
from corpus import loaded, sources

from coincide.editing import definition, references, rename, symbols, tokens
from coincide.editing.marks import DETECTOR, EVENT
from coincide.editing.navigation import Edit, applied
from coincide.errors import RuleError
from coincide.lang.matchrecognize.definition import HELD
from coincide.lang.shared.reads import TYPE
from coincide.rulebook import Rulebook
from coincide.source import SourceText, Span

MAKES = SourceText("makes.ecl", "monitor pairs by k = repeat { push(pair, at: value) { sequential { open, close } } }\n")
READS = SourceText("reads.ce", "set Pairs = {pair(at > 3)}\ndetect Busy = [Pairs as a] ; [pair] with k = a.k\n")
SQL = SourceText("reads.mr.sql", "SELECT * FROM pair MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS a.at > 3) AS m;\n")
SIGMA = SourceText(
    "s.yml",
    "title: Some One\nlogsource: {category: pair}\ndetection:\n  sel: {at|gt: 3}\n  condition: sel\n---\n"
    "title: Two\ncorrelation:\n  type: event_count\n  rules: [some_one]\n  timespan: 5m\n  condition: {gte: 2}\n",
)
ALL = (MAKES, READS, SQL, SIGMA)


def place(source: SourceText, word: str, number: int = 0) -> int:
    at = -1
    for _ in range(number + 1):
        at = source.text.index(word, at + 1)
    return at


def shown(spans: list[Span]) -> list[tuple[str, str]]:
    return [(span.file, span.text) for span in spans]


def test_a_detection_of_one_file_is_an_event_of_another() -> None:
    assert shown(definition(READS, place(READS, "pair"), ALL)) == [("makes.ecl", "pair")]
    found = shown(references(SQL, place(SQL, "pair"), ALL))
    assert sorted(found) == [("makes.ecl", "pair"), ("reads.ce", "pair"), ("reads.ce", "pair"), ("reads.mr.sql", "pair")]


def test_names_of_a_file_stay_in_it() -> None:
    other = SourceText("other.ce", "set Pairs = {x}\ndetect Y = [Pairs]\n")
    assert shown(references(READS, place(READS, "Pairs"), (other,))) == [("reads.ce", "Pairs")] * 2
    assert shown(definition(READS, place(READS, "a.k"), ALL)) == [("reads.ce", "a")]
    assert [span.start for span in definition(READS, place(READS, "a.k"), ALL)] == [place(READS, "as a") + 3]


def test_a_title_makes_a_name() -> None:
    assert shown(definition(SIGMA, place(SIGMA, "some_one"), ALL)) == [("s.yml", "Some One")]
    with pytest.raises(RuleError, match="is made of what stands here"):
        rename(SIGMA, place(SIGMA, "some_one"), "other", ALL)


def test_the_name_of_a_file_names_its_query() -> None:
    query = SourceText("rules/Brute Force.eql", "authentication where ok == false")
    reader = SourceText("rules/r.ecl", "monitor m = push(x) { brute_force }")
    assert shown(definition(reader, place(reader, "brute_force"), (query, reader))) == [
        ("rules/Brute Force.eql", "authentication")
    ]
    several = SourceText("two.eql", "a where true;\n// @name b\nb where true; c where true")
    assert [(s.name, s.kind) for s in symbols(several)] == [("two_1", EVENT), ("b", EVENT), ("two_3", EVENT)]


def test_symbols() -> None:
    assert [(s.name, s.kind) for s in symbols(MAKES)] == [("pairs", DETECTOR), ("pair", EVENT)]
    assert [(s.name, s.kind) for s in symbols(READS)] == [("Pairs", "set"), ("Busy", EVENT)]


def texts(edits: list[Edit]) -> dict[str, str]:
    return {source.name: applied(source.text, [e for e in edits if e.span.source is source]) for source in ALL}


def test_renaming_over_files() -> None:
    made = texts(rename(READS, place(READS, "[pair") + 1, "a pair", ALL))
    assert "push(`a pair`, at: value)" in made["makes.ecl"]
    assert "{`a pair`(at > 3)}" in made["reads.ce"]
    assert "; [`a pair`] with" in made["reads.ce"]
    assert 'FROM "a pair" MATCH_RECOGNIZE' in made["reads.mr.sql"]


def test_renaming_a_variable_of_sql() -> None:
    made = texts(rename(SQL, place(SQL, "a.at"), "up", ALL))
    assert "PATTERN (up) DEFINE up AS up.at > 3" in made["reads.mr.sql"]


def test_renaming_in_xml_and_yaml() -> None:
    xml = SourceText("a.amit.xml", '<amit><event name="a"/><key name="k"><eventKey event="a" attribute="x"/></key></amit>')
    made = applied(xml.text, rename(xml, place(xml, 'a"/><key'), "a b"))
    assert made == '<amit><event name="`a b`"/><key name="k"><eventKey event="`a b`" attribute="x"/></key></amit>'
    yaml = SourceText("a.amit.yaml", "events:\n  a: {x: number}\nkeys: {k: {a: x}}\n")
    assert applied(yaml.text, rename(yaml, place(yaml, "a: {"), "b")) == "events:\n  b: {x: number}\nkeys: {k: {b: x}}\n"
    with pytest.raises(RuleError, match="cannot stand here"):
        rename(xml, place(xml, 'a"/><key'), "a<b")


@pytest.mark.parametrize(
    ("word", "name", "message"),
    [
        ("open", "x", "no rule defines it"),
        ("pair,", "Busy", "is named already"),
        ("pair,", " ", "is not a name"),
        ("repeat", "x", "there is no name here"),
    ],
)
def test_renaming_that_cannot_be(word: str, name: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        rename(MAKES, place(MAKES, word) + 1, name, ALL)


def made_by(book: Rulebook) -> set[str]:
    return {name for detector in book.detectors for name in detector.outputs if not name.endswith(HELD)}


def test_renamed_rules_are_the_same_rules(in_full: bool) -> None:
    """Every event that a file defines gets another name; what is loaded then reads and makes the same, but for that."""
    renamed, some = 0, sources()[:: 1 if in_full else 4]
    for source in some:
        book = loaded(source)
        defined = [m for m in tokens(source) if m.kind == EVENT and m.defines]
        if book is None or not defined or source.name.endswith((".yml", ".toml")) or "${" in source.text:
            continue
        mark = defined[-1]
        try:
            made = SourceText(source.name, applied(source.text, rename(source, mark.start, "Renamed9", (source,))))
        except RuleError:
            continue
        again = loaded(made)
        assert again is not None, source.name
        assert made_by(again) == {"Renamed9" if name == mark.name else name for name in made_by(book)}, source.name
        read = {"Renamed9" if name == mark.name else name for reads in book.reads for name in reads.names(TYPE)}
        assert {name for reads in again.reads for name in reads.names(TYPE)} == read, source.name
        renamed += 1
    assert renamed > len(some) * 0.4
