"""The specification of EQL sentence by sentence, where no case of the suite shows a sentence by itself. Both tiers."""

from __future__ import annotations

from typing import Any

import pytest

import coincide
from coincide.errors import RuleError
from coincide.source import SourceText

TIERS = ("interpreter", "kernel")


def found(query: str, records: list[dict[str, Any]], until: float | None = None) -> list[dict[str, Any]]:
    """Detections, the same in both tiers. Records have a number of milliseconds as time, or get one."""
    events = [{"time": number, **record} for number, record in enumerate(records, 1)]
    rules = coincide.loads(query, "eql")
    first, second = (coincide.detect(rules, events, until, tier=tier) for tier in TIERS)
    assert first == second
    return first


def ids(query: str, records: list[dict[str, Any]], until: float | None = None) -> list[list[str]]:
    return [detection["from"] for detection in found(query, records, until)]


RECORD = {
    "type": "process", "n": 7, "whole": 4.0, "half": 0.5, "s": "Net.EXE", "five": "5", "yes": True, "empty": "",
    "list": ["a", "B", 3],
    "ip": "10.1.2.3", "ip6": "fe80::1", "path": "C:\\Windows\\System32\\cmd.exe", "lines": "one\ntwo", "none": None,
    "nothing": [], "nulls": [None], "big": 9007199254740993, "deep": {"er": {"value": 1}}, "objects": [{"x": 1}, {"x": [2, 3]}],
    "my-field": "q", "wide": ["10.0.0.1", "8.8.8.8"], "from": "me", "source": {"ip": "1.2.3.4"},
}  # fmt: skip

