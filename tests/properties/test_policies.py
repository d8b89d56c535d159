"""Stability policies on random arrivals: snapshots change nothing, and what the policies have in common."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from coincide.adapters.read import open_events
from coincide.detection.snapshots import opened
from coincide.engines import arrivals as by_columns
from coincide.engines.choice import until_microseconds
from coincide.engines.policies import PolicyEngine, PolicyRun, run_with_policy
from coincide.errors import InputError, RunError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load, loads
from coincide.source import SourceText
from coincide.stages import arrival_of
from coincide.testing.cases import find_cases
from coincide.testing.check import detections

AMIT = """<amit>
  <event name="A"><eventAttribute name="k" type="number"/></event>
  <event name="B"><eventAttribute name="k" type="number"/></event>
  <lifespan name="each">
    <initiator><eventInitiator event="A" correlate="add"/></initiator>
    <terminator><expirationInterval timeInterval="5"/></terminator>
    <keyBy attribute="k"/>
  </lifespan>
  <lifespan name="begun">
    <initiator><startup/></initiator><terminator><expirationInterval timeInterval="8"/></terminator>
  </lifespan>
  <lifespan name="always"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
  <situation name="X" lifespan="each">
    <all><operandAll event="B"/></all>
    <situationAttribute name="k" type="number" expression="B.k"/>
  </situation>
  <situation name="none" lifespan="each"><not><operandNot event="B"/></not></situation>
  <situation name="few" lifespan="begun"><atmost quantity="3"><operandAtmost event="B"/></atmost></situation>
  <situation name="later" lifespan="always"><after interval="6" correlate="add"><operandAfter event="B"/></after></situation>
  <situation name="Y" lifespan="always">
    <sequence><operandSequence event="none"/><operandSequence event="X"/></sequence>
  </situation>
