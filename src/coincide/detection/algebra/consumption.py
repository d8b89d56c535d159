"""What ECCO's consumption policies do, an object each: which of the partners that fit are taken, which of them are used up, and
which runs an iteration makes (ECCO-27, ECCO-28). Their names and warnings stand in `lang/ecco/consumption.py`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Partner = TypeVar("Partner")
LATEST, OLDEST = "latest", "oldest"


@dataclass(frozen=True)
class Choice(Generic[Partner]):
    """`groups`: each makes one occurrence with the arriving one. `used`: these leave the store."""

    groups: Sequence[Sequence[Partner]] = ()
    used: Sequence[Partner] = ()


@dataclass(frozen=True)
class Runs:
    """Of an iteration. `sizes`: those worth trying, best first, given how much the last element counts, the last two and so on;
    `ends`: are its elements used up when so much counts? `reach`: no run has more of the last elements; None: it may."""

    sizes: Callable[[Sequence[int], int, int | None], Sequence[int]]
    ends: Callable[[int, int, int | None], bool] = lambda count, least, most: False
    reach: Callable[[int, int | None], int | None] = lambda least, most: None


@dataclass(frozen=True)
class Consumption:
    """`choose`: of at least one partner that fits, in ascending order."""

    choose: Callable[[Sequence[Any]], Choice[Any]]
    runs: Runs
    single: str = ""  # which one alone is taken
    consumes: bool = False
    kernel: str = ""  # its name in shape/shapes.py
    without_kernel: str = ""  # why it has none


# Partners


def _each(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([[partner] for partner in fitting])


def _latest(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting[-1:]])


def _oldest_once(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting[:1]], fitting[:1])


def _each_once(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([[partner] for partner in fitting], fitting)


def _all_once(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting], fitting)


# Runs


def _longest(counts: Sequence[int], least: int, most: int | None) -> Sequence[int]:
    longest = bisect_right(counts, counts[-1] if most is None else most)
    return range(longest, bisect_left(counts, least), -1)


def _shortest(counts: Sequence[int], least: int, most: int | None) -> Sequence[int]:
    shortest = bisect_left(counts, least) + 1
    return range(shortest, shortest + (counts[-1] >= least))


def _whole(counts: Sequence[int], least: int, most: int | None) -> Sequence[int]:
    return (len(counts),) if counts[-1] >= least else ()


LONGEST_RUN = Runs(_longest, reach=lambda least, most: most)
SHORTEST_RUN = Runs(_shortest, reach=lambda least, most: least)
RUN_ONCE = Runs(_whole, ends=lambda count, least, most: count >= least)
RUN_UP_TO_MOST = Runs(_whole, ends=lambda count, least, most: most is not None and count >= most)

CONSUMPTIONS: dict[str, Consumption] = {
    "unrestricted": Consumption(_each, LONGEST_RUN, kernel="UNRESTRICTED"),
    "recent": Consumption(_latest, SHORTEST_RUN, LATEST, kernel="RECENT"),
    "chronicle": Consumption(_oldest_once, RUN_ONCE, OLDEST, consumes=True, kernel="CHRONICLE"),
    "continuous": Consumption(_each_once, SHORTEST_RUN, consumes=True, kernel="CONTINUOUS"),
    "cumulative": Consumption(_all_once, RUN_UP_TO_MOST, consumes=True, without_kernel="which takes all partners at once"),
}
"""By the names of policies."""


def choose(policy: str, fitting: Sequence[Partner]) -> Choice[Partner]:
    return CONSUMPTIONS[policy].choose(fitting) if fitting else Choice()
