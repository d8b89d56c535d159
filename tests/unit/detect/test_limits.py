"""`limit` acts before any detector of any language sees an event."""

from __future__ import annotations

from typing import Any

import pytest

from coincide.api import explain
from coincide.detection.limits import LimitedPlan
from coincide.engines.embedded import Engine
from coincide.engines.policies import run_with_policy
from coincide.errors import RuleError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector

LIMITS = SourceText("limits.ce", "limit A per k every 1s\ndetect O = [A(k = ?x)]\n")
MONITORS = SourceText("monitors.ecl", "monitor m by k = repeat { push(E) { A } }\nmonitor n = repeat { push(F) { A } }\n")
SAY = SourceText("rules.say", "Report S when A.\n")

TIMES = [(0, 1), (10, 2), (900, 1), (1000, 1), (1500, 1), (1600, 2), (2500, 1)]
PASSING = [0, 10, 1000, 1600, 2500]


def events() -> list[Event]:
    return [event(time, k) for time, k in TIMES]


def event(time: int, k: float) -> Event:
    return primitive("A", time * 1000, time * 1000, f"a{time}", {"k": float(k)})


def times(made: list[dict[str, Any]], type: str) -> list[Any]:
    return [d["time"] for d in made if d["type"] == type]


@pytest.fixture(scope="module")
def book() -> Rulebook:
    return load(MONITORS, LIMITS, SAY)


def test_every_detector_sees_the_same_events(book: Rulebook) -> None:
    made = [record(e) for e in Engine(book).process(events()).events]
    assert {kind: times(made, kind) for kind in "OEFS"} == dict.fromkeys("OEFS", PASSING)


def test_cuts_snapshots_and_columns() -> None:
    found = check_detector(load(MONITORS, SourceText("limits.ce", "limit A per k every 1s\n")), events(), [2, 4])
    assert times(found, "F") == PASSING  # type: ignore[arg-type]


def test_columns_of_large_inputs() -> None:
    rules = load(MONITORS, SourceText("limits.ce", "limit A every 1s\n"))
    some = EventBatch(table=EventBatch(events()).table)
    made = [record(e) for e in Engine(rules, "kernel").process(some).events]
    assert times(made, "F") == [0, 1000, 2500]


def test_under_a_policy(book: Rulebook) -> None:
    made = [record(d) for d in run_with_policy(book, events(), "best-effort").detections]
    assert times(made, "E") == PASSING


def test_detections_are_limited_for_all_that_read_them() -> None:
    rules = load(SourceText("rules.ce", "limit P every 1s\ndetect P = [A]\ndetect Q = [P]\n"))
    made = [record(e) for e in Engine(rules).process(events()).events]
    assert times(made, "P") == times(made, "Q") == [0, 1000, 2500]


@pytest.mark.parametrize(
    ("name", "text", "made"),
    [
        ("r.ecl", "monitor m by k = repeat { push(E) { A } }", "E"),
        ("r.ce", "detect E = [A(k = ?k)]", "E"),
        ("r.say", "Report E when A for the same k.", "E"),
        ("r.ecco", "detect E per k = A", "E"),
    ],
)
def test_detections_of_any_language_are_limited_per_key(name: str, text: str, made: str) -> None:
    """`until` lets the next one of its key pass. Both tiers are looked at, however the input is cut."""
    limit = SourceText("limit.ce", f"limit {made} per k every 1s until B(v > 0)\n")
    rules = load(SourceText(name, text + "\n"), limit)
    ends = [primitive("B", t * 1000, t * 1000, f"b{t}", {"k": 1.0, "v": v}) for t, v in [(5, 1.0), (950, 0.0), (1400, 1.0)]]
    some = sorted([*events(), *ends], key=lambda e: e.hi)
    found = check_detector(rules, some, [2, 5])
    assert [d["time"] for d in found] == [0, 10, 900, 1500, 1600, 2500]  # type: ignore[index]
    assert rules.plans()[0].partition == ("k",)


