"""`coincide test`: expectations in part, ISO times, events of other forms, cases in YAML files, and --accept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import EVENTS, FOUND, RULES, Coincide, jsonl, written

SUITE = """\
rules: rules.ecl
cases:
  - name: both doors   # two pairs
    events:
      - {type: open, time: 1970-01-01T00:00:00.010Z, door: a}
      - {type: open, time: 20, door: b}
      - {type: close, time: 30, door: a, v: 7}
      - {type: close, time: 40, door: b}
    expected:
      - {type: pair, time: 1970-01-01T00:00:00.030Z, from: [3], door: a, v: 7}
      - {type: pair, door: b, ...}
      # in any order
      - type: twice
        ...: true

  # and with files
  - name: from a file
    events: events.csv
    until: inf
    expected: []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path / "suite" / "rules.ecl", RULES)
    written(tmp_path / "suite" / "events.csv", "type,time,door\nopen,10,a\n")
    return tmp_path / "suite"


@pytest.fixture
def suite(folder: Path) -> Path:
    return written(folder / "doors.test.yaml", SUITE)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    written(tmp_path / "case" / "rules.ecl", RULES)
    jsonl(tmp_path / "case" / "events.jsonl", EVENTS)
    return tmp_path / "case"


def test_what_no_event_had_is_told_of_cases_that_fail(
    tmp_path: Path, coincide: Coincide, recwarn: pytest.WarningsRecorder
) -> None:
    written(tmp_path / "t.yml", "title: t\nlogsource: {category: log}\ndetection: {s: {a: 1}, o: {bb: 2}, condition: s or o}\n")
    cases = ["rules: t.yml", "cases:", "  - {name: good, events: [{time: 5, a: 1}], expected: [{type: t, ...}]}"]
    cases += ["  - {name: bad, events: [{time: 5, b: 2}], expected: [{type: t, ...}]}"]
    written(tmp_path / "t.test.yml", "\n".join(cases))
    told = coincide("test", tmp_path)
    assert "1 passed, 1 failed" in told.out
    assert "t.yml:3:28: warning: no event had the attribute 'bb'; did you mean 'b' (1 event)?\n" in told.out
    assert told.out.count("warning: ") == 2
    assert not [one for one in recwarn if "no event had" in str(one.message)]


def test_rules_of_sigma_with_their_mapping(tmp_path: Path, coincide: Coincide) -> None:
    """Records need no type, and the file of cases is no rule."""
    rule = "title: t\nlogsource: {category: log}\ndetection: {s: {a: 1}, condition: s}\n"
    written(tmp_path / "rules" / "t.yml", rule)
    written(tmp_path / "rules" / "map.yml", "logsources: [{category: log, where: {k: 2}}]\nevents: {time: at}")
    cases = ["rules: t.yml", "mapping: map.yml", "cases:"]
    cases += ["  - {events: [{at: 5, a: 1, k: 2}, {at: 6, a: 1}], expected: [{type: t, time: 5, ...}]}"]
    cases += ["  - {mapping: windows, events: [{time: 5, a: 1}], expected: [{type: t, ...}]}"]
    written(tmp_path / "rules" / "t.test.yml", "\n".join(cases))
    assert coincide("test", tmp_path / "rules").out == "2 passed, 0 failed\n"
    assert (
        coincide("check", tmp_path / "rules", "--sigma-mapping", tmp_path / "rules" / "map.yml").out == "1 detector, 0 warnings\n"
    )
    told = coincide("run", tmp_path / "rules", "--events", "x.jsonl", "--sigma-mapping", "windws")
    assert (told.code, told.err) == (2, "error: windws: there is no such mapping file\n    hint: did you mean 'windows'?\n")
    written(tmp_path / "rules" / "t.test.yml", "rules: t.yml\nmapping: nowhere\ncases: []")
    assert "t.test.yml:2:10: error: there is no mapping file 'nowhere'" in coincide("test", tmp_path / "rules").err


# Expectations.


@pytest.mark.parametrize(
    ("first", "passed"),
    [
        ({"type": "pair", "time": "1970-01-01T00:00:00.030Z", "from": ["3"], "door": "a", "v": 7}, True),
        ({"type": "pair", "time": ["1970-01-01T00:00:00.030Z", 30], "from": ["3"], "door": "a", "v": 7}, True),
        ({"type": "pair", "time": "1970-01-01T01:00:00.030+01:00", "...": True}, True),
        ({"v": 7, "...": True}, True),
        ({"...": True}, True),
        ({"type": "pair", "time": "1970-01-01T00:00:00.031Z", "...": True}, False),
        ({"type": "pair", "v": None, "...": True}, False),
        ({"type": "pair", "time": 30}, False),
    ],
)
def test_expectations_in_part(coincide: Coincide, case: Path, first: dict[str, object], passed: bool) -> None:
    jsonl(case / "expected.jsonl", [first, {"type": "pair", "v": None, "...": True}, FOUND[2]])
    assert coincide("test", case).code == (0 if passed else 1)


