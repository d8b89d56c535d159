"""Sigma's model of detection: tiers, cuts and snapshots, many tests at once."""

from __future__ import annotations

from collections import Counter
from math import fsum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.read import open_events
from coincide.detection.selection import relations
from coincide.detection.selection.fieldtests import FieldTests, regex_literal
from coincide.detection.selection.groups import Groups
from coincide.detection.selection.tests import tester as function_of
from coincide.detection.selection.units import Root, Unit, part
from coincide.detection.selection.windows import Latest, Sum, percentile_of
from coincide.engines.embedded import Engine
from coincide.engines.graph import Graph
from coincide.expr.print import expression_text
from coincide.lang.sigma.definition import Number, Regex, Test, Text, Truth, Wild
from coincide.model.batch import EventBatch
from coincide.model.compound import Single
from coincide.model.event import primitive, record
from coincide.rulebook import load, loads
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import check_detector

CASES = find_cases(Path(__file__).parents[2] / "conformance" / "cases" / "sigma")


@pytest.mark.brief(parameters=10)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_cuts_and_snapshots_change_nothing(case: Case) -> None:
    book = case.book()
    assert case.events is not None
    events = [event for batch in open_events(case.events, book.fields(DEFAULT)) for event in batch.events]
    check_detector(book, events, [1, 3])


texts = st.text("abAB1.*é ", max_size=6)
parts = st.lists(st.one_of(st.text("abAB1é ", min_size=1, max_size=3), st.sampled_from(Wild)), max_size=4)
patterns = st.sampled_from(["a+b", "(?i)ab1", "ab|ba", "^ab", "b.b", "[ab]1", "abb", "(?i)aé", "a(b|1)ab"])
some_tests: st.SearchStrategy[Test] = st.one_of(
    st.builds(lambda p, c: Text(tuple(p), c), parts, st.booleans()),
    st.builds(Number, st.sampled_from([1.0, 1.5, 11.0])),
    st.builds(Truth, st.booleans()),
    st.builds(Regex, patterns),
)
values: st.SearchStrategy[Single] = st.one_of(texts, st.sampled_from([1.0, 11.0, 1.5]), st.booleans())


@settings(max_examples=100, deadline=None)
@given(st.lists(some_tests, max_size=12), st.lists(values, max_size=12))
def test_many_tests_at_once_are_as_one_by_one(tests: list[Test], given_values: list[Single]) -> None:
    hits = FieldTests(dict.fromkeys(tests)).hits(given_values)
    for test in tests:
        holds = function_of(test)
        assert sorted(set(map(int, hits.get(test, [])))) == [n for n, value in enumerate(given_values) if holds(value)], test


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        ("foo.*barbaz", "barbaz"),
        ("(?i)EVIL", "evil"),
        ("a|bcd", ""),
        ("[[:alpha:]]evil", ""),
        ("(?i)pass", "pa"),
        ("x(abc)?yz", "yz"),
    ],
)
def test_texts_that_a_pattern_must_contain(pattern: str, literal: str) -> None:
    assert regex_literal(pattern) == literal


def test_more_matches_than_there_is_room_for() -> None:
    needles: list[Test] = [Text((Wild.ANY, f"{n:02}", Wild.ANY)) for n in range(100)]
    everything = "".join(f"{n:02}" for n in range(100))
    hits = FieldTests(needles).hits([f"{everything}{n}" for n in range(2_000)])
    assert all(hits[needle].tolist() == list(range(2_000)) for needle in needles)


def test_sums_do_not_drift() -> None:
    sums = Sum()
    for number in (1e16, 1.0, 0.1, -1e16, 3.3, 5e-324):
        sums.enter(Unit(0, (0,), (Root(0, ()),), ((part(number),),)))
    assert sums.tested() == fsum([1.0, 0.1, 3.3, 5e-324])


def test_percentiles() -> None:
    assert percentile_of([1.0, 2.0, 4.0], 50) == 2.0
    assert percentile_of([1.0, 2.0], 25) == 1.25
    assert percentile_of([7.0], 90) == 7.0
    assert percentile_of([-1.5e308, 1.5e308], 50) == 0.0


BURST = """name: failed
logsource: {category: log}
detection: {s: {o: fail}, condition: s}
---
name: passed
logsource: {category: log}
detection: {s: {o: pass}, condition: s}
---
name: many
correlation: {type: event_count, rules: [failed], group-by: [u], timespan: 1h, condition: {gte: 3}}
---
name: guessed
correlation: {type: temporal_ordered, rules: [many, passed], group-by: [u], timespan: 1h}
"""


def burst(size: int) -> list[dict[str, object]]:
    failed = [{"type": "log", "time": n, "id": f"{10**25 + n}", "o": "fail", "u": "eve"} for n in range(size)]
    return [*failed, {"type": "log", "time": size, "id": "z", "o": "pass", "u": "eve"}]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_a_burst_is_kept_once_however_often_a_correlation_holds(tier: str) -> None:
    """The inner correlation holds at every event, of all events before: what that is made of is not copied each time."""
    engine = Engine(loads(BURST, "sigma"), tier)
    events = burst(2_000)
    engine.process(events[:-1])
    snapshot = engine.snapshot()
    assert len(snapshot) < 200 * len(events)
    after = Engine(loads(BURST, "sigma"), tier)
    after.restore(snapshot)
    for one in (engine, after):
        (found,) = map(record, one.process(events[-1:]).events)
        assert (found["type"], found["time"], len(found["from"])) == ("guessed", [0, 2_000], 2_001)  # type: ignore[arg-type]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_what_has_changed_is_told_at_the_cost_of_that(tier: str) -> None:
    graph = Graph(loads(BURST, "sigma").plans(tier))
    state = graph.initial()
    events = [primitive("log", n, n, f"e{n}", {"o": "fail", "u": f"user{n % 500}"}) for n in range(3_000)]
    graph.advance(state, EventBatch(events))
    base = graph.changes(state, everything=True)
    parts = []
    for n in range(3_000, 3_004):
        graph.advance(state, EventBatch([primitive("log", n, n, f"e{n}", {"o": "fail", "u": f"user{n % 2}"})]))
        assert len(graph.encode(state)) > 50_000  # and changes nothing
        parts.append(graph.changes(state))
        assert len(parts[-1]) < 2_000
    later = [primitive("log", n, n, f"e{n}", {"o": "pass", "u": f"user{n % 3}"}) for n in range(4_000, 4_003)]
    again = graph.with_changes(base, parts)
    assert graph.encode(again) == graph.encode(state)
    expected, found = (list(map(record, graph.advance(s, EventBatch(later)).events)) for s in (state, again))
    assert found == expected
    assert len(found) == 3


