"""What a correlation keeps of a group: units within the time span, and what is tested of them (section 6)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite

from coincide.detection.selection.units import Part, Stretch, Unit
from coincide.lang.sigma.definition import NUMERIC, TEMPORAL, CorrelationRule, within
from coincide.model.numbers import is_number

Row = tuple[int, Unit]
"""A unit as it is written, with a number that tells it from others of its group."""


@dataclass(slots=True)
class Group:
    """Common to all: `number` is its own among groups, `fired` when it did so last, `last` the time of its latest unit."""

    number: int = -1
    fired: int | None = None
    last: int = 0

    def add(self, unit: Unit, oldest: int) -> None:
        """The unit enters; those that end before `oldest` leave."""
        raise NotImplementedError

    def tested(self) -> float | None:
        """The number that the condition is about; None: it does not hold, whatever the condition."""
        raise NotImplementedError

    def used(self) -> Stretch:
        """The units that a detection is made of (section 7)."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Units that are kept."""
        raise NotImplementedError

    # As rows: all units that there are, or those that have not been told.

    @property
    def first(self) -> int:
        """The number of the first that is kept; that of the last one is told by how many there are."""
        return 0

    def rows(self, since_last: bool) -> Sequence[Row]:
        raise NotImplementedError

    def mark_written(self) -> None:
        """All units that there are have been."""

    def put(self, rows: Sequence[Row]) -> None:
        """What `rows` has given for a group, into one that is new."""
        raise NotImplementedError

    def count_anew(self) -> None:
        """Units are numbered from 0."""


# Counting: all units of the window count.


@dataclass(slots=True)
class Events(Group):
    """Their number. The list only grows, so that what refers to a part of it stays right, until those that have left are the
    most of it: then the others go on in another list."""

    units: list[Unit] = field(default_factory=list)
    start: int = 0
    dropped: int = 0  # in front of the list
    written: int = 0

    def add(self, unit: Unit, oldest: int) -> None:
        self.last = unit.hi
        self.units.append(unit)
        self.enter(unit)
        while self.units[self.start].hi < oldest:
            self.leave(self.units[self.start])
            self.start += 1
        if 2 * self.start > len(self.units):
            self.units = self.units[self.start :]
            self.dropped += self.start
            self.start = 0

    def enter(self, unit: Unit) -> None:
        """It is counted from now on."""

    def leave(self, unit: Unit) -> None:
        """It is counted no more."""

    def tested(self) -> float | None:
        return len(self)

    def used(self) -> Stretch:
        return Stretch(self.units, self.start, len(self.units))

    def __len__(self) -> int:
        return len(self.units) - self.start

    @property
    def first(self) -> int:
        return self.dropped + self.start

    def rows(self, since_last: bool) -> Sequence[Row]:
        start = max(self.start, self.written - self.dropped if since_last else 0)
        return list(enumerate(self.units[start:], self.dropped + start))

    def mark_written(self) -> None:
        self.written = self.dropped + len(self.units)

    def count_anew(self) -> None:
        self.dropped = self.written = -self.start

    def put(self, rows: Sequence[Row]) -> None:
        self.dropped = rows[0][0]
        self.units = [unit for _, unit in rows]
        for unit in self.units:
            self.enter(unit)
        self.mark_written()


@dataclass(slots=True)
class Different(Events):
    """The number of different values."""

    counts: Counter[tuple[Part, ...]] = field(default_factory=Counter)
    total: int = 0

    def enter(self, unit: Unit) -> None:
        self.counts.update(unit.values)
        self.total += len(unit.values)

    def leave(self, unit: Unit) -> None:
        self.total -= len(unit.values)
        for value in unit.values:
            self.counts[value] -= 1
            if not self.counts[value]:
                del self.counts[value]

    def tested(self) -> float | None:
        return len(self.counts)


@dataclass(slots=True)
class Share(Different):
    """How many of the values are those of the latest unit, in percent."""

    def tested(self) -> float | None:
        return 100 * sum(self.counts[value] for value in set(self.units[-1].values)) / self.total


SMALLEST = 1074
"""Every double is a multiple of two to the power of minus this."""


@dataclass(slots=True)
class Sum(Events):
    """Exact, however many have come and gone: a whole number of the smallest double's size, rounded when it is looked at."""

    total: int = 0
    count: int = 0

    def enter(self, unit: Unit) -> None:
        self.total += sum(map(_scaled, _numbers(unit)))
        self.count += len(unit.values)

    def leave(self, unit: Unit) -> None:
        self.total -= sum(map(_scaled, _numbers(unit)))
        self.count -= len(unit.values)

    def tested(self) -> float | None:
        return _rounded(self.total, 1)


@dataclass(slots=True)
class Average(Sum):
    def tested(self) -> float | None:
        total = _rounded(self.total, 1)
        return total / self.count if isfinite(total) else _rounded(self.total, self.count)


@dataclass(slots=True)
class Ranks(Events):
    """A percentile: values in order."""

    percentile: float = 50
    sorted: list[float] = field(default_factory=list)

    def enter(self, unit: Unit) -> None:
        for number in _numbers(unit):
            insort(self.sorted, number)

    def leave(self, unit: Unit) -> None:
        for number in _numbers(unit):
            del self.sorted[bisect_left(self.sorted, number)]

    def tested(self) -> float | None:
        return percentile_of(self.sorted, self.percentile)


