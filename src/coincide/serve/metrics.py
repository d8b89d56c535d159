"""Counts of a service, as Prometheus reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds."""


class Histogram:
    """How often a value was up to each bound."""

    def __init__(self, bounds: tuple[float, ...] = BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


class Metrics:
    """Written by the thread of the run, read by others: single counters that are a moment old do no harm."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.detections: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.latency = Histogram()

    def lines(self, gauges: Mapping[str, tuple[str, float]], counters: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        """With what others know, by name, with its meaning."""
        yield from _counted("coincide_events_total", "Events read, by source.", "source", self.events.items())
        yield from _counted("coincide_detections_total", "Detections made, by rule.", "rule", self.detections.items())
        yield from _head("coincide_requests_total", "counter", "Requests answered, by method and status.")
        for (method, status), count in sorted(self.requests.items()):
            yield f'coincide_requests_total{{method="{_text(method)}",status="{status}"}} {count}'
        for name, (meaning, value) in counters.items():
            yield from (*_head(name, "counter", meaning), f"{name} {value:g}")
        for name, (meaning, value) in gauges.items():
            yield from (*_head(name, "gauge", meaning), f"{name} {value:.15g}")
        yield from self._latencies("coincide_latency_seconds", "From the coming of an event to the writing of its detection.")

    def _latencies(self, name: str, meaning: str) -> Iterator[str]:
        yield from _head(name, "histogram", meaning)
        total = 0
        for bound, count in zip((*self.latency.bounds, float("inf")), self.latency.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{"+Inf" if bound == float("inf") else f"{bound:g}"}"}} {total}'
        yield f"{name}_sum {self.latency.sum:.6f}"
        yield f"{name}_count {total}"


def _head(name: str, kind: str, meaning: str) -> Iterable[str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"


def _counted(name: str, meaning: str, label: str, counts: Iterable[tuple[str, int]]) -> Iterator[str]:
    yield from _head(name, "counter", meaning)
    for value, count in sorted(counts):
        yield f'{name}{{{label}="{_text(value)}"}} {count}'


def _text(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
