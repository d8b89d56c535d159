"""Time patterns of `at`."""

from __future__ import annotations

import pytest

from coincide.lang.amit.pattern import parse_pattern
from coincide.model.stamp import format_instant, parse_instant


@pytest.mark.parametrize(
    ("pattern", "after", "expected"),
    [
        ("*/*/* *:*:*.*", "2024-02-28T23:59:59.999Z", "2024-02-29T00:00:00.000Z"),
        ("29/2/**** 0:0:0.0", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00.000Z"),
        ("31/*/* 12:0:0.000", "2023-03-31T12:00:00Z", "2023-05-31T12:00:00.000Z"),
        ("*/*/* *:30:00.000", "2023-12-31T23:30:00Z", "2024-01-01T00:30:00.000Z"),
        ("1/1/2030 00:00:00.001", "1969-12-31T00:00:00Z", "2030-01-01T00:00:00.001Z"),
        ("*/*/* 7:*:59.*", "2023-06-01T07:59:59.999Z", "2023-06-02T07:00:59.000Z"),
        ("*/*/* *:*:*.500", "2023-06-01T07:59:59.4999Z", "2023-06-01T07:59:59.500Z"),
    ],
)
def test_the_next_match_is_strictly_later(pattern: str, after: str, expected: str) -> None:
    found = parse_pattern(pattern).after(parse_instant(after))
    assert found is not None
    assert format_instant(found) == expected


def test_a_year_that_has_passed_matches_no_more() -> None:
    assert parse_pattern("1/1/2020 0:0:0.0").after(parse_instant("2020-01-01T00:00:00Z")) is None


def test_a_wildcard_year_recurs() -> None:
    assert parse_pattern("1/1/* 0:0:0.0").recurring
    assert not parse_pattern("*/*/2020 *:*:*.*").recurring


def test_instants_outside_the_calendar() -> None:
    every = parse_pattern("*/*/* *:*:*.*")
    assert every.after(2**61) is None
    assert every.after(-(2**61)) is not None
