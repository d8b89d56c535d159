"""Amit's rules in YAML: the same definitions as in XML, the same messages, at places in the YAML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from amit_support import CASES, FILES, expanded, from_xml, from_yaml, named, read, through_xml, through_yaml
from hypothesis import given, settings

from coincide.cli.main import main
from coincide.errors import RuleError
from coincide.lang.amit.definition import File, Template, Use
from coincide.lang.amit.print_yaml import print_file
from coincide.rulebook import load
from coincide.source import SourceText
from coincide.testing.amit import rule_files
from coincide.testing.cases import find_cases, run_case

DAY = """\
events:
  open: {}
  close:
  quote: {symbol: string, change: number}
  order: {stock: string}
keys:
  symbol: {quote: symbol, order: stock}
lifespans:
  day:
    initiator: open
    terminator: [close, {expirationInterval: 9h, terminationType: discard}]
"""


def refused(text: str) -> str:
    with pytest.raises(RuleError) as raised:
        load(SourceText("r.amit.yaml", text))
    return raised.value.diagnostics[0].render()


def test_all_of_it() -> None:
    text = DAY + (
        "situations:\n"
        "  fall:\n"
        "    lifespan: day\n"
        "    internal: true\n"
        "    atleast:\n"
        "      quantity: 3\n"
        "      operands:\n"
        "        - {event: quote, as: q, threshold: change < 0, retain: true, weight: 2}\n"
        "        - order\n"
        "      keyBy: {name: symbol}\n"
        "    attributes:\n"
        "      symbol: {type: string, expression: q.symbol}\n"
        "      change: number\n"
        "  quiet:\n"
        "    lifespan: day\n"
        "    not: [quote, order]\n"
        "  tick: {lifespan: day, every: 90 min}\n"
    )
    xml = (
        '<amit><event name="open"/><event name="close"/>'
        '<event name="quote"><eventAttribute name="symbol" type="string"/><eventAttribute name="change" type="number"/></event>'
        '<event name="order"><eventAttribute name="stock" type="string"/></event>'
        '<key name="symbol"><eventKey event="quote" attribute="symbol"/><eventKey event="order" attribute="stock"/></key>'
        '<lifespan name="day"><initiator><eventInitiator event="open"/></initiator><terminator><eventTerminator event="close"/>'
        '<expirationInterval timeInterval="9h" terminationType="discard"/></terminator></lifespan>'
        '<situation name="fall" lifespan="day" internal="true"><atleast quantity="3">'
        '<operandAtleast event="quote" as="q" threshold="change &lt; 0" retain="true" weight="2"/><operandAtleast event="order"/>'
        '<keyBy name="symbol"/></atleast><situationAttribute name="symbol" type="string" expression="q.symbol"/>'
        '<situationAttribute name="change" type="number"/></situation>'
        '<situation name="quiet" lifespan="day"><not><operandNot event="quote"/><operandNot event="order"/></not></situation>'
        '<situation name="tick" lifespan="day"><every interval="90 min"/></situation></amit>'
    )
    assert from_yaml(text) == from_xml(xml)
    assert from_yaml(print_file(from_yaml(text))) == from_yaml(text)


@pytest.mark.parametrize("path", FILES, ids=named)
def test_rule_files_come_back(path: Path) -> None:
    file = read(path)
    back = through_yaml(file)
    assert (back.form, file.form) == ("yaml", "xml")
    others = [read(other) for other in path.parent.glob("rules*.amit.xml") if other != path]
    assert expanded(back, *others) == expanded(file, *others)
    assert through_xml(back) == back
    kept = [(item.name, item.parameters) for item in file.items if isinstance(item, Template)]
    assert kept == [(item.name, item.parameters) for item in back.items if isinstance(item, Template)]


@settings(max_examples=60, deadline=None)
@given(rule_files())
def test_any_definitions_come_back(file: File) -> None:
    assert through_yaml(file) == file
    assert through_xml(through_yaml(file)) == file


def test_cases_run_from_yaml(tmp_path: Path) -> None:
    """A few of them: what the definitions mean does not depend on the form."""
    for case in find_cases(CASES / "amit")[::8]:
        folder = tmp_path / "amit" / case.folder.name
        folder.mkdir(parents=True)
        for path in case.folder.iterdir():
            if path.name.endswith(".xml"):
                (folder / path.name.replace(".xml", ".yaml")).write_text(print_file(read(path)), encoding="utf-8")
            else:
                (folder / path.name).write_bytes(path.read_bytes())
    for case in find_cases(tmp_path):
        result = run_case(case)
        assert result.passed, str(result)


def test_order_that_sections_cannot_keep() -> None:
    text = """\
