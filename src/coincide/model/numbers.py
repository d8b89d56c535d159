"""Numbers: doubles, and the whole numbers of 64 bits that no double is equal to.

A number has one form only: a whole number is an `int` where it needs more digits than a double has, otherwise a `float`. So
numbers are equal iff they are equal to Python, whatever their types, and most of them are plain doubles. Whole numbers of more
than 64 bits become the nearest double. Arithmetic is done in doubles; only comparisons see all digits.

As columns, a number is its nearest double and a *rest*, what is left to the whole number: pairs compare as the numbers do,
first by their doubles (rounding keeps the order), then by their rests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

EXACT = 2**53
"""Every whole number up to here is a double."""

FEW_DIGITS, LONG_DIGITS = 15, 18
"""Decimals of so many digits are told apart, and put in order, by the doubles nearest to them; whole ones by 64 bits."""

LEAST, MOST = -(2**63), 2**63 - 1
"""Whole numbers from here to there are kept exactly."""


def number_of(whole: int) -> float:
    """A whole number as a value. OverflowError: no double is as large."""
    if -EXACT <= whole <= EXACT or not LEAST <= whole <= MOST:
        return float(whole)
    double = float(whole)
    return double if double == whole else whole


def number_of_text(text: str) -> float:
    """A number as written, maybe infinite: one that is all digits is a whole number."""
    digits = text.lstrip("+-")
    short = 16 <= len(digits.lstrip("0")) <= 19 and digits.isascii() and digits.isdecimal()
    return number_of(int(text)) if short else float(text)


def is_number(value: object) -> TypeGuard[float]:
    """Is it a number, in either form? A boolean is none."""
    return type(value) is float or type(value) is int


def is_beyond(whole: int) -> bool:
    """Does it lose digits, having more than 64 bits?"""
    return not LEAST <= whole <= MOST and float(whole) != whole


def plain_number(value: float) -> int | float:
    """A number as JSON spells it: integral ones without a fraction."""
    if type(value) is int:
        return value
    return int(value) if value.is_integer() and LEAST <= value <= MOST else value


def rest_of(value: float) -> int:
    """What is left of a number beside its nearest double."""
    return value - int(float(value)) if type(value) is int else 0


def neighbours(number: float) -> Iterator[float]:
    """The numbers next to it, a double and, where these are wider apart, a whole number on either side."""
    yield from (math.nextafter(number, -math.inf), math.nextafter(number, math.inf))
    if EXACT <= abs(number) <= -LEAST:
        yield from (number_of(int(number) - 1), number_of(int(number) + 1))


def same_kind(a: Any, b: Any) -> bool:
    """Can the two be compared? Numbers of both forms can."""
    return type(a) is type(b) or (is_number(a) and is_number(b))