HOLDS = [
    # EQL-2, section 3: names, absence, arrays
    "deep.er.value == 1",
    "objects.x == 3",
    "objects.x == 1 and objects.x == 2",
    '`my-field` == "q"',
    "deep.`er`.value == 1",
    "none == null and nothing == null and nulls == null and absent == null",
    "whole == 4",
    'string(whole) == "4"',
    'from == "me"',
    'source.ip == "1.2.3.4"',
    'type == "process"',
    'id == "1"',
    "time == 1",
    "@timestamp == 1",
    '@timestamp == "1970-01-01T00:00:00.001Z"',
    '"1970-01-01T00:00:00Z" < @timestamp',
    'not time == "1970-01-01T00:00:00.001Z"',
    # EQL-4: equality and order
    'n == 7 and n == "7" and five == 5',
    "five == 5.0",
    "yes == true",
    'not yes == "true"',
    "not yes == 1",
    "absent != 1",
    "null == null",
    "not absent == 1",
    's == "Net.EXE"',
    'not s == "net.exe"',
    'not s == "Net*"',
    "n < 8 and n <= 7 and n > 6 and n >= 7",
    '"Z" < "a"',
    '(n < "8") == null',
    "(absent < 1) == null",
    "(yes < 1) == null",
    "big == 9007199254740993",
    "not big == 9007199254740992",
    # EQL-5: wildcards
    's : "net.exe"',
    's : "NET.*"',
    's like~ "n?t.exe"',
    's like "Net.E*"',
    'not s like "net.exe"',
    's : ("x", "*.exe")',
    'n : "7"',
    "n : 7",
    'yes : "TRUE"',
    'not s : "net"',
    'empty : ""',
    'empty : "*"',
    'not empty : "?"',
    '(absent : "*") == null',
    "(s : null) == null",
    'lines : "one*two"',
    's : (null, "net*")',
    '(s : (null, "q")) == false',
    'path : "c:\\\\windows\\\\*\\\\CMD.exe"',
    'path : """c:\\windows\\*"""',
    # EQL-6: regular expressions
    's regex "Net\\\\.E.E"',
    's regex~ "net[.]exe"',
    'not s regex "et"',
    's regex ("x", "N.*")',
    'lines regex "one.two"',
    'n regex "[0-9]"',
    's regex "(Net|x)\\\\.EXE$"',
    's regex "^N\\\\w+.{4}"',
    '(absent regex "a") == null',
    # EQL-7: lists
    "n in (1, 7)",
    'n in ("7")',
    "absent in (1, null)",
    "n not in (1, 2)",
    's in~ ("NET.exe")',
    'not s in ("net.exe")',
    's not in~ ("x")',
    'not s in~ ("net*")',
    "n in (n, 3)",
    "n + 1 in (8) == null",
    "(n + 1) in (8)",
    # EQL-8: two values in boolean positions
    "not absent",
    "not n",
    "not s",
    "not absent < 1",
    'not (absent : "x")',
    "not (absent and true)",
    "yes",
    "not empty",
    "not (absent > 1 or false)",
    "(absent < 1 and true) == false",
    "not not yes",
    # EQL-9: arithmetic
    "n / 2 == 3",
    "-n / 2 == -3",
    "n % 4 == 3",
    "-7 % 4 == -3",
    "7 % -4 == 3",
    "n / 2.0 == 3.5",
    "4.0 / 2 / 4 == 0.5",
    "whole / 8 == 0",
    "n / 0 == null",
    "n % 0 == null",
    "n / 0.0 == null",
    "s + 1 == null",
    "-s == null",
    "+n == 7",
    "- -n == 7",
    "n - -1 == 8",
    "2 + 3 * 4 == 14",
    "(2 + 3) * 4 == 20",
    "half * 4 == 2",
    "-n == -7",
    "yes + 1 == null",
    ".5 == half",
    "5e-1 == half",
    # EQL-10: functions
    "add(n, 1) == 8",
    "SUBTRACT(n, 1) == 6",
    "multiply(n, 2) == 14",
    "divide(n, 2) == 3",
    "modulo(n, 4) == 3",
    'add("a", 1) == null',
    'between(path, "C:\\\\", "\\\\") == "Windows"',
    'between(path, "\\\\", "\\\\", true) == "Windows\\\\System32"',
    'between(s, "x", "y") == ""',
    'between~(s, "n", "exe") == "et."',
    'between(s, "N", "") == ""',
    'between(s, "N", "", true) == "et.EXE"',
    'between(n, "a", "b") == null',
    'between(s, "N", "T") == ""',
    'cidrMatch(ip, "10.0.0.0/8")',
    'cidrmatch(ip, "10.9.9.9/8", "1.1.1.1/32")',
    'not cidrMatch(ip, "11.0.0.0/8")',
    'cidrMatch(s, "10.0.0.0/8") == null',
    'cidrMatch(n, "10.0.0.0/8") == null',
    'cidrMatch(ip6, "fe80::/10")',
    'cidrMatch("::1", "::1")',
    'not cidrMatch(ip, "::/0")',
    'not cidrMatch(ip6, "0.0.0.0/0")',
    'concat(s, n, yes) == "Net.EXE7true"',
    "concat(s, absent) == null",
    "concat(s) == s",
    'startsWith(s, "Net")',
    'not startsWith(s, "net")',
    'startsWith~(s, "net")',
    'endsWith~(s, ".exe")',
    'stringContains(s, ".")',
    'not stringContains(s, "")',
    'startsWith(s, "")',
    'endsWith(s, "")',
    'startsWith(n, "7") == null',
    'stringContains~(s, "T.e")',
    'indexOf(s, "E") == 4',
    'indexOf(s, "E", 5) == 6',
    'indexOf~(s, "e") == 1',
    'indexOf(s, "q") == null',
    'indexOf(s, "N", -3) == 0',
    'indexOf(s, "E", 99) == null',
    'indexOf(s, "", 7) == 7',
    "length(s) == 7",
    "length(n) == null",
    'length("") == 0',
    "number(five) == 5",
    'number(" 12 ") == 12',
    'number("0x1f") == 31',
    'number("1f", 16) == 31',
    'number("0x1f", 16) == 31',
    'number("-7") == -7',
    'number("+7") == 7',
    'number("1.5") == 1.5',
    'number("1e2") / 3 > 33',
    'number("7") / 2 == 3',
    'number("x") == null',
    'number("z", 36) == 35',
    'number("1", 1) == null',
    'number("1", 37) == null',
    'number("9", 8) == null',
    'number("1e999") == null',
    "number(n) == 7",
    "number(half) == 0.5",
    'number("10", null) == 10',
    "number(yes) == null",
    'number("1.5", 16) == null',
    'string(n) == "7"',
    'string(half) == "0.5"',
    'string(yes) == "true"',
    "string(absent) == null",
    "string(s) == s",
    'substring(s, 4) == "EXE"',
    'substring(s, 0, 3) == "Net"',
    'substring(s, -3) == "EXE"',
    'substring(s, -3, -1) == "EX"',
    'substring(s, 99) == ""',
    'substring(s, -99, 2) == "Ne"',
    'substring(s, 5, 2) == ""',
    "substring(s, 0.5) == null",
    "substring(n, 0) == null",
    # EQL-11: several values
    'list == "a" and list == 3',
    'list : "b"',
    'not list != "a"',
    'not list not in ("a")',
    'list not in ("q")',
    "list > 2",
    "(list > 9) == false",
    "length(list) == 1",
    'cidrMatch(wide, "8.0.0.0/8")',
    "list == list",
    'list : ("zz", "b*")',
    'startsWith(list, "B")',
    'concat(list, n) == "B7"',
    '(list < "0") == false',
    # EQL-24: fields with fields
    "s == s",
    "n > half",
    "n == deep.er.value + 6",
    # precedence
    "not n == 8",
    "n == 8 or n == 7 and yes",
    "not n == 7 or yes",
    'not s : "x" and yes',
    "n == 3 + 4",
]


