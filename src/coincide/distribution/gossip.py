"""The Resource Collection Protocol (distribution-cordies.md, section 5): what nodes tell travels as far as it is of use."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, pstdev

from coincide.distribution.network import Report

LEAST_VALUE = 0.001
LEAST_BENEFIT = 0.01
REMEMBERED = 8
"""Values of a resource by which its volatility is judged."""


@dataclass(frozen=True)
class Benefit:
    """Of a message: by resource, and in all, which is the probability with which it is forwarded."""

    node: str
    benefit: dict[str, float]
    overall: float


@dataclass
class View:
    """What a node knows of others, and what it has seen so far."""

    better: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    resources: dict[str, dict[str, float]] = field(default_factory=dict)
    _best: dict[str, float] = field(default_factory=dict)
    _history: dict[tuple[str, str], deque[float]] = field(default_factory=dict)

    def take(self, report: Report) -> Benefit:
        qualities: dict[str, float] = {}
        benefits: dict[str, float] = {}
        for name, value in report.resources.items():
            qualities[name], benefits[name] = self._rated(report.node, name, max(LEAST_VALUE, value))
        self.resources[report.node] = dict(report.resources)
        return Benefit(report.node, benefits, self._overall(qualities, benefits))

    def _rated(self, node: str, name: str, value: float) -> tuple[float, float]:
        """Quality against the best seen so far, and what volatility leaves of it."""
        low = self.better.get(name, "high") == "low"
        best = self._best[name] = (min if low else max)(self._best.get(name, value), value)
        history = self._history.setdefault((node, name), deque(maxlen=REMEMBERED))
        history.append(value)
        quality = best / value if low else value / best
        return quality, quality / (1 + pstdev(history) / fmean(history))

    def _overall(self, qualities: Mapping[str, float], benefits: Mapping[str, float]) -> float:
        weights = {name: self.weights.get(name, 1.0) for name in benefits}
        total = sum(weights.values())
        if not total:
            return LEAST_BENEFIT
        balance = min(qualities.values()) / max(qualities.values())
        return max(LEAST_BENEFIT, balance * sum(weights[name] * value for name, value in benefits.items()) / total)


def collect(messages: Iterable[Report], better: Mapping[str, str], weights: Mapping[str, float]) -> tuple[list[Benefit], View]:
    view = View(better, weights)
    return [view.take(report) for report in messages], view
