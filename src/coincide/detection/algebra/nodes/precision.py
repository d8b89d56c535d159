"""Precision: deterministic thinning of what a reference sees (ECCO-30)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from zlib import crc32

from coincide.detection.algebra.occurrence import Occurrence
from coincide.lang.ecco.definition import Policy
from coincide.model.stamp import MILLISECOND

Counters = dict[str, int]
"""By event type and source."""

PERCENT = {"nodes": {"high": 80.0, "default": 20.0, "low": 5.0}, "data": {"high": 100.0, "default": 70.0, "low": 50.0}}
INTERVALS = {"high": 1_000.0, "default": 10_000.0, "low": 60_000.0}

Keeps = Callable[[Occurrence, Counters], bool]


@dataclass(frozen=True, eq=False)
class Thinning:
    """Several aspects one after another, each counting what the former kept."""

    aspects: tuple[Keeps, ...] = ()
    stateful: bool = False

    def fresh(self) -> list[Counters]:
        return [{} for _ in self.aspects]

    def keeps(self, event: Occurrence, counters: list[Counters]) -> bool:
        return all(aspect(event, own) for aspect, own in zip(self.aspects, counters, strict=True))


def thinning(policies: Iterable[Policy]) -> Thinning:
    """`report` is a hint to the runtime on when to hand detections over: it keeps everything."""
    given = [policy for policy in policies if policy.aspect != "report"]
    return Thinning(tuple(_ASPECTS[p.aspect or ""](p) for p in given), any(p.aspect != "nodes" for p in given))


def _nodes(policy: Policy) -> Keeps:
    percent = _percent(policy)
    return lambda event, _: crc32((event.source or "").encode()) % 100 < percent


def _data(policy: Policy) -> Keeps:
    ratio = Fraction(repr(_percent(policy))) / 100

    def keeps(event: Occurrence, counters: Counters) -> bool:
        k = counters[_counter(event)] = counters.get(_counter(event), 0) + 1
        return -(-k * ratio // 1) > -(-(k - 1) * ratio // 1)

    return keeps


def _interval(policy: Policy) -> Keeps:
    length = policy.interval if policy.interval is not None else INTERVALS[policy.level or "default"]
    microseconds = round(length * MILLISECOND)

    def keeps(event: Occurrence, counters: Counters) -> bool:
        slot, last = event.hi // microseconds, counters.get(_counter(event))
        if last is not None and slot <= last:
            return False
        counters[_counter(event)] = slot
        return True

    return keeps


def _percent(policy: Policy) -> float:
    if policy.percent is not None:
        return policy.percent
    return PERCENT[policy.aspect or ""].get(policy.level or "default", 100.0)


def _counter(event: Occurrence) -> str:
    return f"{event.type}\n{event.source or ''}"


_ASPECTS: dict[str, Callable[[Policy], Keeps]] = {"nodes": _nodes, "data": _data, "interval": _interval}