- situations:
    a: {lifespan: l, all: A}
  use: {template: t, name: b}
- situations:
    c: {lifespan: l, all: A}
  templates:
    t:
      parameters: name
      body:
        - situations: {"${name}": {lifespan: l, all: A}}
        - situations: {"${name}2": {lifespan: l, all: A}}
  events: {A: }
  lifespans: {l: {initiator: startup, terminator: noTerminator}}
"""
    file = from_yaml(text)
    assert [type(item).__name__ for item in file.items][:3] == ["Situation", "Use", "Situation"]
    assert [d.name for d in expanded(file)] == ["a", "b", "b2", "c", "A", "l"]
    assert through_yaml(file).items[1] == Use("t", {"name": "b"})
    assert expanded(through_yaml(file)) == expanded(file)


def test_words_that_other_readers_of_yaml_take_for_values() -> None:
    file = from_yaml("events: {no: {on: string, y: number, null: string}}\n")
    (event,) = expanded(file)
    assert event.name == "no"
    assert [a.name for a in event.attributes] == ["on", "y", "null"]  # type: ignore[union-attr]


def test_names_that_look_like_words() -> None:
    file = from_yaml("lifespans: {l: {initiator: {event: startup}, terminator: [{event: noTerminator}]}}\n")
    assert through_yaml(file) == file
    assert not file.items[0].startup  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "events: {quote: {change: numbr}}",
            "r.amit.yaml:1:26: error: attribute 'type' must be one of string, number, boolean, not 'numbr'",
        ),
        ("event: {}", "error: unknown element 'event' in 'amit'\n    event: {}\n    ^^^^^\n    hint: did you mean 'events'?"),
        ("events: [a]", "1:9: error: 'events' must be a mapping, not a list"),
        ("events: a", "1:9: error: 'events' must be a mapping, not 'a'"),
        ("events: {a: {time: number}}", "1:14: error: attribute name 'time' is reserved"),
        ("events: {a: {x: number, x: string}}", "1:25: error: attribute 'x' is defined twice"),
        ("events: {a: }\nuse: {template: t}", "2:6: error: unknown template 't'"),
        ("keys: {k: {}}", "1:8: error: element 'key' needs at least one 'eventKey'"),
        ("events: {a: {x: string}}\nkeys: {k: {a: x, a: x}}", "2:18: error: event 'a' is in key 'k' twice"),
        (
            "lifespans: {l: {initiator: a}}",
            "1:13: error: element 'lifespan' holds one 'initiator', one 'terminator', then any 'keyBy'",
        ),
        ("lifespans: {l: {initiator: a, initiator: b}}", "1:31: error: attribute 'initiator' is given twice"),
        ("lifespans: {l: {initiator: , terminator: b}}", "1:17: error: element 'initiator' is empty"),
        (
            "lifespans: {l: {initiator: a, terminator: [noTerminator, b]}}",
            "1:44: error: 'noTerminator' excludes other terminators",
        ),
        (
            "lifespans: {l: {initiator: a, terminator: {expirationInterval: 0}}}",
            "1:64: error: attribute 'timeInterval' must be a duration",
        ),
        ("lifespans: {l: {initiater: a}}", "hint: did you mean 'initiator'?"),
        ("situations: {s: {lifespan: l}}", "1:14: error: situation 's' needs exactly one operator"),
        ("situations: {s: {lifespan: l, all: a, not: a}}", "1:14: error: situation 's' needs exactly one operator"),
        ("situations: {s: {lifespan: l, sequence: [a]}}", "1:31: error: operator 'sequence' has 1 operands, needs at least 2"),
        ("situations: {s: {lifespan: l, atleast: [a]}}", "1:31: error: element 'atleast' needs the attribute 'quantity'"),
        ("situations: {s: {lifespan: l, not: {operands: a, keyBy: x}}}", "1:31: error: operator 'not' takes no 'keyBy'"),
        (
            "situations: {s: {lifespan: l, all: [{event: a, threshold: x >}]}}",
            '1:59: error: expected a value, found end of expression at column 4 of "x >"',
        ),
        ("situations: {s: {lifespan: [l], all: a}}", "1:28: error: attribute 'lifespan' must be one value, not a list"),
        (
            "situations: {s: {lifespan: l, internal: yes, all: a}}",
            "1:41: error: attribute 'internal' must be one of true, false, not 'yes'",
        ),
        ("events: {a: {x: number}", "error: not well-formed YAML: expected ',' or '}'"),
        ("events:\n\ta: ", "hint: YAML is indented with spaces, not tabs"),
        ("a: b: c", "1:5: error: not well-formed YAML: mapping values are not allowed here"),
        ("a: \x00", "1:4: error: not well-formed YAML: special characters are not allowed"),
        ("events: !!python/object:os.system {}", "1:9: error: not well-formed YAML: tags are not allowed"),
        ("{}\n---\n{}", "2:1: error: not well-formed YAML: a second document"),
        ("? [a]\n: b", "1:3: error: not well-formed YAML: a key must be one value"),
        ("events: *a", "1:9: error: not well-formed YAML: '*a' stands for nothing"),
        ("events: &a [*a]", "1:13: error: not well-formed YAML: '*a' stands for nothing"),
        ("[" * 5000, "1:101: error: not well-formed YAML: nested more than 100 deep"),
    ],
)
def test_errors_at_their_places(text: str, message: str) -> None:
    assert message in refused(text)


def test_aliases_are_counted_as_what_they_stand_for() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert "not well-formed YAML: more than 200,000 nodes" in refused("\n".join(lines))


def test_an_alias() -> None:
    file = from_yaml("events: {a: &shape {x: number}, b: *shape}\n")
    assert [len(d.attributes) for d in expanded(file)] == [1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "events:\n"])
def test_nothing(text: str) -> None:
    assert from_yaml(text).items == ()
    assert from_yaml(print_file(from_yaml(text))).items == ()


def test_both_forms_are_read_as_one() -> None:
    situations = SourceText(
        "b.amit.xml", '<amit><situation name="s" lifespan="day"><all><operandAll event="open"/></all></situation></amit>'
    )
    assert [d.name for d in load(SourceText("a.amit.yaml", DAY), situations).detectors] == ["s"]


def test_what_a_template_makes_clashes_with_another_language() -> None:
    amit = "events: {A: }\nlifespans: {l: {initiator: startup, terminator: noTerminator}}\nuse: {template: t, name: m}\n"
    template = "templates: {t: {parameters: name, situations: {'${name}': {lifespan: l, all: A}}}}\n"
    sources = [SourceText("a.amit.yaml", amit), SourceText("t.amit.yaml", template)]
    ecl = SourceText("r.ecl", "monitor m = repeat { push(p) { sequential { a, b } } }")
    with pytest.raises(RuleError, match="situation 'm' is already defined") as raised:
        load(ecl, *sources)
    assert str(raised.value.diagnostics[0].span) == "a.amit.yaml:3:6"
    with pytest.raises(RuleError, match="'m' is already defined"):
        load(*sources, ecl)


def test_the_library_is_imported_when_it_is_needed() -> None:
    script = "import sys; from coincide.rulebook import load; load(*sys.argv[1:]); print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, str(FILES[0])], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_command_prints_any_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(path for path in FILES if path.parent.name == "template")
    for form, ending in (("yaml", ".amit.yaml"), ("xml", ".amit.xml")):
        assert main(["debug", form, str(path)]) == 0
        (tmp_path / f"rules{ending}").write_text(capsys.readouterr().out, encoding="utf-8")
        assert expanded(read(tmp_path / f"rules{ending}")) == expanded(read(path))
    assert main(["debug", "python", str(path)]) == 0
    assert capsys.readouterr().out.startswith("from coincide.amit import ")
    (tmp_path / "r.ecl").write_text("monitor m = repeat { push(p) { sequential { a, b } } }")
    assert main(["debug", "yaml", str(tmp_path / "r.ecl")]) == 2
    assert "rules of ecl have no form in yaml" in capsys.readouterr().err
