"""Cases of stability policies: events in the order of arrival, `policy`, and `latencies.jsonl` where given."""

from __future__ import annotations

from coincide.adapters.read import open_events
from coincide.engines.choice import arrivals_on_spark, until_microseconds
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import PolicyEngine, PolicyRun
from coincide.model.batch import EventBatch
from coincide.model.event import record
from coincide.ordering import POLICIES, written_policies
from coincide.rulebook import load
from coincide.testing.cases import Case, Problem, Setup
from coincide.testing.compare import Record, unmatched
from coincide.testing.expected import read_expected, read_records
from coincide.testing.kinds import line_of


def each_policy() -> tuple[str, ...]:
    """One of each kind."""
    return tuple(f"{name} 0.9" if POLICIES[name].has_threshold else name for name in written_policies())


def check_policy(case: Case, setup: Setup) -> list[Problem]:
    result = _run(case, setup)
    problems = _compared(read_expected(case.folder / "expected.jsonl"), [record(d) for d in result.detections])
    if case.path("latencies.jsonl"):
        problems += _compared(read_records(case.folder / "latencies.jsonl"), [latency.record() for latency in result.latencies])
    return problems


def _run(case: Case, setup: Setup) -> PolicyRun:
    rules, until = load(*case.rules), until_microseconds(case.text("until"))
    policy = StabilityPolicy.parse(case.text("policy") or "")
    arrivals = open_events(case.folder / "events.jsonl", strict=True)
    if setup.engine != "embedded":
        return arrivals_on_spark(rules, arrivals, policy, until, setup.engine, setup.tier)
    engine = PolicyEngine(rules, policy, setup.tier)
    for batch in arrivals:
        engine.arrive_all(batch if setup.tier != "kernel" else EventBatch(table=batch.table))
    engine.finish(until)
    return engine.take()


def _compared(expected: list[Record], found: list[Record]) -> list[Problem]:
    missing, unexpected = unmatched(expected, found)
    return [*(Problem("-", line_of(r)) for r in missing), *(Problem("+", line_of(r)) for r in unexpected)]