def test_of_a_state_that_was_stored_what_is_touched_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph(loads(BURST, "sigma").plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch([primitive("log", n, n, f"e{n}", {"o": "fail", "u": f"user{n}"}) for n in range(500)]))
    read: list[int] = []
    unit = relations._unit
    monkeypatch.setattr(relations, "_unit", lambda correlation, hi, stored: read.append(hi) or unit(correlation, hi, stored))
    again = graph.decode(graph.changes(state, everything=True))
    later = [
        primitive("log", 600, 600, "e", {"o": "fail", "u": "user7"}),
        primitive("log", 601, 601, "f", {"o": "fail", "u": "x"}),
    ]
    for each in (state, again):
        graph.advance(each, EventBatch(later))
    assert read == [7]
    assert graph.encode(again) == graph.encode(state)
    assert graph.changes(again, everything=True) == graph.changes(state, everything=True)
    assert read == [7]  # what nobody has asked for is written as it was
    assert Counter(map(str, graph.unfinished(again))) == Counter(map(str, graph.unfinished(state)))
    assert sorted(read) == [*range(500)]


@pytest.mark.parametrize("kind", ["event_count", "temporal", "temporal_ordered"])
def test_groups_that_are_over_are_gone_from_what_is_told(kind: str) -> None:
    condition = ", condition: {gte: 2}" if kind == "event_count" else ""
    correlation = f"{{type: {kind}, rules: [failed], group-by: [u], timespan: 1s{condition}}}"
    text = "---".join([BURST.split("---", maxsplit=1)[0], f"\nname: c\ncorrelation: {correlation}"])
    graph = Graph(loads(text, "sigma").plans("kernel"))
    state = graph.initial()
    base, parts = b"", []
    for batch in range(6):
        times = [2_000 * (n + 2_000 * batch) for n in range(2_000)]
        events = [primitive("log", time, time, f"e{time}", {"o": "fail", "u": time / 2_000 % 1_500}) for time in times]
        graph.advance(state, EventBatch(events))
        base = base or graph.changes(state, everything=True)
        parts.append(graph.changes(state))
        again = graph.with_changes(base, parts)
        assert graph.plans[0].essence(again.states[0]) == graph.plans[0].essence(state.states[0])
    assert len(again.states[0].groups[0].by_key) < 1_500


def test_what_nobody_asks_for_is_not_kept() -> None:
    """Changes were asked for once. Who asks again is told all, and what changes after that."""
    groups = Groups(Latest)
    groups.mark_written({})
    for n in range(20_000):
        groups.at((("int", n),)).last = n
        groups.sweep(n - 10)
    assert len(groups.over) + len(groups.touched) < 10_000
    assert groups.epoch == 0


def test_types_that_the_mapping_names_are_all_that_is_looked_at() -> None:
    mapping = SourceText("m.yml", "logsources: [{category: log, types: [b, a]}, {category: other}]")
    rule = "title: t\nlogsource: {category: %s}\ndetection: {s: {x: 1}, condition: s}\n"
    (plan,) = load(SourceText("r.yml", rule % "log"), sigma_mapping=mapping).compiled.plans
    assert plan.relevant is not None
    assert expression_text(plan.relevant) == "type in ('a', 'b')"
    (plan,) = load(SourceText("r.yml", f"{rule % 'log'}---\n{rule % 'other'}"), sigma_mapping=mapping).compiled.plans
    assert plan.relevant is None


def test_rules_of_one_event_run_where_events_are() -> None:
    pytest.importorskip("pyspark")
    from coincide.engines.spark.groups import groups

    rule = "title: %s\nlogsource: {category: log}\ndetection: {s: {a: 1}, condition: s}\n"
    many = "name: %s\ncorrelation: {type: %s, rules: [%s], %stimespan: 5m%s}\n"
    count = ", condition: {gte: 2}"
    texts = [rule % "a", rule % "b", many % ("all", "event_count", "b", "", count)]
    texts += [many % ("by_k", "event_count", "b", "group-by: [k, j], ", count)]
    texts += [many % ("outer", "temporal", "by_k, b", "group-by: [k], ", "")]
    texts += [many % ("aliased", "event_count", "b", "group-by: [x, m], aliases: {x: {b: k}}, ", count)]
    book = load(SourceText("r.yml", "---\n".join(texts)))
    found = {group.key: group.names for group in groups(book)}
    assert found == {(): ("a", "b"), None: ("all",), ("k", "j"): ("by_k",), ("k",): ("outer",), ("m",): ("aliased",)}
    assert {g.key: g.names for g in groups(book, frozenset({"k", "m"}))} == {
        (): ("a", "b"),
        None: ("all", "outer", "aliased"),
        ("j",): ("by_k",),
    }
