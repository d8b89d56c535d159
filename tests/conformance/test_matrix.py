"""Every case on every engine and tier: the same answer everywhere.

`make test` takes all of it but Spark streaming, of which it takes a fixed sample, and on Spark most cases as one job or query;
`make test-all` takes everything, each case by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from together import SAMPLE, Answers

from coincide.testing.cases import Case, find_cases, run_case
from coincide.testing.compare import unmatched

CASES = [case for case in find_cases(Path(__file__).parent / "cases") if case.is_known]
RUNS = [case for case in CASES if case.path("expected.jsonl")]
LOADS = [case for case in CASES if not case.path("expected.jsonl")]


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


def check_on_spark(case: Case, engine: str, jointly: Answers) -> None:
    """Its answer among that to all cases that can be taken together, if many are asked for."""
    if case.name in jointly:
        assert unmatched(*jointly[case.name]) == ([], [])
    else:
        check(case, engine)


@pytest.mark.spark
@pytest.mark.parametrize("case", named(RUNS))
def test_spark_batch(case: Case, spark: object, jointly: Answers) -> None:
    check_on_spark(case, "spark", jointly)


@pytest.mark.spark
@pytest.mark.parametrize("case", named([case for case in RUNS if case.name in SAMPLE]))
def test_spark_streaming(case: Case, spark: object, streamed_jointly: Answers) -> None:
    check_on_spark(case, "spark-streaming", streamed_jointly)


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("case", named([case for case in RUNS if case.name not in SAMPLE]))
def test_spark_streaming_in_full(case: Case, spark: object) -> None:
    check(case, "spark-streaming")


def test_the_sample_names_cases_that_exist() -> None:
    assert {case.name for case in CASES} >= SAMPLE
