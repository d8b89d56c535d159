"""CDL in YAML: the same definitions as in XML, the same messages, at places in the YAML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_cdl_print import CASES, ODD

from coincide.cli.main import main
from coincide.errors import RuleError
from coincide.lang.cdl.definition import File
from coincide.lang.cdl.schema import FILE, schema
from coincide.lang.shared.schema import schema_text
from coincide.languages.cdl import LANGUAGE
from coincide.rulebook import load
from coincide.source import SourceText
from coincide.testing.cases import find_cases, run_case

FILES = sorted((CASES / "cdl").glob("*/rules.cdl.xml"))
LATE = """\
cd: late-shipment
within: 1 hour
sources:
  O:
    class: order
    attributes:
      item: string
      amount: {type: int, filter: amount > 0}
  S: {class: shipment, attributes: {item: string}}
computations:
  wait: {double: S.time - O.time}
predicates:
  same: {equal: [O.item, S.item]}
  late: wait > 1 min
  many: O.amount >= 100
expressions:
  trouble: same and (late or many)
events:
  trouble: {attributes: {item: {string: O.item}, wait: {double: wait}}}
"""
LATE_XML = """\
<cd id="late-shipment" within="1 hour">
  <sources>
    <source class="order" anchor="O">
      <attribute name="item" type="string"/><attribute name="amount" type="int"><filter>amount &gt; 0</filter></attribute>
    </source>
    <source class="shipment" anchor="S"><attribute name="item" type="string"/></source>
  </sources>
  <computations><computation type="double" anchor="wait">S.time - O.time</computation></computations>
  <predicates>
    <predicate name="equal" anchor="same"><ref anchor="O.item"/><ref anchor="S.item"/></predicate>
    <predicate anchor="late">wait &gt; 1 min</predicate>
    <predicate anchor="many">O.amount &gt;= 100</predicate>
  </predicates>
  <expressions><expression anchor="trouble">same and (late or many)</expression></expressions>
  <events><event class="trouble">
    <attribute name="item" type="string">O.item</attribute><attribute name="wait" type="double">wait</attribute>
  </event></events>
</cd>
"""


def from_xml(text: str, name: str = "r.cdl.xml") -> File:
    return LANGUAGE.parse(SourceText(name, text))


def from_yaml(text: str, name: str = "r.cdl.yaml") -> File:
    return LANGUAGE.parse(SourceText(name, text))


def refused(text: str) -> str:
    with pytest.raises(RuleError) as raised:
        load(SourceText("r.cdl.yaml", text))
    return raised.value.diagnostics[0].render()


def test_all_of_it() -> None:
    assert from_yaml(LATE) == from_xml(LATE_XML)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_rule_files_come_back(path: Path, validator: Any) -> None:
    file = from_xml(path.read_text(encoding="utf-8"), str(path))
    text = LANGUAGE.printed(file, "yaml")
    back = from_yaml(text, str(path.with_suffix(".yaml")))
    assert back == file
    assert (back.form, file.form) == ("yaml", "xml")
    assert LANGUAGE.printed(back, "yaml") == text
    assert from_xml(LANGUAGE.printed(back, "xml"), str(path)) == file
    validator.validate(yaml.safe_load(text))


def test_odd_names_and_texts_come_back(validator: Any) -> None:
    file = from_xml(ODD)
    assert from_yaml(LANGUAGE.printed(file, "yaml")) == file
    validator.validate(yaml.safe_load(LANGUAGE.printed(file, "yaml")))


def test_cases_run_from_yaml(tmp_path: Path) -> None:
    for case in find_cases(CASES / "cdl")[::6]:
        folder = tmp_path / "cdl" / case.folder.name
        folder.mkdir(parents=True)
        for path in case.folder.iterdir():
            if path.name.endswith(".xml"):
                text = LANGUAGE.printed(from_xml(path.read_text(encoding="utf-8"), str(path)), "yaml")
                (folder / path.name.replace(".xml", ".yaml")).write_text(text, encoding="utf-8")
            else:
                (folder / path.name).write_bytes(path.read_bytes())
    cases = find_cases(tmp_path)
    assert len(cases) > 5
    for case in cases:
        result = run_case(case)
        assert result.passed, str(result)


SHORT = "sources: {A: a, B: b}\npredicates: {P: {before: [A, B]}}\nexpressions: {X: P}\n"


@pytest.mark.parametrize(
    ("text", "xml"),
    [
        ("X: [P, not Q]", "<and><ref anchor='P'/><not><ref anchor='Q'/></not></and>"),
        ("X: {or: [P, {and: [Q, P]}]}", "P or (Q and P)"),
        ("X: {and: [P, not: R or Q]}", "P and not (R or Q)"),
        ("X: {ref: P}", "P"),
    ],
)
def test_expressions(text: str, xml: str) -> None:
    rest = "sources: {A: a}\npredicates: {P: {any: A}, Q: A.time > 0, R: A.time < 0}\nevents: {e: }\n"
    found = from_yaml(f"cd: c\n{rest}expressions: {{{text}}}")
    predicates = '<predicate name="any" anchor="P">A</predicate><predicate anchor="Q">A.time &gt; 0</predicate>'
    predicates += '<predicate anchor="R">A.time &lt; 0</predicate>'
    head = f'<cd id="c"><sources><source class="a" anchor="A"/></sources><predicates>{predicates}</predicates>'
    expressions = f'<expressions><expression anchor="X">{xml}</expression></expressions>'
    assert found == from_xml(f'{head}{expressions}<events><event class="e"/></events></cd>')


def test_several_descriptions_and_names_that_come_twice(tmp_path: Path, validator: Any) -> None:
    (tmp_path / "t.csv").write_text("k,v\n1,2\n")
    text = f"""\
