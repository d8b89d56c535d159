"""Most cases of all languages as one rule set over one stream: the engines give the same answer."""

from __future__ import annotations

from collections import Counter

import pytest
from together import Answer, Copy, Mixed, Records, together

import coincide

pytestmark = pytest.mark.filterwarnings("ignore::coincide.errors.DataWarning")

FEW = 8
"""On a stream, one in so many at a time: for each of its groups Spark keeps a state, and the whole set does not fit into the
memory of a small one."""


def counted(found: Records) -> Counter[str]:
    return Counter(f"{each['type']} {each['time']} {each['_key']}" for each in found)


def test_it_is_a_set_of_many_rules(mixed: Mixed) -> None:
    book, events = mixed
    assert len(book.detectors) > 800
    assert {detector.language for detector in book.detectors} == set(book.compiled.languages)
    assert len(events) > 2_500


def test_tiers(answer: Answer) -> None:
    assert counted(answer("embedded", "kernel")) == counted(answer("embedded", "interpreter"))


@pytest.mark.spark
def test_spark(answer: Answer, spark: object) -> None:
    assert counted(answer("spark", "auto")) == counted(answer("embedded", "auto"))


@pytest.mark.spark
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.matrix) for first in range(1, FEW))])
def test_spark_streaming(copied: list[Copy], first: int, spark: object) -> None:
    few = together(copied[first::FEW])
    assert {detector.language for detector in few[0].detectors} == set(few[0].compiled.languages)
    streamed, embedded = (coincide.detect(*few, engine=engine, keys=True) for engine in ("spark-streaming", "embedded"))
    assert counted(list(streamed)) == counted(list(embedded))
