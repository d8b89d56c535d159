"""The specification of Sigma sentence by sentence, where no case of the suite shows a sentence by itself. Both tiers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

import coincide
from coincide.errors import RuleError
from coincide.source import SourceText

TIERS = ("interpreter", "kernel")
MAPPING = "placeholders: {names: ['adm*', root], dash: ['-b']}\nfields: {Image: process.executable}\n"
RULE = "title: found\nlogsource: {category: c}\ndetection:\n  s: %s\n  t: {absent: never}\n  condition: %s\n"


def found(text: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Detections, the same in both tiers."""
    rules = coincide.load(SourceText("r.yml", text), sigma_mapping=SourceText("m.yml", MAPPING))
    events = [{"time": number, "type": "c", **record} for number, record in enumerate(records, 1)]
    first, second = (coincide.detect(rules, events, tier=tier) for tier in TIERS)
    assert first == second
    return first


def matches(selection: str, record: dict[str, Any], condition: str = "s") -> bool:
    return bool(found(RULE % (selection, condition), [record]))


def encoded(text: str, encoding: str = "utf-8") -> str:
    return b64encode(text.encode(encoding)).decode()


RECORD: dict[str, Any] = {
    "text": "Net.EXE", "path": "C:\\Users\\ann\\x*y?.exe", "n": 7, "half": 0.5, "yes": True, "empty": "", "list": ["a", "Bee", 3],
    "spelt": "7", "said": "TRUE", "ip": "10.1.2.3", "ip6": "fe80::1", "when": "2026-03-02T23:30:00-05:00", "ms": 1772438400000,
    "same": "net.exe", "line": "cmd /enc -b a-b – q", "mail": "100%", "process": {"executable": "/bin/sh"},
    "b64": f"x{encoded('abcIEX(new')}y", "wide": encoded("xIEX(", "utf-16-le"), "lines": "one\ntwo", "exp": "-1.5e3",
    "user": "Admin1", "null": None, "dotted.name": "z", "nested": [{"k": "v1"}, {"k": "v2"}],
}  # fmt: skip