providers: {{t: {{kind: csv, href: t.csv, key: k}}}}
cds:
  - cd: one
    {SHORT.replace(chr(10), chr(10) + "    ")}
    events:
      - {{class: e, attributes: [{{name: x, double: A.time}}, {{name: y, double: "lookup('t', 'v', 1)"}}]}}
      - {{class: e, access: internal}}
  - cd: one
    version: 1.10
    {SHORT.replace(chr(10), chr(10) + "    ")}
    events: {{e: }}
"""
    name = str(tmp_path / "r.cdl.yaml")
    file = from_yaml(text, name)
    assert [(cd.id, cd.version) for cd in file.descriptions] == [("one", (1,)), ("one", (1, 10))]
    assert [event.access for event in file.descriptions[0].events] == ["public", "internal"]
    assert from_yaml(LANGUAGE.printed(file, "yaml"), name) == file
    assert from_xml(LANGUAGE.printed(file, "xml"), str(tmp_path / "r.cdl.xml")) == file
    validator.validate(yaml.safe_load(text))
    validator.validate(yaml.safe_load(LANGUAGE.printed(file, "yaml")))


@pytest.mark.parametrize(
    ("given", "instead", "message"),
    [
        ("amount: {type: int", "amount: {type: integer", "r.cdl.yaml:8:22: error: unknown type 'integer'\n"),
        ("filter: amount > 0", "filter: amuont > 0", "8:35: error: unknown anchor 'amuont' (a text value needs quotes)"),
        ("O.amount >= 100", "O.amuont >= 100", "15:9: error: source 'O' declares no attribute 'amuont'"),
        ("O.amount >= 100", "O.amuont >= 100", "hint: did you mean 'amount'?"),
        ("O.amount >= 100", "'O.amount >= '", "15:21: error: in 'predicate': expected a value"),
        ("O.amount >= 100", "uper(O.item) = 'X'", "15:9: error: unknown function 'uper'"),
        ("O.amount >= 100", "{great: [O.amount, 1]}", "15:3: error: unknown predicate 'great'"),
        ("O.amount >= 100", "{equal: 1, less: 2}", "15:3: error: 'many' needs one condition or one predicate"),
        ("O.amount >= 100", "[a]", "15:9: error: 'predicate' must be a mapping, not a list"),
        ("O.amount >= 100", "", "15:3: error: 'predicate' is empty"),
        ("[O.item, S.item]", "[O.item, 'S.item =']", "13:35: error: expected a value"),
        ("[O.item, S.item]", "[O.item]", "13:3: error: predicate 'equal' takes 2 or more arguments, not 1"),
        ("[O.item, S.item]", "[O.item, {reff: S.item}]", "13:26: error: a value is a text, or a mapping with the name of"),
        ("[O.item, S.item]", "{call: uper, arguments: [1]}", "13:18: error: unknown function 'uper'"),
        ("{double: S.time - O.time}", "S.time - O.time", "11:9: error: 'computation' must be a mapping, not 'S.time - O.time'"),
        ("{double: S.time - O.time}", "{dubble: 1}", "11:10: error: unknown type 'dubble'"),
        ("{double: S.time - O.time}", "{}", "11:3: error: 'wait' needs one type with its value"),
        ("same and (late or many)", "same and lat", "error: unknown predicate 'lat'"),
        ("same and (late or many)", "[same, late = 1]", "17:19: error: in the text: only names of predicates"),
        ("same and (late or many)", "{nand: [same]}", "17:12: error: an expression is a text, a list of names, or one of"),
        ("within: 1 hour", "within: soon", "2:9: error: 'within' is not a duration: soon"),
        ("within: 1 hour", "witin: 1 hour", "2:1: error: 'cd' has no entry 'witin'"),
        ("within: 1 hour", "witin: 1 hour", "hint: did you mean 'within'?"),
        ("within: 1 hour", "within: [1]", "2:9: error: 'within' must be one value, not a list"),
        ("within: 1 hour", "within: 1h\nwithin: 2h", "3:1: error: 'within' is given twice"),
        ("within: 1 hour", "disjoint: yes", "2:11: error: 'yes' is not a value of type boolean"),
        ("within: 1 hour", "version: one", "2:10: error: 'version' is not dotted whole numbers: one"),
        ("within: 1 hour", "providers: {p: {kind: csv, href: no.csv, key: k}}", "2:13: error: cannot read 'no.csv'"),
        ("S: {class: shipment", "S: {klass: shipment", "9:7: error: 'source' has no entry 'klass'"),
        ("S: {class: shipment", "O: {class: shipment", "9:3: error: anchor 'O' is defined twice"),
        ("S: {class: shipment", "and: {class: shipment", "9:3: error: 'and' cannot be an anchor"),
        ("S: {class: shipment", "S: {trigger: O, relativ: 1, class: shipment", "error: 'time' has no entry 'relativ'"),
        ("S: {class: shipment", "T: {trigger: O}\n  S: {class: shipment", "9:3: error: 'time' is empty"),
        ("S: {class: shipment", "S: {duplicates: drop, class: shipment", "9:19: error: 'duplicates' is not accept"),
        ("{item: {string: O.item}", "{time: {string: O.item}", "19:26: error: an event cannot set 'time'"),
        ("cd: late-shipment\n", "", "1:1: error: a description needs its name, 'cd: NAME'; several stand in a list 'cds'"),
        ("events:\n  trouble: {", "events:\n  - {", "error: an entry of the list 'events' needs 'class'"),
        ("expressions:\n  trouble: same and (late or many)\n", "", "1:5: error: cd 'late-shipment' has no expressions"),
        ("sources:", "sources: [", "error: not well-formed YAML: "),
    ],
)
def test_errors_at_their_places(given: str, instead: str, message: str) -> None:
    assert given in LATE
    assert message in refused(LATE.replace(given, instead))


@pytest.mark.parametrize("text", ["", "{}", "[]", "cds:", "cds: []", "just a text"])
def test_nothing(text: str) -> None:
    assert "error: " in refused(text)


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(schema()), "python -m coincide.lang.cdl.schema writes it"


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("cd: late-shipment\n", ""),
        ("within: ", "witin: "),
        ("amount: {type: int", "amount: {type: integer"),
        ("{double: S.time - O.time}", "{dubble: 1}"),
        ("{double: S.time - O.time}", "S.time"),
        ("S: {class: shipment", "S: {klass: shipment"),
        ("S: {class: shipment", "S: {trigger: O"),
        ("[O.item, S.item]", "[O.item, {reff: S.item}]"),
        ("same and (late or many)", "{nand: [same]}"),
    ],
)
def test_what_the_schema_refuses_the_parser_refuses(given: str, instead: str, validator: Any) -> None:
    assert given in LATE
    assert validator.is_valid(yaml.safe_load(LATE))
    assert not validator.is_valid(yaml.safe_load(LATE.replace(given, instead)))
    assert "error: " in refused(LATE.replace(given, instead))


def test_the_command_prints_either_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.cdl.yaml"
    path.write_text(LATE)
    assert main(["debug", "xml", str(path)]) == 0
    assert from_xml(capsys.readouterr().out) == from_xml(LATE_XML)
    assert main(["debug", "parse", str(path)]) == 0
    assert from_yaml(capsys.readouterr().out) == from_xml(LATE_XML)
    assert main(["debug", "python", str(path)]) == 2
    assert "rules of cdl have no form in python" in capsys.readouterr().err


def test_both_forms_are_read_as_one(tmp_path: Path) -> None:
    later = LATE_XML.replace('id="late-shipment"', 'id="late-shipment" version="2"')
    book = load(SourceText("a.cdl.yaml", LATE), SourceText("b.cdl.xml", later))
    assert [d.definition.version for d in book.detectors] == [(2,)]


def test_the_library_is_imported_when_it_is_needed() -> None:
    script = "import sys; from coincide.rulebook import load; load(*sys.argv[1:]); print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, str(FILES[0])], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
