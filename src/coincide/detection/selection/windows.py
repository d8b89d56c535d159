"""Sliding windows of correlations: units of a group, and what is tested of them (section 6)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

import msgspec

from coincide.lang.sigma.definition import NUMERIC, TEMPORAL, CorrelationRule, within
from coincide.model.compound import Single
from coincide.model.numbers import is_number
from coincide.model.stamp import OrderKey

Part = tuple[str, Single]
"""A value with its type, so that true is not 1."""


class Unit(msgspec.Struct, array_like=True, gc=False):
    """All that a group has at one event: the rules that match there (by position), their primitive events, and values."""

    hi: int
    lo: int
    rules: tuple[int, ...]
    origin: tuple[OrderKey, ...]
    values: tuple[tuple[Part, ...], ...] = ()


def part(value: Single) -> Part:
    return type(value).__name__, value


@dataclass
class Group:
    """The units of a group within the time span, and when it fired last; what is counted over them is kept up to date."""

    units: deque[Unit] = field(default_factory=deque)
    fired: int | None = None
    counts: Counter[tuple[Part, ...]] = field(default_factory=Counter)
    total: int = 0
    sums: list[float] = field(default_factory=list)
    sorted: list[float] = field(default_factory=list)


class Window:
    """How a correlation takes units in, and what it tests."""

    def __init__(self, rule: CorrelationRule, places: Sequence[int]) -> None:
        self.rule = rule
        self.places = tuple(places)
        self.distinct = len(set(places))
        self.kind = rule.kind
        self.share = rule.kind == "value_percentile" and rule.percentile is None
        self.numeric = rule.kind in NUMERIC or (rule.kind == "value_percentile" and not self.share)
        self.ranks = self.numeric and rule.kind in ("value_median", "value_percentile")

    def add(self, group: Group, unit: Unit) -> None:
        """The unit enters; those that are too old leave."""
        group.units.append(unit)
        self._count(group, unit, 1)
        oldest = unit.hi - self.rule.timespan
        while group.units[0].hi < oldest:
            self._count(group, group.units.popleft(), -1)

    def restored(self, units: Iterable[Unit], fired: int | None) -> Group:
        group = Group(fired=fired)
        for unit in units:
            group.units.append(unit)
            self._count(group, unit, 1)
        return group

    def _count(self, group: Group, unit: Unit, sign: int) -> None:
        if self.kind == "value_count" or self.share:
            for value in unit.values:
                group.counts[value] += sign
                if not group.counts[value]:
                    del group.counts[value]
        elif self.numeric:
            for ((_, number),) in unit.values:
                assert is_number(number)
                if not self.ranks:
                    _add_exactly(group.sums, sign * float(number))
                elif sign > 0:
                    insort(group.sorted, number)
                else:
                    del group.sorted[bisect_left(group.sorted, number)]
        group.total += sign * len(unit.values)

    def tested(self, group: Group) -> float | None:
        """The number that the condition is about; None: it does not hold, whatever the condition."""
        if self.kind == "event_count":
            return len(group.units)
        if self.kind == "value_count":
            return len(group.counts)
        if self.kind in TEMPORAL:
            return self._rules(group)
        if self.share:
            return 100 * sum(group.counts[value] for value in set(group.units[-1].values)) / group.total
        if self.ranks:
            return _percentile(group.sorted, 50 if self.rule.percentile is None else self.rule.percentile)
        total = fsum(group.sums)
        return total if self.kind == "value_sum" else total / group.total

    def _rules(self, group: Group) -> float | None:
        if self.kind == "temporal_ordered":
            return None if self._chain(group) is None else len(self.places)
        return len({rule for unit in group.units for rule in unit.rules})

    def holds(self, number: float | None) -> bool:
        if number is None:
            return False
        if self.rule.bounds:
            return within(self.rule.bounds, number)
        return number == (len(self.places) if self.kind == "temporal_ordered" else self.distinct)

    def used(self, group: Group) -> Sequence[Unit]:
        """The units that a detection is made of (section 7)."""
        if self.kind == "temporal_ordered":
            return self._chain(group) or ()
        if self.kind != "temporal":
            return group.units
        latest: dict[int, Unit] = {rule: unit for unit in group.units for rule in unit.rules}
        return list(latest.values())

    def _chain(self, group: Group) -> list[Unit] | None:
        """From the last unit backwards, the latest of each rule that is before the one after it."""
        *before, last = self.places
        if last not in group.units[-1].rules:
            return None
        chain = [group.units[-1]]
        older = reversed(group.units)
        next(older)
        for rule in reversed(before):
            found = next((unit for unit in older if rule in unit.rules), None)
            if found is None:
                return None
            chain.append(found)
        return chain

    @property
    def shown_as(self) -> str | None:
        """The attribute that shows what was tested."""
        return None if self.kind in TEMPORAL else "count" if self.kind in ("event_count", "value_count") else "value"


def _add_exactly(partials: list[float], number: float) -> None:
    """A running sum that is never rounded: partial sums that do not overlap (Shewchuk)."""
    kept = 0
    for other in partials:
        if abs(number) < abs(other):
            number, other = other, number
        high = number + other
        low = other - (high - number)
        if low:
            partials[kept] = low
            kept += 1
        number = high
    partials[kept:] = [number]


def _percentile(numbers: Sequence[float], percentile: float) -> float:
    """Interpolated linearly."""
    rank = percentile / 100 * (len(numbers) - 1)
    low = int(rank)
    if low + 1 >= len(numbers):
        return float(numbers[-1])
    below, above = float(numbers[low]), float(numbers[low + 1])
    return below + (rank - low) * (above - below)
