"""Most cases of all languages as one rule set over one stream: the engines give the same answer."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.errors import DataWarning
from coincide.rulebook import Rulebook
from coincide.testing.cases import find_cases

sys.path.append(str(Path(__file__).parent))
from together import Copy, copies, together

pytestmark = pytest.mark.filterwarnings("ignore::coincide.errors.DataWarning")


FEW = 8
"""On a stream, one in so many at a time: for each of its groups Spark keeps a state, and the whole set does not fit into the
memory of a small one."""

Mixed = tuple[Rulebook, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> list[Copy]:
    cases = find_cases(Path(__file__).parent / "cases")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return copies([case for case in cases if case.is_known], tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="module")
def mixed(copied: list[Copy]) -> Mixed:
    return together(copied)


def answer(mixed: Mixed, engine: str, tier: str = "auto") -> Counter[str]:
    made = coincide.detect(*mixed, engine=engine, tier=tier, keys=True)
    return Counter(f"{found['type']} {found['time']} {found['_key']}" for found in made)


def test_it_is_a_set_of_many_rules(mixed: Mixed) -> None:
    book, events = mixed
    assert len(book.detectors) > 800
    assert {detector.language for detector in book.detectors} == set(book.compiled.languages)
    assert len(events) > 2_500


def test_tiers(mixed: Mixed) -> None:
    assert answer(mixed, "embedded", "kernel") == answer(mixed, "embedded", "interpreter")


@pytest.mark.spark
def test_spark(mixed: Mixed, spark: object) -> None:
    assert answer(mixed, "spark") == answer(mixed, "embedded")


@pytest.mark.spark
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.matrix) for first in range(1, FEW))])
def test_spark_streaming(copied: list[Copy], first: int, spark: object) -> None:
    few = together(copied[first::FEW])
    assert {detector.language for detector in few[0].detectors} == set(few[0].compiled.languages)
    assert answer(few, "spark-streaming") == answer(few, "embedded")
