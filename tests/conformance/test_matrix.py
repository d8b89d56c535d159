"""Every case on every engine and tier: the same answer everywhere.

`make test` takes all of it but Spark streaming, of which it takes a fixed sample, and on Spark most cases as one job;
`make test-all` takes everything, each case by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from together import Records

from coincide.testing.cases import Case, find_cases, run_case
from coincide.testing.compare import unmatched

CASES = [case for case in find_cases(Path(__file__).parent / "cases") if case.is_known]
RUNS = [case for case in CASES if case.path("expected.jsonl")]
LOADS = [case for case in CASES if not case.path("expected.jsonl")]

# On Spark streaming a case takes seconds: one for each construct.
SAMPLE = {
    "ecl/avionics", "ecl/chained-monitors", "ecl/do-unless", "ecl/interval-time", "ecl/keys", "ecl/keys-modes",
    "ecl/machine-example-3", "ecl/predicate-null", "ecl/push-attributes", "ecl/several-files", "ecl/total-order",
    "amit/after", "amit/fig10-portal-collapse", "amit/key-global", "amit/mode-deferred",
    "amit/startup-after-heartbeats", "amit/where",
    "opera/parameter-doors", "opera/paper-3-within-an-hour", "opera/parallel", "opera/timing-daily", "pretty/then-within",
    "pretty/at-most-once",
    "ecco/example-1-average", "ecco/once", "ecco/per-key", "ecco/silence",
    "cdl/paper-physician-visit", "cdl/set-and-range-values", "cdl/time-event-chained", "cdl/within",
    "mixed/five-in-a-row",
    "eql/category-from-ecs", "eql/keys-optional", "eql/keys-several-values", "eql/missing-trailing-until-time",
    "eql/rules-over-detections", "eql/until",
    "sigma/brute-force-chain", "sigma/mapping", "sigma/values",
    "match-recognize/end-open", "match-recognize/timed-out", "match-recognize/v-shape", "match-recognize/views-chained",
    "match-recognize/within-timer",
    "opera-policies/guaranteed-late-event", "opera-policies/policy-per-detector", "opera-policies/probabilistic-time-passes",
}  # fmt: skip


def check(case: Case, engine: str = "embedded", tier: str = "auto") -> None:
    result = run_case(case, engine, tier)
    assert result.passed, "\n".join(f"{p.sign} {p.text}" for p in result.problems)


def named(cases: list[Case]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.mark.parametrize("case", named(LOADS))
def test_load(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("case", named(RUNS))
def test_embedded(case: Case, tier: str) -> None:
    check(case, "embedded", tier)


@pytest.mark.spark
@pytest.mark.parametrize("case", named(RUNS))
def test_spark_batch(case: Case, spark: object, jointly: dict[str, tuple[Records, Records]]) -> None:
    """Its answer among that to all cases that can be taken together, if many are asked for."""
    if case.name not in jointly:
        check(case, "spark")
        return
    wanted, found = jointly[case.name]
    assert unmatched(wanted, found) == ([], [])


@pytest.mark.spark
@pytest.mark.parametrize("case", named([case for case in RUNS if case.name in SAMPLE]))
def test_spark_streaming(case: Case, spark: object) -> None:
    check(case, "spark-streaming")


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", named([case for case in RUNS if case.name not in SAMPLE]))
def test_spark_streaming_in_full(case: Case, spark: object) -> None:
    check(case, "spark-streaming")


def test_the_sample_names_cases_that_exist() -> None:
    assert {case.name for case in CASES} >= SAMPLE