@pytest.mark.filterwarnings("ignore:.*no event had")
@pytest.mark.parametrize("condition", HOLDS)
def test_a_condition_holds(condition: str) -> None:
    assert ids(f"any where {condition}", [RECORD]) == [["1"]]


def test_texts_and_escapes() -> None:
    raw = 'any where s == "a\\n\\r\\t\\b\\f\\\\\\"\\\'\\u{41}\\u{1F600}"'
    assert ids(raw, [{"type": "a", "s": "a\n\r\t\b\f\\\"'A\U0001f600"}]) == [["1"]]
    assert ids('any where s == """C:\\new"t"""', [{"type": "a", "s": 'C:\\new"t'}]) == [["1"]]


# Sections 2 and 3: categories, names.


def test_categories() -> None:
    records = [
        {"type": "a"}, {"event": {"category": ["b", "a"]}}, {"type": "a", "event.category": "b"}, {"event.category": []},
        {"type": "any"}, {"type": "A"}, {"type": "4624"}, {"type": 4624}, {"type": "edr.process"},
    ]  # fmt: skip
    assert ids("a where true", records) == [["1"], ["2"]]
    assert ids('"any" where true', records) == [["5"]]
    assert ids('"4624" where true', records) == [["7"], ["8"]]
    assert ids('"edr.process" where true', records) == [["9"]]
    assert ids('event where type == "event"', records) == [["4"]]
    assert len(ids("any where true", records)) == 9