MATCH = [
    # SIGMA-3: maps, lists
    "{text: net.exe, n: 7}",
    "[{text: no}, {n: 7}]",
    "{text: [no, net.exe]}",
    "{Image: /bin/sh}",
    "{dotted.name: z, nested.k: v2}",
    "[[{text: no}], {n: 7}]",
    # SIGMA-4: values
    "{text: 'NET.exe'}",
    "{text: 'net*'}",
    "{text: 'n?t.*'}",
    r"{path: 'c:\users\\*\x\*y\?.exe'}",
    r"{path: 'C:\\Users\\ann\\x\*y\?.exe'}",
    "{n: 7}",
    "{n: '7'}",
    "{spelt: 7}",
    "{yes: true}",
    "{said: true}",
    "{yes: 'TRUE'}",
    "{absent: null}",
    "{null: null}",
    "{empty: ''}",
    "{half: 0.5}",
    "{list: bee}",
    "{list: 3}",
    "{n: 0x7}",
    "{yes: on}",
    "{lines: 'one*two'}",
    # SIGMA-5: keywords
    "[zz, bee]",
    "'NET'",
    "'et.e'",
    "{'|all': ['net', 'bee']}",
    "7",
    # SIGMA-6
    "{text|contains: 'T.e'}",
    "{text|startswith: net}",
    "{text|endswith: EXE}",
    "{text|contains|all: [net, exe]}",
    "{list|contains|all: [a, ee]}",
    "{text|cased: Net.EXE}",
    "{text|cased|contains: EXE}",
    "{text|exists: true}",
    "{absent|exists: false}",
    "{empty|exists: true}",
    "{null|exists: false}",
    "{text|neq: x}",
    "{absent|neq: x}",
    "{list|all: [a, bee]}",
    "{text|contains|neq: zz}",
    "{text|contains: ''}",
    "{text|startswith: 'n*t'}",
    # SIGMA-7
    "{text|re: 'et\\.E'}",
    "{text|re|i: '^NET'}",
    "{lines|re|m: '^two$'}",
    "{lines|re|s: 'one.two'}",
    "{text|re|ignorecase: 'net'}",
    "{text|re: 'E$'}",
    "{n|re: '^7$'}",
    "{text|re|i|contains: 'net'}",
    # SIGMA-8
    "{ip|cidr: 10.0.0.0/8}",
    "{ip|cidr: 10.9.9.9/8}",
    "{ip6|cidr: 'fe80::/10'}",
    "{ip|cidr: [11.0.0.0/8, 10.1.0.0/16]}",
    # SIGMA-9
    "{b64|base64offset|contains: 'IEX(new'}",
    "{b64|base64offset|contains: [zzz, 'bcIEX(ne']}",
    "{wide|wide|base64offset|contains: 'IEX('}",
    "{wide|utf16le|base64offset|contains: 'EX'}",
    "{wide|contains|utf16le|base64offset: 'EX'}",
    # SIGMA-10
    "{line|windash|contains: ' -enc'}",
    "{line|contains|windash: ' /b'}",
    "{line|windash|contains: 'a-b'}",
    "{line|contains|windash|all: ['-enc', '/b']}",
    # SIGMA-11
    "{n|gt: 6, half|lt: 1}",
    "{spelt|gte: 7}",
    "{exp|lte: -1500}",
    "{list|gt: 2}",
    "{when|hour: 23}",
    "{when|day: 2}",
    "{when|minute: 30}",
    "{when|month: 3}",
    "{when|year: 2026}",
    "{when|week: 10}",
    "{ms|hour: 8}",
    # SIGMA-12
    "{text|fieldref: same}",
    "{text|fieldref|startswith: same}",
    "{path|fieldref|neq: same}",
    # SIGMA-13
    "{user|expand: '%names%'}",
    "{line|expand|contains: 'enc %dash% a'}",
    "{mail|expand: '100\\%'}",
]
NO_MATCH = [
    "{text: net}",
    "{n: 8}",
    "{n: true}",
    "{yes: 1}",
    "{said: 'tru'}",
    "{text: null}",
    "{text: ''}",
    "{absent: ''}",
    "{empty: null}",
    r"{path: 'c:\users\ann\xzyz.exe'}",
    "'process'",
    "{'|all': ['net', 'zzz']}",
    "{text|cased: net.exe}",
    "{absent|exists: true}",
    "{text|exists: false}",
    "{text|neq: net.exe}",
    "{list|neq: bee}",
    "{list|all: [a, zzz]}",
    "{text|re: 'et.e'}",
    "{lines|re: '^two$'}",
    "{lines|re: 'one.two'}",
    "{text|re: 'x$'}",
    "{ip|cidr: 11.0.0.0/8}",
    "{ip6|cidr: 0.0.0.0/0}",
    "{n|cidr: 0.0.0.0/0}",
    "{text|cidr: 0.0.0.0/0}",
    "{b64|base64|contains: 'IEX('}",
    "{line|contains|windash: 'a/b'}",
    "{text|gt: 1}",
    "{n|gt: 7}",
    "{when|hour: 4}",
    "{text|hour: 1}",
    "{text|fieldref|cased: same}",
    "{text|fieldref: absent}",
    "{absent|fieldref: absent}",
    "{user|expand|cased: '%names%'}",
    "{lines: 'one?'}",
    "{text|contains|all: [net, zz]}",
]


@pytest.mark.filterwarnings("ignore:.*no event had")
@pytest.mark.parametrize("selection", MATCH)
def test_a_selection_matches(selection: str) -> None:
    assert matches(selection, RECORD)


@pytest.mark.filterwarnings("ignore:.*no event had")
@pytest.mark.parametrize("selection", NO_MATCH)
def test_a_selection_does_not_match(selection: str) -> None:
    assert not matches(selection, RECORD)
    assert matches(selection, RECORD, "not s")


def test_keywords_do_not_see_the_envelope() -> None:
    record = {"type": "c", "id": "needle", "source": "needle", "@timestamp": 5}
    assert not matches("needle", record)
    assert matches("needle", {"a": {"b": ["x", "the needle here"]}})


CONDITIONS = "title: found\nlogsource: {category: c}\ndetection:\n  a1: {a: 1}\n  a2: {b: 1}\n  _h: {c: 1}\n  condition: %s\n"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a1 or a2 and _h", [1, 3]),  # `and` binds tighter
        ("not a1 and a2", [2, 3]),
        ("not (a1 and a2)", [1, 2, 3, 4]),
        ("1 of them", [1, 2, 3]),
        ("any of a*", [1, 2, 3]),
        ("all of them", []),
        ("1 of _*", [3, 4]),
        ("[a1, _h]", [1, 3, 4]),
        ("not 1 of a* and _h", [4]),
    ],
)
def test_conditions(condition: str, expected: list[int]) -> None:
    records = [{"a": 1}, {"b": 1}, {"b": 1, "c": 1}, {"c": 1}]
    assert [int(d["from"][0]) for d in found(CONDITIONS % condition, records)] == expected


