"""Most cases as one rule set over one stream, and what comes of it: made once for all tests."""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import coincide
from coincide.errors import DataWarning
from coincide.testing.cases import find_cases

sys.path.append(str(Path(__file__).parent))
from together import Answer, Answers, Copy, Mixed, Records, Streamed, copies, part, together

MANY = 20
"""From so many cases on it is cheaper to take all of them together than one by one."""


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> list[Copy]:
    cases = find_cases(Path(__file__).parent / "cases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return copies([case for case in cases if case.is_known], tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="session")
def mixed(copied: list[Copy]) -> Mixed:
    return together(copied)


@pytest.fixture(scope="session")
def answer(mixed: Mixed) -> Answer:
    """What an engine and a tier of it find."""
    return cache(lambda engine, tier: list(coincide.detect(*mixed, engine=engine, tier=tier, keys=True)))


@pytest.fixture(scope="session")
def streamed(copied: list[Copy]) -> Streamed:
    """What is found in a part of the cases, embedded and on a stream."""

    def found(number: int) -> list[Records]:
        few = together(part(copied, number))
        return [list(coincide.detect(*few, engine=engine, keys=True)) for engine in ("embedded", "spark-streaming")]

    return cache(found)


@pytest.fixture(scope="session")
def jointly(request: pytest.FixtureRequest) -> Answers:
    """For each case that can be taken with others: what its rules find among all, embedded and on Spark. Nothing where each case
    is to be run by itself, or few are to be run."""
    if not _are_many(request, "test_spark_batch"):
        return {}
    answer = request.getfixturevalue("answer")
    return _by_case(request.getfixturevalue("copied"), [answer("embedded", "interpreter"), answer("spark", "auto")])


@pytest.fixture(scope="session")
def streamed_jointly(request: pytest.FixtureRequest) -> Answers:
    """The same for a stream."""
    if not _are_many(request, "test_spark_streaming"):
        return {}
    return _by_case(part(request.getfixturevalue("copied"), 0), request.getfixturevalue("streamed")(0))


def _are_many(request: pytest.FixtureRequest, test: str) -> bool:
    asked = sum(item.nodeid.partition("[")[0].endswith(f"test_matrix.py::{test}") for item in request.session.items)
    return asked >= MANY and not request.config.getoption("in_full")


def _by_case(made: list[Copy], answers: list[Records]) -> Answers:
    wanted, found = map(_by_number, answers)
    return {copy.name: (wanted[copy.number], found[copy.number]) for copy in made}


def _by_number(records: Records) -> dict[int, Records]:
    found: dict[int, Records] = defaultdict(list)
    for record in records:
        found[int(record["type"].partition("_")[0][1:])].append(record)
    return found
