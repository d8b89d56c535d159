"""Relations of two stamps (Table 3 of the paper), and how a length compares with a real-time period (section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.detection.algebra.occurrence import INTERVAL, Occurrence
from coincide.lang.ecco.definition import CONCATENATION, CONCURRENCY, CONJUNCTION, SEQUENCE

Relation = Callable[[Occurrence, Occurrence], bool]


def _about(point: Occurrence, instant: int) -> bool:
    """`p ≈ v`: they cannot be ordered."""
    return point.lo <= instant <= point.hi


def before(a: Occurrence, b: Occurrence) -> bool:
    return a.hi < b.lo


def meets(a: Occurrence, b: Occurrence) -> bool:
    if a.is_point:
        return not b.is_point and _about(a, b.lo)
    return _about(b, a.hi) if b.is_point else a.hi == b.lo


def overlaps(a: Occurrence, b: Occurrence) -> bool:
    return not a.is_point and not b.is_point and a.lo < b.lo < a.hi < b.hi


def finishes(a: Occurrence, b: Occurrence) -> bool:
    if a.is_point:
        return not b.is_point and _about(a, b.hi)
    return _about(b, a.hi) if b.is_point else a.lo < b.lo and a.hi == b.hi


def includes(a: Occurrence, b: Occurrence) -> bool:
    return not a.is_point and a.lo < b.lo and b.hi < a.hi


def starts(a: Occurrence, b: Occurrence) -> bool:
    if a.is_point:
        return not b.is_point and _about(a, b.lo)
    return _about(b, a.lo) if b.is_point else a.lo == b.lo and a.hi < b.hi


def equals(a: Occurrence, b: Occurrence) -> bool:
    if a.is_point != b.is_point:
        return False
    if a.is_point:
        return not (before(a, b) or before(b, a))
    return a.lo == b.lo and a.hi == b.hi


def concatenated(a: Occurrence, b: Occurrence) -> bool:
    return meets(a, b) or overlaps(a, b) or finishes(a, b) or includes(a, b) or starts(a, b)


def follows(a: Occurrence, b: Occurrence) -> bool:
    """`a ; b` must be certain."""
    return a.hi < b.lo or contiguous(a, b)


def contiguous(a: Occurrence, b: Occurrence) -> bool:
    """`(a ; b) within 0`: points never meet."""
    return a.hi == b.lo and INTERVAL in (a.kind, b.kind)


RELATION_OF: dict[str, Relation] = {
    SEQUENCE: follows,
    CONJUNCTION: lambda a, b: True,
    CONCURRENCY: equals,
    CONCATENATION: concatenated,
    "before": before,
    "meets": meets,
    "overlaps": overlaps,
    "finishes": finishes,
    "includes": includes,
    "starts": starts,
    "equals": equals,
}

YES, MAYBE, NO = "yes", "maybe", "no"


@dataclass(frozen=True)
class Period:
    """A real-time period T (microseconds) under clock skew ρ. `keeps`: what is only maybe within it counts."""

    length: int
    skew: float = 0.0
    keeps: bool = False

    def verdict(self, near: int, far: int) -> str:
        if far <= self.length * (1 - self.skew):
            return YES
        return NO if near > self.length * (1 + self.skew) else MAYBE

    def holds(self, near: int, far: int) -> str | None:
        """YES or MAYBE if the bound holds, None if it does not."""
        verdict = self.verdict(near, far)
        return verdict if verdict == YES or (verdict == MAYBE and self.keeps) else None

    def certainly_passed(self, far: int) -> bool:
        """Can nothing that lasts at least so long, counted to its end, be within it? With `keeps`, nothing is certain:
        an uncertain stamp may end earlier than it is seen."""
        return not self.keeps and far > self.length * (1 - self.skew)
