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
from together import Answer, Copy, Mixed, Records, copies, together

MANY = 50
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
def jointly(request: pytest.FixtureRequest) -> dict[str, tuple[Records, Records]]:
    """For each case that can be taken with others: what its rules find among all, embedded and on Spark. Nothing where each case
    is to be run by itself, or few are to be run."""
    asked = sum(item.name.startswith("test_spark_batch[") for item in request.session.items)
    if request.config.getoption("in_full") or asked < MANY:
        return {}
    answer = request.getfixturevalue("answer")
    wanted, found = (_by_number(answer(engine, "auto")) for engine in ("embedded", "spark"))
    return {copy.name: (wanted[copy.number], found[copy.number]) for copy in request.getfixturevalue("copied")}


def _by_number(records: Records) -> dict[int, Records]:
    found: dict[int, Records] = defaultdict(list)
    for record in records:
        found[int(record["type"].partition("_")[0][1:])].append(record)
    return found
