"""Cases of stability policies: events in the order of arrival, `policy`, and `latencies.jsonl` where given."""

from __future__ import annotations

from itertools import chain

from coincide.adapters.read import open_events
from coincide.engines.choice import until_microseconds
from coincide.engines.policies import PolicyRun, run_with_policy
from coincide.model.event import record
from coincide.testing.cases import Case, Problem, Setup
from coincide.testing.compare import Record, unmatched
from coincide.testing.kinds import line_of, read_records


def check_policy(case: Case, setup: Setup) -> list[Problem]:
    """Policies are the embedded engine's: Spark sorts its input."""
    result = _run(case)
    problems = _compared(read_records(case.folder / "expected.jsonl"), [record(d) for d in result.detections])
    if case.path("latencies.jsonl"):
        problems += _compared(read_records(case.folder / "latencies.jsonl"), [latency.record() for latency in result.latencies])
    return problems


def _run(case: Case) -> PolicyRun:
    events = case.folder / "events.jsonl"
    arrivals = chain.from_iterable(batch.events for batch in open_events(events, strict=True))
    return run_with_policy(case.rules, arrivals, case.text("policy") or "", until_microseconds(case.text("until")))


def _compared(expected: list[Record], found: list[Record]) -> list[Problem]:
    missing, unexpected = unmatched(expected, found)
    return [*(Problem("-", line_of(r)) for r in missing), *(Problem("+", line_of(r)) for r in unexpected)]
