"""Who feeds whom: cycles, and the stage of each detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coincide.detect.base import Detector
from coincide.errors import Diagnostic, RuleError

Feeds = Mapping[int, Sequence[int]]
"""Number of a detector → numbers of the detectors that read its detections."""


def feeds(detectors: Sequence[Detector]) -> Feeds:
    readers: dict[str, list[int]] = {}
    for number, detector in enumerate(detectors):
        for kind in detector.inputs.detections:
            readers.setdefault(kind, []).append(number)
    return {
        number: sorted({reader for kind in detector.outputs for reader in readers.get(kind, ())})
        for number, detector in enumerate(detectors)
    }


def check_cycles(detectors: Sequence[Detector], edges: Feeds) -> None:
    """No detector may consume, directly or through others, what it makes."""
    for number, detector in enumerate(detectors):
        way = shortest_way_back(number, edges)
        if way is not None:
            raise RuleError(_cycle(detector, [detectors[n] for n in way]))


def shortest_way_back(start: int, edges: Feeds) -> list[int] | None:
    """The detectors on the way from `start` back to it; [] if it feeds itself; None if there is no way."""
    ways: dict[int, list[int]] = {start: []}
    queue = [start]
    for number in queue:
        for reader in edges[number]:
            if reader == start:
                return ways[number]
            if reader not in ways:
                ways[reader] = [*ways[number], reader]
                queue.append(reader)
    return None


def _cycle(first: Detector, others: Sequence[Detector]) -> Diagnostic:
    names = ", ".join(f"'{d.name}'" for d in others)
    through = f", through {names}" if names else ""
    return Diagnostic(f"{first.kind} '{first.name}' consumes what it pushes{through}", first.span)


def stages(detectors: Sequence[Detector], edges: Feeds) -> list[int]:
    """The length of the longest way that leads to each detector: those of one stage do not feed one another."""
    stage = [0] * len(detectors)
    waiting = [0] * len(detectors)
    for readers in edges.values():
        for reader in readers:
            waiting[reader] += 1
    ready = [n for n, count in enumerate(waiting) if count == 0]
    for number in ready:
        for reader in edges[number]:
            stage[reader] = max(stage[reader], stage[number] + 1)
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    return stage