def test_the_dotted_name_at_the_top_wins() -> None:
    assert ids("any where a.b == 2 and a.c == 3", [{"type": "x", "a.b": 2, "a": {"b": 1, "c": 3}}]) == [["1"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("// @name a\n// @name b\nany where true", ["b"]),
        ("any where true // @name inside\n; // @name second\nany where true", ["inside", "second"]),
        ("any where true; any where true;", ["rules_1", "rules_2"]),
        ("/* @name no */ any where true", ["rules"]),
        ("//@name   Big.Name-1\nany where true", ["Big.Name-1"]),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    assert [d.name for d in coincide.load(SourceText("some/rules.eql", text)).detectors] == names


# Sections 5 to 7: what a sequence shows.


def test_key_words_are_names_behind_a_dot() -> None:
    assert ids("any where a.and.sequence.by == 1", [{"type": "x", "a": {"and": {"sequence": {"by": 1}}}}]) == [["1"]]


def test_keys_are_equal_by_type_and_value() -> None:
    query = "sequence by k [a where true] [b where true]"
    for first, second, same in ((1, 1.0, True), (1, "1", False), (True, 1, False), ("a", "A", False)):
        assert bool(ids(query, [{"type": "a", "k": first}, {"type": "b", "k": second}])) is same


@pytest.mark.filterwarnings("ignore:.*no event had")
def test_an_event_without_the_key_is_not_seen_but_where_null_is_a_value() -> None:
    records = [{"type": "a", "x": 1}, {"type": "b", "x": 1}]
    assert ids("sequence by x, k [a where true] [b where true]", records) == []
    (detection,) = found("sequence by x, ?k [a where true] [b where true]", records)
    assert detection["x"] == 1
    assert "k" not in detection


def test_an_event_advances_by_one_stage_and_may_begin_another() -> None:
    assert ids("sequence [any where v > 0] [any where v > 1] [any where v > 2]", [{"type": "a", "v": 3}] * 4) == [
        ["1", "2", "3"],
        ["2", "3", "4"],
    ]


def test_the_newest_replaces_and_a_stage_is_overwritten() -> None:
    query = "sequence [a where true] [b where true] [c where true]"
    records = [{"type": t} for t in "aabbabc"]
    assert ids(query, records) == [["5", "6", "7"]]


def test_maxspan_is_inclusive_and_drops() -> None:
    query = "sequence with maxspan=2ms [a where true] [b where true]"
    assert ids(query, [{"type": "a", "time": 1}, {"type": "b", "time": 3}]) == [["1", "2"]]
    assert ids(query, [{"type": "a", "time": 1}, {"type": "b", "time": 4}, {"type": "b", "time": 4}]) == []


def test_until_comes_last_in_its_event() -> None:
    query = "sequence [a where true] [b where true] until [any where stop == true]"
    assert ids(query, [{"type": "a"}, {"type": "b", "stop": True}]) == [["1", "2"]]
    assert ids(query, [{"type": "a", "stop": True}, {"type": "b"}]) == []


@pytest.mark.parametrize(
    ("items", "types", "times", "until", "expected"),
    [
        ("[a where true] ![m where true] [b where true]", "amb", (1, 2, 3), None, []),
        ("[a where true] ![m where true] [b where true]", "amb", (1, 1, 3), None, [["1", "3"]]),  # the very time of a neighbour
        ("[a where true] ![m where true] [b where true]", "amb", (1, 3, 3), None, [["1", "3"]]),
        ("[a where true] ![m where true] [b where true]", "ambb", (1, 2, 3, 4), None, []),  # spoilt: it advances, and is gone
        ("![m where true] [a where true]", "ma", (1, 6), None, []),  # not longer ago than maxspan
        ("![m where true] [a where true]", "ma", (1, 7), None, [["2"]]),
        ("![m where true] [a where true]", "a", (1,), None, [["1"]]),
        ("[a where true] ![m where true]", "a", (1,), 6, [["1"]]),
        ("[a where true] ![m where true]", "a", (1,), 5, []),
        ("[a where true] ![m where true]", "am", (1, 6), 20, []),  # at the timer's instant the event comes first
        ("[a where true] ![m where true]", "am", (1, 7), 20, [["1"]]),
        ("[a where true] ![m where true]", "am", (1, 1), 20, [["1"]]),
        ("[a where true] [b where true] ![m where true]", "abm", (1, 3, 6), 20, []),
        ("[a where true] [b where true] ![m where true]", "ab", (1, 6), 6, [["1", "2"]]),  # due at once
        ("![l where true] [a where true] ![m where true]", "lam", (1, 3, 6), 20, []),
        ("![l where true] [a where true] ![m where true]", "lam", (1, 3, 7), 20, [["2"]]),
        ("![l where true] [a where true] ![m where true]", "am", (3, 4), 20, [["1"]]),  # nothing before: at once
    ],
)  # fmt: skip
def test_missing_items(items: str, types: str, times: tuple[int, ...], until: float | None, expected: list[list[str]]) -> None:
    records = [{"type": t, "time": at} for t, at in zip(types, times, strict=True)]
    assert ids(f"sequence with maxspan=5ms {items}", records, until) == expected


def test_a_detection_of_a_timer_ends_at_its_instant() -> None:
    (detection,) = found("sequence with maxspan=5ms [a where true] ![m where true]", [{"type": "a", "time": 1}], 10)
    assert detection["time"] == [1, 6]


def test_times_are_from_the_least_lo_to_the_greatest_hi() -> None:
    (detection,) = found("sequence [a where true] [b where true]", [{"type": "a", "time": [3, 5]}, {"type": "b", "time": [1, 9]}])
    assert detection["time"] == [1, 9]


def test_fields_are_those_of_the_first_event_that_has_one() -> None:
    query = "// @fields x, `odd-name`, type, k\nsequence by k [a where true] [b where true]"
    (detection,) = found(query, [{"type": "a", "k": "u", "odd-name": [1, 2]}, {"type": "b", "k": "u", "x": 5}])
    assert (detection["x"], detection["odd-name"], detection["k"], detection["type"]) == (5, [1, 2], "u", "rules")


def test_names_of_keys() -> None:
    (detection,) = found(
        "sequence [a where true] by u, v * 2 [b where true] by w, v * 2",
        [{"type": "a", "u": 1, "v": 2}, {"type": "b", "w": 1, "v": 2}],
    )
    assert {name: detection.get(name) for name in ("u", "w", "key2")} == {"u": 1, "w": None, "key2": 4}


def test_keys_with_several_values() -> None:
    query = "sequence by k [a where true] [b where true]"
    assert [d["k"] for d in found(query, [{"type": "a", "k": ["x", "y", "x"]}, {"type": "b", "k": ["y", "x"]}])] == ["y", "x"]


def test_a_sample_takes_distinct_events_and_closes_its_key() -> None:
    query = "sample by k [any where v > 0] [any where v > 1]"
    assert ids(query, [{"type": "a", "k": 1, "v": 2}]) == []
    assert ids(query, [{"type": "a", "k": 1, "v": v} for v in (2, 1, 2, 1)]) == [["1", "2"]]


def test_a_join_fills_each_empty_slot_and_begins_again() -> None:
    query = "join by k [any where v > 0] [any where v > 1] until [stop where true]"
    assert ids(query, [{"type": "a", "k": 1, "v": 2}] * 2) == [["1"], ["2"]]
    assert ids(query, [{"type": "a", "k": 1, "v": 1}, {"type": "stop", "k": 1}, {"type": "b", "k": 1, "v": 2}]) == [["3"]]


def test_pipes_go_from_left_to_right() -> None:
    records = [{"type": "a"}] * 5
    assert ids("a where true | tail 3 | head 1", records) == [["3"]]
    assert ids("a where true | head 3 | tail 1", records) == [["3"]]


def test_rules_see_detections_but_any_does_not() -> None:
    text = (
        "// @name one\n// @fields v\na where true; // @name two\none where v == 1 and id == null and time == 1;"
        "// @name three\nany where v == 1"
    )
    assert sorted(d["type"] for d in found(text, [{"type": "a", "v": 1}])) == ["one", "three", "two"]


REFUSED = [
    ("any where a = 1", "'=' is not a comparison"),
    ("any where a == 1 == 2", "comparisons do not chain"),
    ("any where 'a' == b", "use double quotes"),
    ('any where a == ?"x"', "raw text is written"),
    ('any where a == "x', "text is not closed"),
    ("/* any", "comment is not closed"),
    ('any where a == "\\q"', "unknown escape"),
    ('any where a == "\\u{110000}"', "unknown escape"),
    ("any where # 1", "unexpected character '#'"),
    ("4624 where true", "expected an event category"),
    ("any WHERE true", "expected 'where', found 'WHERE'"),
    ("any where a like b", "expected a constant after 'like', found 'b'"),
    ("any where a : -5", "expected a constant after ':', found '-'"),
    ("any where f(1)", "unknown function 'f'"),
    ("any where length~(s) == 1", "'length' has no form with '~'"),
    ("any where length() == 1", "wrong number of arguments"),
    ('any where a regex "(?i)x"', "invalid regular expression"),
    ('any where a regex "x*+"', "invalid regular expression"),
    ('any where cidrMatch(a, "x")', "invalid network 'x'"),
    ("any where cidrMatch(a, b)", "a network must be a constant text"),
    ('any where @timestamp > "x"', "'x' is not an instant"),
    ("sequence [a where true]", "a sequence needs at least two items"),
    ("sequence with maxspan=1s ![a where true] ![b where true]", "needs an item that is not missing"),
    ("join [a where true]", "a join needs at least two items"),
    ("sample [a where true]", "a sample needs join keys"),
    ("sequence [a where true] ![b where true]", "a missing item needs 'with maxspan'"),
    ("join ![a where true] [b where true]", "only an item of a sequence can be missing"),
    ("sequence with maxspan=1s by x [a where true] [b where true]", "'by' goes before 'with maxspan'"),
    ("sequence with maxspan=1.5s [a where true] [b where true]", "'maxspan' must be a whole number from 1"),
    ("sequence with maxspan=0s [a where true] [b where true]", "'maxspan' must be a whole number from 1"),
    ("sequence with maxspan=5 [a where true] [b where true]", "'maxspan' needs a unit"),
    ("sequence with maxspan=5H [a where true] [b where true]", "unknown unit of time 'H'"),
    ("sequence [a where true] with runs=0 [b where true]", "'runs' must be"),
    ("sequence [a where true] with runs=101 [b where true]", "'runs' must be"),
    ("sequence by x [a where true] by y [b where true]", "expected 2 join keys, found 1"),
    ("sample by x [a where true] with runs=2", "'with' is not supported in a sample"),
    ("sample by x [a where true] until [b where true]", "'until' is not supported in a sample"),
    ("sample by x [a where true] | head 1", "a sample takes no pipes"),
    ("join by x with maxspan=1s [a where true] [b where true]", "'with' is not supported in a join"),
    ("a where true | unique x", "pipe 'unique' is not supported"),
    ("a where true | head 0", "'head' takes a whole number from 1"),
    ("a where child of [a where true]", "'child of' is not supported"),
    ("sequence [a where true] fork [b where true]", "'fork' is not supported"),
    ("any where a[0] == 1", "an array index is not supported"),
    ("// @name x y\nany where true", "'x y' is not a name"),
    ("// @fields 1a\nany where true", "expected names of fields after '@fields'"),
    ("", "expected a query"),
    ("// @name a\nany where true; // @name a\nany where true", "rule 'a' is already defined"),
    ("// @name a\na where true", "rule 'a' consumes what it detects"),
    ("// @name a\nb where true; // @name b\na where true", "rule 'a' consumes what it detects, through 'b'"),
    ("// @name a\nx where true | tail 1; a where true", "rule 'a' has a 'tail': no rule can see it"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        coincide.loads(text, "eql")
    assert message in refused.value.diagnostics[0].message
    assert refused.value.diagnostics[0].span is not None
