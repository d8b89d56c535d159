"""Diagnostics, completion, hover, formatting: what an editor shows."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
from corpus import sources
from test_marks import LANGUAGES, mutants, texts

from coincide.cli.main import main
from coincide.editing import Names, completions, diagnostics, formatted, hover, is_rules, joined, names_in, tokens
from coincide.editing.marks import ATTRIBUTE, COMMENT, EVENT, FUNCTION, KEYWORD
from coincide.errors import InputError, RuleError
from coincide.languages.registry import language_of
from coincide.source import SourceText

NAMES = Names({"open": {"device": 2, "value": 1}, "close": {"device": 3}}, {"open": 2, "close": 3})


def offered(name: str, text: str, names: Names = NAMES, others: tuple[SourceText, ...] = ()) -> dict[str, str]:
    """Names and kinds at the place of the `|`."""
    before, _, behind = text.partition("|")
    return {c.name: c.kind for c in completions(SourceText(name, before + behind), len(before), others, names)}


def completed(name: str, text: str, choice: str) -> str:
    """The text with a completion taken."""
    before, _, behind = text.partition("|")
    found = next(c for c in completions(SourceText(name, before + behind), len(before), (), NAMES) if c.name == choice)
    whole = before + behind
    return whole[: found.span.start] + found.text + whole[found.span.end :]


ENDINGS = (".ecl", ".ce", ".say", ".ecco", ".eql", ".mr.sql")

# Diagnostics


def test_diagnostics_are_those_of_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    looked = 0
    for source in random.Random(1).sample(sources(errors=True), 120):
        file = tmp_path / Path(source.name).name
        file.write_text(source.text, encoding="utf-8")
        text = SourceText(str(file), source.text)
        if not is_rules(text):
            continue
        looked += 1
        code = main(["check", str(file)])
        told = capsys.readouterr().err
        found = diagnostics(text)
        assert code == (2 if any(d.severity == "error" for d in found) else 0), source.name
        assert all(d.head in told for d in found), (source.name, told)
        assert told.count(str(file) + ":") >= len({d.head for d in found if d.span is not None}), source.name
    assert looked > 80


def test_a_file_that_needs_another_is_looked_at_with_it() -> None:
    declares = SourceText("types.amit.xml", '<amit><event name="a"/></amit>')
    uses = SourceText(
        "uses.amit.xml",
        '<amit><lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>'
        '<situation name="s" lifespan="l"><all><operandAll event="a"/></all></situation></amit>',
    )
    broken = SourceText("broken.ecl", "monitor")
    assert [d.message for d in diagnostics(uses)] == ["unknown event 'a'"]
    assert not any(d.severity == "error" for d in diagnostics(uses, [broken, declares, uses]))
    assert [d.message for d in diagnostics(uses, [broken])] == ["unknown event 'a'"]


def test_other_yaml_is_no_rules() -> None:
    assert diagnostics(SourceText("compose.yml", "services: {}\n")) == []
    assert diagnostics(SourceText("pyproject.toml", "[project]\n")) == []
    assert diagnostics(SourceText("case.test.yaml", "detection: x\n")) == []
    assert diagnostics(SourceText("rule.yml", "title: x\ndetection: x\n"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_half_written_texts_are_answered(language: str) -> None:
    chance = random.Random(f"asking {language}")
    for source in chance.sample(texts(language), 6):
        for text in mutants(source.text, chance, 3):
            mutant, offset = SourceText(source.name, text), chance.randrange(len(text) + 1)
            assert all(d.span is None or d.span.end <= len(text) + 1 for d in diagnostics(mutant))
            assert all(c.span.start <= offset <= c.span.end for c in completions(mutant, offset, (), NAMES))
            found = hover(mutant, offset, (), NAMES)
            assert found is None or found.text
            with suppress(RuleError):
                formatted(mutant)


def test_diagnostics_come_while_one_types() -> None:
    """Of the largest file of each language, once its modules are there."""
    for language in LANGUAGES:
        source = max(texts(language), key=lambda text: len(text.text))
        diagnostics(source)
        began = time.process_time()
        diagnostics(SourceText(source.name, source.text + "\n"))
        assert time.process_time() - began < 2, source.name  # a fifth of a second on a machine that does nothing else


# Completion


def test_names_that_fit() -> None:
    text = "high = value > 6\nmonitor m by | = repeat { push(x) { open } }"
    keys = offered("a.ecl", text)
    assert keys["device"] == ATTRIBUTE
    assert "open" not in keys
    tested = offered("a.ecl", "high = value > 6\nmonitor m = repeat { push(x) { o| } }")
    assert (tested["open"], tested["close"], tested["high"], tested["sequential"]) == (EVENT, EVENT, "predicate", KEYWORD)
    assert tested["abs"] == FUNCTION
    assert "monitor" not in tested
    assert offered("a.ecl", "mon|")["monitor"] == KEYWORD
    assert offered("a.ecl", "monitor m = push(x) { type = '|' }")["open"] == EVENT


def test_names_of_other_files() -> None:
    other = SourceText("rules/other.ecco", "detect jam = a ; b give speed = 3")
    found = offered("a.ce", "detect x = [|]", NAMES, (other,))
    assert found["jam"] == EVENT
    assert "speed" in offered("a.ce", "detect x = [jam(|)]", NAMES, (other,))


@pytest.mark.parametrize("language", ["ecl", "opera", "pretty", "ecco", "eql", "matchrecognize"])
def test_words_are_offered_where_they_stand_in_rules(language: str, in_full: bool) -> None:
    """But for a few that the parser takes only with what follows, such as `NULL` between two operands."""
    chance, number = random.Random(language), 20 if in_full else 8
    looked, missed = 0, []
    for source in chance.sample([text for text in texts(language) if text.name.endswith(ENDINGS)], number):
        marks = [m for m in tokens(source) if m.kind in (KEYWORD, FUNCTION) and source.text[m.start] != "@"]
        for mark in chance.sample(marks, min(3, len(marks))):
            before, word = source.text[: mark.start], source.text[mark.start : mark.end].lower()
            found = {part.lower() for c in completions(SourceText(source.name, before), mark.start) for part in c.name.split()}
            missed += [] if word in found | {name + "~" for name in found} else [(source.name, before[-80:], word)]
            looked += 1
    assert looked > number
    assert len(missed) <= looked / 10, missed


def test_words_that_the_parser_would_refuse_are_not_offered() -> None:
    assert set(offered("a.ecco", "option |")) == {"maybe", "offset", "policy", "semantics", "skew"}
    assert "push" in offered("a.ecl", "machine m { initial a; t1: a on open -> | }")
    assert "sequential" not in offered("a.ecl", "machine m { initial a; t1: a on open -> | }")
    assert not {"detect", "restart", "as"} & set(offered("a.ce", "detect x = [open(|)]"))
    assert {"within", "followed by"} <= set(offered("a.say", "Report x when open then close |"))


def test_what_is_being_written_is_not_offered() -> None:
    assert "ope" not in offered("a.ecl", "monitor m = push(x) { ope| }")


@pytest.mark.parametrize(
    ("name", "text", "choice", "made"),
    [
        ("a.ecl", "monitor m = push(x) { op| }", "open", "monitor m = push(x) { open }"),
        ("a.ce", "detect x = [open as o] with v = o.dev|", "device", "detect x = [open as o] with v = o.device"),
        ("a.say", 'Report x when op|.', "open", "Report x when open."),
        ("a.ecco", "detect x = open{va|}", "value", "detect x = open{value}"),
        ("a.eql", "op| where true", "open", "open where true"),
        ("a.mr.sql", "SELECT * FROM o| MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 0)", "open",
         "SELECT * FROM open MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS v > 0)"),
        ("a.amit.xml", '<amit><event name="e"/><situ|', "situation", '<amit><event name="e"/><situation'),
        ("a.amit.xml", '<amit><situation name="s" l|', "lifespan", '<amit><situation name="s" lifespan=""'),
        ("a.amit.xml", '<amit><situation name="s"><all detectionMode="de|"', "deferred",
         '<amit><situation name="s"><all detectionMode="deferred"'),
        ("a.amit.xml", '<amit><lifespan name="day"/><situation lifespan="|"/></amit>', "day",
         '<amit><lifespan name="day"/><situation lifespan="day"/></amit>'),
        ("a.amit.xml", "<amit></|", "amit", "<amit></amit>"),
        ("a.amit.yaml", "situations:\n  s:\n    life|\n", "lifespan", "situations:\n  s:\n    lifespan: \n"),
        ("a.amit.yaml", "situations:\n  s:\n    lifespan: l\n    all: {detectionMode: d|}\n", "deferred",
         "situations:\n  s:\n    lifespan: l\n    all: {detectionMode: deferred}\n"),
        ("a.cdl.xml", '<cd id="c"><sources><source class="op|"', "open", '<cd id="c"><sources><source class="open"'),
        ("a.cdl.xml", "<cd id='c'><sou|", "sources", "<cd id='c'><sources"),
        ("a.cdl.yaml", "cd: x\nsour|\n", "sources", "cd: x\nsources: \n"),
        ("a.yml", "title: x\ndetec|", "detection", "title: x\ndetection: "),
        ("a.yml", "title: x\nlevel: h|", "high", "title: x\nlevel: high"),
    ],
)  # fmt: skip
def test_completions_make_the_text(name: str, text: str, choice: str, made: str) -> None:
    assert completed(name, text, choice) == made


def test_modifiers_of_sigma() -> None:
    source = SourceText("a.yml", "title: x\ndetection:\n  sel:\n    Image|")
    found = {c.name for c in completions(source, len(source.text))}
    assert {"contains", "endswith", "re"} <= found


def test_selections_of_sigma() -> None:
    found = offered("a.yml", "title: x\ndetection:\n  bad: {a: 1}\n  condition: b|\n")
    assert found["bad"] == "selection"


# Hover


def said(name: str, text: str, names: Names = NAMES) -> str:
    before, _, behind = text.partition("|")
    found = hover(SourceText(name, before + behind), len(before), (), names)
    return "" if found is None else found.text


def test_words_are_explained() -> None:
    text = said("a.ecl", "monitor m = repeat { push(x) { accu|mulate { a, b } } }")
    assert "all have succeeded, in any order" in text
    assert "```ecl\nmonitor" in text
    assert "b begins after a has ended" in said("a.say", "Report x when a followed b|y b.")
    assert "Where the next match may begin" in said(
        "a.mr.sql", "SELECT * FROM t MATCH_RECOGNIZE (AFTER MATCH SK|IP PAST LAST ROW"
    )
    assert "(element)" in said("a.amit.xml", '<amit><eve|nt name="x"/></amit>')
    assert "(attribute)" in said("a.amit.xml", '<amit><eventKey eve|nt="x"/></amit>')
    sigma = SourceText("a.yml", "title: x\ndetection:\n  s: {a|contains: 1}")
    found = hover(sigma, sigma.text.index("contains"))
    assert found is not None
    assert "(modifier)" in found.text


def test_names_are_explained() -> None:
    assert "2 seen in the sample; attributes: `device`, `value`" in said("a.ecl", "monitor m = push(x) { op|en }")
    assert "of `close`, `open`" in said("a.ecl", "monitor m by dev|ice = push(x) { open }")
    assert "defined at a.ecl:1:1" in said("a.ecl", "high = value > 6\nmonitor m = push(x) { hi|gh }")


# Formatting


def test_layouts_keep_meaning_and_comments(in_full: bool) -> None:
    changed, some = 0, sources()[:: 1 if in_full else 4]
    for source in some:
        try:
            file = language_of(source.name).parse(source)
            made = SourceText(source.name, formatted(source))
        except RuleError:
            continue
        assert language_of(source.name).parse(made) == file, source.name
        assert comments(made) == comments(source), source.name
        assert formatted(made) == made.text, source.name
        changed += made.text != source.text
    assert changed > len(some) / 4


def comments(source: SourceText) -> list[str]:
    return sorted(source.text[m.start : m.end].rstrip() for m in tokens(source) if m.kind == COMMENT)


def test_order_and_comments_of_the_author() -> None:
    text = "# first\nmonitor   x = repeat {push(a){b}}   # of x\n\n\n# of p\np=v>3\nmonitor y = push(q) { p # why\n }\n# end"
    made = (
        "# first\nmonitor x = repeat { push(a) { b } }  # of x\n\n# of p\np = v > 3\nmonitor y = push(q) { p # why\n }\n# end\n"
    )
    assert formatted(SourceText("a.ecl", text)) == made


def test_what_has_no_layout_says_so() -> None:
    with pytest.raises(RuleError, match="no layout of its own"):
        formatted(SourceText("a.yml", "title: x\nlogsource: {category: c}\ndetection: {s: {a: 1}, condition: s}\n"))
    with pytest.raises(RuleError, match="comments would be lost"):
        formatted(SourceText("a.amit.yaml", "events:  # all\n  a: {}\n"))


# Names


def test_names_of_a_sample(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"type": "a", "time": 1, "x": 1, "n": {"y": 2}}\n{"type": "b", "time": 2, "z": null}\n', encoding="utf-8")
    names = names_in(file)
    assert names.counts == {"a": 1, "b": 1}
    assert {"x"} <= set(names.types["a"])
    assert names.types_with("x") == ["a"]


def test_names_of_records_that_call_things_differently(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(
        "timestamp,event_type,host\n2026-01-01T00:00:00Z,login,h1\n2026-01-01T00:00:01Z,logout,h1\n", encoding="utf-8"
    )
    assert set(names_in(file).types) == {"login", "logout"}


def test_names_of_a_schema(tmp_path: Path) -> None:
    file = tmp_path / "events.schema.json"
    login = {"properties": {"type": {"const": "login"}, "time": {}, "user": {"properties": {"name": {"type": "string"}}}}}
    both = {"properties": {"type": {"enum": ["open", "close"]}, "door": {}}}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": [{"$ref": "#/$defs/login"}, both]}
    file.write_text(json.dumps({**schema, "$defs": {"login": login}}), encoding="utf-8")
    names = joined([names_in(file), NAMES])
    assert set(names.types) == {"login", "open", "close"}
    assert set(names.types["login"]) == {"user.name"}
    assert names.attributes_of(["open"]) == {"door", "device", "value"}


def test_a_sample_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        names_in(tmp_path / "none.jsonl")