def test_what_ends_a_limit_may_be_a_detection_that_its_maker_does_not_see() -> None:
    text = "detect End = [B]\nlimit E until End\n"
    rules = load(
        SourceText("r.ecl", "monitor m = repeat { push(E) { A } }\nmonitor all = repeat { push(F) { type = 'End' } }\n"),
        SourceText("l.ce", text),
    )
    some = [event(0, 1), event(1, 1), primitive("B", 2000, 2000, "b", {}), event(3, 1), event(4, 1)]
    made = [record(e) for e in Engine(rules).process(some).events]
    assert times(made, "E") == [0, 3]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.ecco", "detect P = A\ndetect Q = P ; A\n", "'Q' uses 'P' as it is before the limit"),
        ("r.ce", "detect P = [A]\nlimit P until all\n", "what ends a limit is named by type, without parameters"),
        ("r.ce", "detect P = [A]\nlimit P until B(k = ?k)\n", "what ends a limit is named by type, without parameters"),
        ("r.ce", "detect P = [A]\nlimit P once\n", "expected 'every' or 'until', found 'once'"),
    ],
)
def test_limits_that_are_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message.replace("(", "\\(")):
        load(SourceText(name, text), SourceText("l.ce", "limit P every 1h\n"))


def test_limits_without_effect_are_warned_about() -> None:
    rules = load(SourceText("r.ce", "detect P = [A]\nlimit p every 1h\nlimit A until B\n"))
    messages = [w.message for w in rules.warnings if "limit" in w.message]
    assert messages == [
        "nothing reads or makes 'p': the limit has no effect",
        "nothing makes 'A': only detections can be limited 'until' something",
    ]


def test_changed_rules_keep_what_a_limit_remembers() -> None:
    engine = Engine(load(SourceText("rules.ce", "limit A every 1s\ndetect P = [A]\n")))
    engine.process([event(0, 1)])
    engine.change_rules(load(MONITORS, SourceText("rules.ce", "limit A every 1s\n")))
    made = [record(e) for e in engine.process([event(500, 1), event(1000, 1)]).events]
    assert times(made, "F") == [1000]


def test_what_a_limit_asks_of_the_source() -> None:
    rules = load(MONITORS, SourceText("limits.ce", "limit A per door, source every 1s\n"))
    keyed, free = rules.plans()
    assert keyed.columns == {"k", "door"}
    assert (keyed.partition, free.partition) == (None, None)
    (keyed, _) = load(MONITORS, LIMITS).plans()[:2]
    assert keyed.partition == ("k",)
    other = load(SourceText("other.ce", "detect X = [B]"), LIMITS).plans()[0]
    assert not isinstance(other, LimitedPlan)  # it reads nothing that is limited


def test_limits_are_explained() -> None:
    text = explain(load(MONITORS, LIMITS))
    assert "    limits    A per k every 1s" in text.splitlines()
    assert "machine" in text  # what stands behind the limits is told too


def test_spark_spreads_no_events_that_a_limit_compares() -> None:
    from coincide.engines.spark.groups import groups

    apart, across = (SourceText("limits.ce", f"limit A {per}every 1s\n") for per in ("per k ", ""))
    keyed = SourceText("monitors.ecl", "monitor m by k = repeat { push(E) { A } }\n")
    assert [group.key for group in groups(load(keyed, apart))] == [("k",)]
    (group,) = groups(load(keyed, across))
    assert (group.key, group.reasons) == (None, ("a limit looks at events of 'm' across keys",))


def test_sets_are_read_behind_limits_too() -> None:
    """Spark asks this for the columns of detections."""
    plans = load(LIMITS, SourceText("q.eql", "A where k > 0")).plans()
    assert all(isinstance(plan, LimitedPlan) for plan in plans)
    assert {plan.definitions: plan.reads_sets for plan in plans} == {("O",): False, ("q",): True}