def _numbers(unit: Unit) -> Iterable[float]:
    for ((_, number),) in unit.values:
        assert is_number(number)
        yield number


def _scaled(number: float) -> int:
    numerator, denominator = float(number).as_integer_ratio()
    return numerator << (SMALLEST + 1 - denominator.bit_length())


def _rounded(total: int, count: int) -> float:
    try:
        return total / (count << SMALLEST)
    except OverflowError:
        return inf if total > 0 else -inf


def percentile_of(numbers: Sequence[float], percentile: float) -> float:
    """Interpolated linearly."""
    rank = percentile / 100 * (len(numbers) - 1)
    low = int(rank)
    if low + 1 >= len(numbers):
        return float(numbers[-1])
    below, above, share = float(numbers[low]), float(numbers[low + 1]), rank - low
    distance = above - below
    return below + share * distance if isfinite(distance) else (1 - share) * below + share * above


# Temporal: of each rule, or of each place of one, the latest unit is all that counts.


@dataclass(slots=True)
class Latest(Group):
    """By rule."""

    latest: dict[int, Unit] = field(default_factory=dict)

    def add(self, unit: Unit, oldest: int) -> None:
        self.last = unit.hi
        self.latest.update(dict.fromkeys(unit.rules, unit))
        if any(other.hi < oldest for other in self.latest.values()):
            self.latest = {rule: other for rule, other in self.latest.items() if other.hi >= oldest}

    def tested(self) -> float | None:
        return len(self.latest)

    def used(self) -> Stretch:
        return Stretch(list(self.latest.values()), 0, len(self.latest))

    def __len__(self) -> int:
        return len(set(map(id, self.latest.values())))

    def rows(self, since_last: bool) -> Sequence[Row]:
        return sorted(self.latest.items())

    def put(self, rows: Sequence[Row]) -> None:
        self.latest = dict(rows)


@dataclass(slots=True)
class Chains(Group):
    """In order. Of each place but the last: its latest unit, behind the chain of the place before it as that was then. No other
    chain to it begins later: going back from a unit, the latest one before it is always the best."""

    places: tuple[int, ...] = ()
    chains: list[tuple[Unit, ...]] = field(default_factory=list)
    complete: tuple[Unit, ...] = ()  # at the latest unit

    def add(self, unit: Unit, oldest: int) -> None:
        self.last = unit.hi
        chains = [chain if chain and chain[0].hi >= oldest else () for chain in self.chains]
        before = [(), *chains]
        here = [
            (*chain, unit) if place in unit.rules and (chain or not n) else None
            for n, (place, chain) in enumerate(zip(self.places, before, strict=True))
        ]
        self.chains = [chain if longer is None else longer for chain, longer in zip(chains, here, strict=False)]
        self.complete = here[-1] or ()

    def tested(self) -> float | None:
        return len(self.places) if self.complete else None

    def used(self) -> Stretch:
        return Stretch(list(self.complete), 0, len(self.complete))

    def __len__(self) -> int:
        return len({id(unit) for chain in self.chains for unit in chain})

    def rows(self, since_last: bool) -> Sequence[Row]:
        """Numbered by chain, and by position in it."""
        return [(n * len(self.places) + m, unit) for n, chain in enumerate(self.chains) for m, unit in enumerate(chain)]

    def put(self, rows: Sequence[Row]) -> None:
        found: list[list[Unit]] = [[] for _ in self.chains]
        for number, unit in rows:
            found[number // len(self.places)].append(unit)
        self.chains = [tuple(chain) for chain in found]


# Which of these a rule is.


class Window:
    """How a correlation's groups begin, and what it tests."""

    def __init__(self, rule: CorrelationRule, places: Sequence[int]) -> None:
        self.timespan = rule.timespan
        self.places = tuple(places)
        self.temporal = rule.kind in TEMPORAL
        self.numeric = rule.kind in NUMERIC or (rule.kind == "value_percentile" and rule.percentile is not None)
        self.fresh: Callable[[], Group] = _kind_of_group(rule, self.places)
        self._bounds = rule.bounds or (("eq", len(places) if rule.kind == "temporal_ordered" else len(set(places))),)
        self.shown_as = None if self.temporal else "count" if rule.kind in ("event_count", "value_count") else "value"
        """The attribute that shows what was tested."""

    def holds(self, number: float | None) -> bool:
        return number is not None and within(self._bounds, number)


def _kind_of_group(rule: CorrelationRule, places: tuple[int, ...]) -> Callable[[], Group]:
    if rule.kind == "temporal_ordered":
        return lambda: Chains(places=places, chains=[()] * (len(places) - 1))
    if rule.kind == "value_percentile" and rule.percentile is not None:
        return partial(Ranks, percentile=rule.percentile)
    kinds: dict[str, type[Group]] = {
        "event_count": Events,
        "value_count": Different,
        "value_sum": Sum,
        "value_avg": Average,
        "value_median": Ranks,
        "value_percentile": Share,
        "temporal": Latest,
    }
    return kinds[rule.kind]