def test_expectations_make_room_for_each_other(coincide: Coincide, case: Path) -> None:
    """The first could be met by what only the second can take."""
    jsonl(case / "expected.jsonl", [{"type": "pair", "...": True}, {"v": 7, "...": True}, {"...": True}])
    assert coincide("test", case).code == 0
    jsonl(case / "expected.jsonl", [{"v": 7, "...": True}, {"v": 7, "...": True}, {"...": True}])
    outcome = coincide("test", case)
    assert outcome.out.splitlines()[1:] == [
        '    missing     {"v":7,"...":true}',
        '    unexpected  {"type":"twice","time":40,"from":["4"]}',
        "0 passed, 1 failed",
    ]


def test_a_difference_is_told_of_the_fields_given(coincide: Coincide, case: Path) -> None:
    jsonl(case / "expected.jsonl", [{"type": "pair", "door": "a", "v": 8, "...": True}, *FOUND[1:]])
    assert '{"type":"pair","door":"a","v":8,"...":true}: v is 7, not 8' in coincide("test", case).out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"type": "pair", "time": "noon"}, "expected.jsonl:2: time must be a number, an ISO-8601 text"),
        ({"type": "pair", "...": 3}, "expected.jsonl:2: '...' stands for all other fields: its value is true"),
    ],
)
def test_expectations_that_are_none(coincide: Coincide, case: Path, line: dict[str, object], reason: str) -> None:
    jsonl(case / "expected.jsonl", [FOUND[0], line])
    assert reason in coincide("test", case).out


@pytest.mark.parametrize("name", ["events.csv", "events.ndjson"])
def test_events_of_other_forms(coincide: Coincide, case: Path, name: str) -> None:
    lines = (case / "events.jsonl").read_text()
    (case / "events.jsonl").unlink()
    csv = "type,time,door,v\nopen,10,a,\nopen,20,b,\nclose,30,a,7\nclose,40,b,\n"
    written(case / name, csv if name.endswith("csv") else lines)
    jsonl(case / "expected.jsonl", FOUND)
    assert coincide("test", case).code == 0
    written(case / "events.json", lines)
    assert f"there are several files of events: events.{'csv' if 'csv' in name else 'json'}, " in coincide("test", case).out


# Files of cases.


def test_a_file_of_cases(coincide: Coincide, suite: Path) -> None:
    for path in (suite, suite.parent, suite.parent.parent):
        outcome = coincide("test", path, "--verbose")
        assert outcome.out == "passed both doors\npassed from a file\n2 passed, 0 failed\n"
    assert coincide("test", suite, "--tier", "kernel").code == 0


def test_a_case_of_a_file_that_fails(coincide: Coincide, suite: Path) -> None:
    suite.write_text(SUITE.replace("door: b, ...", "door: c, ..."))
    outcome = coincide("test", suite)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        f"FAILED {suite}:3: both doors (detections)",
        '    differs     {"type":"pair","door":"c","...":null}: door is "b", not "c"',
        "1 passed, 1 failed",
    ]


def test_rules_in_line_and_policies(coincide: Coincide, folder: Path) -> None:
    text = """\
cases:
  - name: late
    policy: guaranteed
    rules:
      opera: |
        sources s
        detect P = [open] ; [close]
    events:
      - {type: close, time: 2, source: s, arrival: 3}
      - {type: open, time: 1, source: s, arrival: 4}
      - {type: close, time: 5, source: s, arrival: 5}
    expected: [{type: P, time: [2, 5], ...}]
"""
    suite = written(folder / "x.yaml", text)
    assert coincide("test", suite).code == 1
    suite.write_text(text.replace("    policy: guaranteed\n", "").replace("[2, 5]", "[1, 2]"))
    assert coincide("test", suite).code == 0


def test_errors_in_rules_in_line_have_their_line_in_the_file(coincide: Coincide, folder: Path) -> None:
    suite = written(folder / "x.yaml", "cases:\n- events: []\n  rules:\n    ecl: |\n      monitor\n      m = }\n  expected: []\n")
    assert f"{suite}:rules.ecl:6:5: error: expected" in coincide("test", suite).out


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("until: inf", "untill: inf", ":19:5: error: a case has no 'untill'\n"),
        ("until: inf", "until: soon", "'soon' is not a time"),
        ("cases:", "case:", ":2:1: error: a file of cases has no 'case'\n"),
        ("events.csv", "nothing.csv", ":18:13: error: there is no file '"),
        ("rules: rules.ecl", "rules: [a, {b: c}]", ":1:12: error: a rule file must be one text"),
        ("rules: rules.ecl", "rules: {eccl: a}", ":1:9: error: unknown language"),
        ("rules: rules.ecl\n", "", ":2:5: error: the case has no rules"),
        ("{type: open, time: 20, door: b}", "{type: open, door: b}", ":6:9: error: missing time"),
        ("{type: open, time: 20, door: b}", "{type: open, time: 1, time: 2}", ":6:31: error: 'time' is given twice"),
        ("{type: open, time: 20, door: b}", "[open]", ":6:9: error: expected a record"),
        ("{type: pair, door: b, ...}", "{time: noon, ...}", ":11:9: error: time must be"),
        ("expected: []", "expected: none", ":20:15: error: 'expected' must be a list"),
        ("expected: []", "expected: [", "not well-formed YAML"),
        ("    events: events.csv\n", "", ":17:5: error: the case has no 'events'"),
    ],
)
def test_what_is_wrong_in_a_file(coincide: Coincide, suite: Path, old: str, new: str, reason: str) -> None:
    suite.write_text(SUITE.replace(old, new))
    outcome = coincide("test", suite)
    assert outcome.code == (1 if "soon" in new else 2)
    assert reason in outcome.err + outcome.out


