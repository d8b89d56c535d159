"""Stability policies on random arrivals: snapshots change nothing, and what the policies have in common."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engines.policies import PolicyEngine, PolicyRun, run_with_policy
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, loads
from coincide.testing.check import detections

RULES = [
    loads("sources s, t\ndetect P = [A(k = ?x)] ; [B(k = ?x)]\ndetect X policy best-effort = ([P], [B]) T = 4ms", "ce"),
    loads("limit A per k every 2ms\ndetect X restart = ([A], [T in {T, B}]) T = 3ms\ndetect Y = [A] || [B]", "ce"),
    loads("monitor m by k = repeat { push(X) { sequential { A, B } } }\nmonitor n = repeat { push(Y) { sequential { X, A } } }"),
]
POLICIES = ["best-effort", "guaranteed", "probabilistic 0.4", None]


@st.composite
def arrivals(draw: st.DrawFn) -> list[Event]:
    """Records of two sources and of none, some of them heartbeats, by arrival; some come out of order."""
    clock, made = 0, []
    for number in range(draw(st.integers(0, 12))):
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
            gather(whole, engine)
            kept = engine.snapshot()
            engine = PolicyEngine(rules, policy)
            engine.restore(kept)
        engine.arrive(event)
    engine.finish(until)
    gather(whole, engine)
    expected = run_with_policy(rules, some, policy, until)
    assert outcome(whole) == outcome(expected)
    assert engine.refused() == {p: len(late) for p, late in expected.late.items()}


def gather(whole: PolicyRun, engine: PolicyEngine) -> None:
    part = engine.take()
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


def test_a_snapshot_of_another_version_is_refused() -> None:
    engine = PolicyEngine(RULES[0], "guaranteed")
    newer = [*msgspec.msgpack.decode(engine.snapshot())]
    newer[1] = 99
    with pytest.raises(ValueError, match="version 99"):
        engine.restore(msgspec.msgpack.encode(newer))
