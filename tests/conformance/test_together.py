"""Most cases of all languages as one rule set over one stream: the engines give the same answer."""

from __future__ import annotations

from collections import Counter

import pytest
from together import PARTS, Answer, Copy, Mixed, Records, Streamed, part, together

import coincide

pytestmark = pytest.mark.filterwarnings("ignore::coincide.errors.DataWarning")


def counted(found: Records) -> Counter[str]:
    return Counter(f"{each['type']} {each['time']} {each['_key']}" for each in found)


def test_it_is_a_set_of_many_rules(mixed: Mixed) -> None:
    book, events, _ = mixed
    assert len(book.detectors) > 800
    assert {detector.language for detector in book.detectors} == set(book.compiled.languages)
    assert len(events) > 2_500


@pytest.mark.matrix
def test_tiers(answer: Answer) -> None:
    assert counted(answer("embedded", "kernel")) == counted(answer("embedded", "interpreter"))


def test_tiers_of_a_part(copied: list[Copy]) -> None:
    few = together(part(copied, 0))
    kernel, interpreter = (counted(list(coincide.detect(*few, tier=tier, keys=True))) for tier in ("kernel", "interpreter"))
    assert kernel == interpreter
    assert len(kernel) > 50


@pytest.mark.spark
def test_spark(answer: Answer, spark: object) -> None:
    assert counted(answer("spark", "auto")) == counted(answer("embedded", "interpreter"))


@pytest.mark.spark
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.matrix) for number in range(1, PARTS + 1))])
def test_spark_streaming(copied: list[Copy], streamed: Streamed, number: int, spark: object) -> None:
    book, *_ = together(part(copied, number))
    assert {detector.language for detector in book.detectors} == set(book.compiled.languages)
    embedded, stream = map(counted, streamed(number))
    assert stream == embedded