# Section 6.

BASE = "title: x\nname: x\nlogsource: {category: c}\ndetection: {s: {k: x}, condition: s}\n---\n" + (
    "title: y\nname: y\nlogsource: {category: c}\ndetection: {s: {k: y}, condition: s}\n---\n"
)


def correlated(
    kind: str, condition: str, records: list[dict[str, Any]], rules: str = "[x, y]", more: str = ""
) -> list[list[str]]:
    text = f"{BASE}title: z\ncorrelation: {{type: {kind}, rules: {rules}, timespan: 10ms{condition}{more}}}\n"
    return [detection["from"] for detection in found(text, records)]


def at(*pairs: tuple[str, int], **fields: Any) -> list[dict[str, Any]]:
    return [{"k": kind, "time": time, **fields} for kind, time in pairs]


def test_windows_are_inclusive_and_fire_once_a_span() -> None:
    two = ", condition: {gte: 2}"
    assert correlated("event_count", two, at(("x", 1), ("x", 11))) == [["1", "2"]]
    assert correlated("event_count", two, at(("x", 1), ("x", 12))) == []
    assert correlated("event_count", two, at(*(("x", n) for n in range(1, 25)))) == [
        ["1", "2"],
        [str(n) for n in range(3, 14)],
        [str(n) for n in range(14, 25)],
    ]


def test_an_event_that_several_rules_match_is_one_unit() -> None:
    assert correlated("event_count", ", condition: {gte: 2}", at(("x", 1)), "[x, x]") == []
    assert correlated("temporal", "", [{"k": ["x", "y"], "time": 1}]) == [["1"]]
    assert correlated("temporal_ordered", "", [{"k": ["x", "y"], "time": 1}]) == []
    assert correlated("temporal_ordered", "", at(("x", 1), ("x", 2)), "[x, x]") == [["1", "2"]]


def test_groups() -> None:
    two, by = ", condition: {gte: 2}", ", group-by: [u]"
    assert correlated("event_count", two, at(("x", 1), ("x", 2)), more=by) == []  # no value, no group
    assert correlated("event_count", two, [{"k": "x", "u": 1}, {"k": "x", "u": "1"}], more=by) == []  # by type and value
    assert correlated("event_count", two, [{"k": "x", "u": [1, 2]}, {"k": "x", "u": 2}], more=by) == [["1", "2"]]


def test_orders_and_chains() -> None:
    assert correlated("temporal_ordered", "", at(("y", 1), ("x", 2))) == []
    assert correlated("temporal_ordered", "", at(("x", 1), ("x", 2), ("y", 3))) == [["2", "3"]]
    assert correlated("temporal", "", at(("y", 1), ("x", 2))) == [["1", "2"]]
    assert correlated("temporal", ", condition: {gte: 1}", at(("y", 1))) == [["1"]]


def test_values() -> None:
    records = [{"k": "x", "v": v} for v in (1, "2", None, "none", 3)]
    assert correlated("value_sum", ", condition: {gte: 6, field: v}", records) == [["1", "2", "5"]]
    assert correlated("value_avg", ", condition: {eq: 1.5, field: v}", records) == [["1", "2"]]
    assert correlated("value_median", ", condition: {eq: 2, field: v}", records) == [["1", "2", "5"]]
    assert correlated("value_count", ", condition: {gte: 4, field: v}", records) == [["1", "2", "4", "5"]]
    assert correlated("value_percentile", ", condition: {gte: 2.8, field: v, percentile: 90}", records) == [["1", "2", "5"]]


def test_who_prints_and_what_is_shown() -> None:
    counted = "{type: event_count, rules: [x], timespan: 1s, group-by: [u], condition: {gte: 1}}"
    text = f"{BASE}title: Z z\nid: '7'\nlevel: low\ncorrelation: {counted}\n"
    first, second = found(text, [{"k": "x", "u": "a"}, {"k": "y"}])
    assert first == {"type": "z_z", "time": 1, "from": ["1"], "u": "a", "count": 1, "level": "low", "rule_id": "7"}
    assert second["type"] == "y"