def test_other_files_hold_no_cases(coincide: Coincide, folder: Path) -> None:
    outcome = coincide("test", folder / "rules.ecl")
    assert (outcome.code, "not a folder of cases" in outcome.err) == (2, True)


# --accept.


def test_accept_begins_a_case(coincide: Coincide, case: Path) -> None:
    assert coincide("test", case).code == 1
    outcome = coincide("test", case, "--accept")
    assert (outcome.code, outcome.out) == (0, f"accepted {case}: 3 expected\n0 passed, 0 failed, 1 accepted\n")
    assert [json.loads(line) for line in (case / "expected.jsonl").read_text().splitlines()] == FOUND
    assert coincide("test", case).out == "1 passed, 0 failed\n"


def test_accept_keeps_what_is_met(coincide: Coincide, case: Path) -> None:
    kept = '{ "type": "pair",  "v": 7, "...": true }'
    gone = '{"type": "pair", "time": "1970-01-01T00:00:09Z", "...": true}'
    written(case / "expected.jsonl", f"{gone}\n\n{kept}\n")
    assert coincide("test", case, "--accept").code == 0
    lines = (case / "expected.jsonl").read_text().splitlines()
    assert lines[0] == kept
    assert [json.loads(line)["time"] for line in lines[1:]] == ["1970-01-01T00:00:00.040Z"] * 2
    before = (case / "expected.jsonl").stat().st_mtime_ns
    assert coincide("test", case, "--accept").out == "1 passed, 0 failed\n"
    assert (case / "expected.jsonl").stat().st_mtime_ns == before


def test_accept_changes_only_what_is_expected(coincide: Coincide, suite: Path) -> None:
    text = (
        SUITE.replace("door: b, ...", "door: c, ...")
        .replace("inf\n    expected: []", "inf")
        .replace("v: 7}\n      - {type: close", "v: 8}\n      - {type: close")
    )
    suite.write_text(text)
    assert coincide("test", suite, "--accept").out.splitlines() == [
        f"accepted {suite}:3: both doors: 3 expected",
        f"accepted {suite}:17: from a file: 0 expected",
        "0 passed, 0 failed, 2 accepted",
    ]
    new = suite.read_text()
    assert new[: new.index("    expected:")] == text[: text.index("    expected:")]
    assert (
        new[new.index("\n  # and with files") :] == text[text.index("\n  # and with files") :].rstrip() + "\n    expected: []\n"
    )
    assert coincide("test", suite).out == "2 passed, 0 failed\n"


@pytest.mark.parametrize(
    "expected",
    [
        "expected: []",
        "expected:",
        "expected: [{type: x}]",
        "expected:\n    - {type: x}",
        "expected:\n    -   type: x\n        v: 3",
    ],
)
def test_accept_in_every_layout(coincide: Coincide, folder: Path, expected: str) -> None:
    rules, rest = "{ecl: 'monitor m = repeat { push(x) { a } }'}", "\n\n    # more\n    until: 3\n"
    for events, count in (("{type: a, time: 1}", 1), ("", 0)):
        suite = written(folder / "x.yaml", f"cases:\n  - rules: {rules}\n    events: [{events}]\n    {expected}{rest}")
        coincide("test", suite, "--accept")
        assert coincide("test", suite).out == "1 passed, 0 failed\n", suite.read_text()
        assert suite.read_text().count("type: x") == count
        assert suite.read_text().endswith(rest)


def test_what_cannot_be_accepted(coincide: Coincide, case: Path) -> None:
    written(case / "rules.ecl", "monitor m = }")
    jsonl(case / "expected.jsonl", [])
    outcome = coincide("test", case, "--accept")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (1, "0 passed, 1 failed")
    written(case / "rules.ecl", RULES)
    written(case / "expected-error", "1:1: no")
    assert coincide("test", case, "--accept").code == 1
    assert (case / "expected.jsonl").read_text() == ""