</amit>"""
RULES = [
    loads("sources s, t\ndetect P = [A(k = ?x)] ; [B(k = ?x)]\ndetect X policy best-effort = ([P], [B]) T = 4ms", "ce"),
    loads("limit A per k every 2ms\ndetect X restart = ([A], [T in {T, B}]) T = 3ms\ndetect Y = [A] || [B]", "ce"),
    loads("detect X = ([A(k = ?x)], [B(k = ?x)]) T = 6ms\ndetect Y restart = [X] ; ([A], [T in {T, B}]) T = 8ms", "ce"),
    loads("monitor m by k = repeat { push(X) { sequential { A, B } } }\nmonitor n = repeat { push(Y) { sequential { X, A } } }"),
    loads(AMIT, "amit.xml"),
]
POLICIES = ["best-effort", "guaranteed", "probabilistic 0.4", None]


@st.composite
def arrivals(draw: st.DrawFn) -> list[Event]:
    """Records of two sources and of none, some of them heartbeats, by arrival; some come out of order."""
    clock, made = 0, []
    for number in range(draw(st.integers(0, 25))):
        clock += draw(st.integers(0, 3))
        kind, source = draw(st.sampled_from(["A", "B", "heartbeat"])), draw(st.sampled_from(["s", "t", None]))
        hi = clock - draw(st.integers(0, 4))
        attributes = {"k": draw(st.sampled_from([1.0, 2.0]))}
        made.append(primitive(kind, hi * 1000, hi * 1000, f"e{number}", attributes, source, arrival=clock * 1000))
    return made


def outcome(run: PolicyRun) -> object:
    latencies = [latency.record() for latency in run.latencies]
    return [record(d) for d in run.detections], latencies, [[e.id for e in late] for late in run.late.values()]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(RULES), st.sampled_from(POLICIES), arrivals(), st.sets(st.integers(0, 12)), st.sampled_from([None, 15_000, 0])
)
def test_a_snapshot_anywhere_changes_nothing(
    rules: Rulebook, policy: str | None, some: list[Event], cuts: set[int], until: float | None
) -> None:
    engine, whole = PolicyEngine(rules, policy), PolicyRun()
    for number, event in enumerate(some):
        if number in cuts:
            gather(whole, engine.take())
            kept = engine.snapshot()
            engine = PolicyEngine(rules, policy)
            engine.restore(kept)
        engine.arrive(event)
    engine.finish(until)
    gather(whole, engine.take())
    expected = run_with_policy(rules, some, policy, until)
    assert outcome(whole) == outcome(expected)
    assert engine.refused() == {p: len(late) for p, late in expected.late.items()}


def gather(whole: PolicyRun, part: PolicyRun) -> None:
    whole.detections += part.detections
    whole.latencies += part.latencies
    for policy, late in part.late.items():
        whole.late.setdefault(policy, []).extend(late)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(RULES[1:]), arrivals(), st.sampled_from([None, 15_000]))
def test_no_policy_is_the_total_order(rules: Rulebook, some: list[Event], until: float | None) -> None:
    found = run_with_policy(rules, some, None, until).detections
    assert [record(d) for d in found] == detections(rules, some, until=until)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(RULES), arrivals(), st.sampled_from([None, 15_000]))
def test_certainty_is_guaranteed(rules: Rulebook, some: list[Event], until: float | None) -> None:
    certain, guaranteed = (run_with_policy(rules, some, policy, until) for policy in ("probabilistic 1", "guaranteed"))
    assert outcome(certain) == outcome(guaranteed)


def event_by_event(rules: Rulebook, some: list[Event], policy: str | None, until: float | None) -> PolicyEngine:
    """What is stable is consumed at once, whatever it costs: how the specification reads."""
    engine = PolicyEngine(rules, policy)
    for event in some:
        engine.arrive(event)
        engine.settle()
    engine.finish(until)
    return engine


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(RULES),
    st.sampled_from(POLICIES),
    arrivals(),
    st.sets(st.integers(0, 12)),
    st.sampled_from([None, 15_000]),
    st.sampled_from(["interpreter", "kernel"]),
    st.sampled_from([1, 3]),
)
def test_runs_and_columns_are_as_event_by_event(
    rules: Rulebook, policy: str | None, some: list[Event], cuts: set[int], until: float | None, tier: str, stretch: int
) -> None:
    by_columns.STRETCH = stretch
    engine, whole = PolicyEngine(rules, policy, tier), PolicyRun()
    ends = sorted({0, len(some), *(cut for cut in cuts if cut < len(some))})
    for start, stop in pairwise(ends):
        part = EventBatch(some[start:stop])
        for run in engine.process(EventBatch(table=part.table) if tier == "kernel" else part):
            gather(whole, run)
    engine.finish(until)
    gather(whole, engine.take())
    expected = event_by_event(rules, some, policy, until)
    assert engine.refused() == expected.refused()
    assert outcome(whole) == outcome(expected.take())


ALL_CASES = find_cases(Path(__file__).parents[1] / "conformance" / "cases")
CASES = [case for case in ALL_CASES if case.path("expected.jsonl") and case.path("events.jsonl")]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_language_in_runs_is_as_event_by_event(policy: str | None, in_full: bool) -> None:
    """The cases of all languages, with their events shuffled a little on the way; a third of them, each with one policy, unless
    all are wanted."""
    random, every = Random(7), 1 if in_full else 3 * len(POLICIES)
    for case in CASES[POLICIES.index(policy) % every :: every]:
        rules, until = case.book(), until_microseconds(case.text("until"))
        events = [event for batch in open_events(case.folder / "events.jsonl") for event in batch.events]
        sent = [structs.replace(e, source=random.choice("st"), arrival=e.hi + random.choice([0, 0, 1000, 9000])) for e in events]
        some = sorted(sent, key=arrival_of)
        expected = event_by_event(rules, some, policy, until)
        engine = PolicyEngine(rules, policy)
        for event in some:
            engine.arrive(event)
        engine.finish(until)
        assert outcome(engine.take()) == outcome(expected.take()), case.name
        assert engine.snapshot() == expected.snapshot(), case.name


def test_detections_come_in_the_order_made_over_all_policies() -> None:
    rules = loads("detect X policy guaranteed = [A]\ndetect Y policy best-effort = [A]", "ce")
    made = PolicyEngine(rules).process(EventBatch(numbered("AAA")))
    assert [(d.type, d.origin[0][4]) for run in made for d in run.detections] == [
        ("Y", "e0"), ("X", "e0"), ("Y", "e1"), ("X", "e1"), ("Y", "e2"),
    ]  # fmt: skip


def test_what_was_made_before_a_stop_is_given_out() -> None:
    """A chain without end begins with the second event, which is stable when the third arrives: no policy gets to see that."""
    [endless] = (case for case in ALL_CASES if case.name == "amit-errors/chain")
    rules = load(*endless.rules, SourceText("b.ce", "detect Y policy best-effort = [A]"))
    some = [structs.replace(event, attributes={"x": 1001.0 if event.id == "e1" else 1.0}) for event in numbered("AAAA")]
    run = PolicyEngine(rules, "guaranteed").process(EventBatch(some))
    assert [d.origin[0][4] for d in next(run).detections if d.type == "Y"] == ["e0", "e1"]
    with pytest.raises(RunError, match="a chain of more than 1000 detections"):
        next(run)


def numbered(kinds: Sequence[str]) -> list[Event]:
    return [primitive(kind, n * 1000, n * 1000, f"e{n}", {}, "s") for n, kind in enumerate(kinds)]


def test_a_snapshot_of_another_version_is_refused() -> None:
    engine = PolicyEngine(RULES[0], "guaranteed")
    newer = [*msgspec.msgpack.decode(opened(engine.snapshot()))]
    newer[1] = 99
    with pytest.raises(InputError, match="version 99"):
        engine.restore(msgspec.msgpack.encode(newer))