DETECTION = "title: t\nlogsource: {category: c}\ndetection: {s: {a: 1}, condition: s}\n"
CHAIN = DETECTION + "---\ntitle: c\ncorrelation: {%s}\n"
REFUSED = [
    ("a: [", "invalid YAML"),
    ("title: t\n", "a rule needs a detection or a correlation"),
    (DETECTION.replace("title: t\n", ""), "a rule needs a title or a name"),
    (DETECTION.replace("logsource: {category: c}\n", ""), "a detection rule needs a logsource"),
    (DETECTION.replace("{category: c}", "{x: y}"), "a logsource needs a category"),
    (DETECTION.replace("title: t", "title: t\nname: a b"), "'a b' is not a name"),
    (DETECTION + "title: u\n", "'title' is given twice"),
    (DETECTION.replace(", condition: s", ""), "a detection needs a condition"),
    (DETECTION.replace("s: {a: 1}, ", ""), "a detection needs a search identifier"),
    (DETECTION.replace("{a: 1}", "{}"), "a selection must not be empty"),
    (DETECTION.replace("{a: 1}", "{a: []}"), "a list of values must not be empty"),
    (DETECTION.replace("{a: 1}", "{a: [{b: 1}]}"), "expected a value, found a mapping or a list"),
    (DETECTION.replace("a: 1", "a|nope: 1"), "unknown modifier 'nope'"),
    (DETECTION.replace("a: 1", "a|contains|re: x"), "'re' goes first"),
    (DETECTION.replace("a: 1", "a|i: x"), "'i' goes after 're'"),
    (DETECTION.replace("a: 1", "a|contains: 1"), "'contains' needs text"),
    (DETECTION.replace("a: 1", "a|gt: x"), "'gt' needs a number"),
    (DETECTION.replace("a: 1", "a|exists: x"), "'exists' needs true or false"),
    (DETECTION.replace("a: 1", "a|base64: 'x*'"), "'base64' takes no wildcards"),
    (DETECTION.replace("a: 1", "a|re: '(?=x)'"), "invalid regular expression"),
    (DETECTION.replace("a: 1", "a|cidr: x"), "invalid network 'x'"),
    (DETECTION.replace("a: 1", "a|expand: '%x%'"), "placeholder '%x%' has no values"),
    (DETECTION.replace("{a: 1}", "[true]"), "a keyword must be a text or a number"),
    (DETECTION.replace("condition: s", "condition: q"), "search identifier 'q' is not defined"),
    (DETECTION.replace("condition: s", "condition: 1 of q*"), "no search identifier matches 'q*'"),
    (DETECTION.replace("condition: s", "condition: s or"), "expected a search identifier, found end of the condition"),
    (DETECTION.replace("condition: s", "condition: 2 of s*"), "'2 of' is not supported"),
    (DETECTION.replace("condition: s", "condition: s | count() > 5"), "aggregations in a condition are not supported"),
    ("action: global\n" + DETECTION, "'action' is not supported"),
    ("filter: {}\n" + DETECTION, "filters are not supported"),
    (CHAIN % "rules: [t], timespan: 1s", "a correlation needs 'type'"),
    (CHAIN % "type: event_count, rules: [t], condition: {gte: 1}", "a correlation needs 'timespan'"),
    (CHAIN % "type: event_count, rules: [q], timespan: 1s, condition: {gte: 1}", "rule 'q' is not loaded"),
    (CHAIN % "type: event_count, rules: [t], timespan: 1M, condition: {gte: 1}", "'1M' is not a time span"),
    (CHAIN % "type: value_sum, rules: [t], timespan: 1s, condition: {gte: 1}", "'value_sum' needs a field"),
    (CHAIN % "type: event_count, rules: [c], timespan: 1s, condition: {gte: 1}", "rule 'c' refers to itself"),
    (
        CHAIN % "type: temporal_ordered, rules: [t, t], timespan: 1s, condition: {gte: 1}",
        "'temporal_ordered' needs all of its rules",
    ),
    (CHAIN % "type: temporal, rules: [t], timespan: 1s, aliases: {a: {q: b}}", "alias 'a' has no field for rule 't'"),
    (
        CHAIN % "type: event_count, rules: [t], timespan: 1s, condition: x > 1",
        "a condition that is an expression is not supported",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        coincide.load(SourceText("r.yml", text))
    assert message in refused.value.diagnostics[0].message
    assert refused.value.diagnostics[0].span is not None


def test_what_to_do_without_look_around() -> None:
    with pytest.raises(RuleError, match="hint: what must not be there is a selection of its own, with 'not'"):
        coincide.load(SourceText("r.yml", DETECTION.replace("a: 1", "a|re: '^(?!.*foo)bar'")))
