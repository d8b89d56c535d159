"""Who feeds whom: cycles, and the stage of each detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coincide.detection.base import Detector
from coincide.errors import Diagnostic, RuleError
from coincide.graphs import components, shortest_way_back

Feeds = Mapping[int, Sequence[int]]
"""Number of a detector → numbers of the detectors that read its detections."""


def feeds(detectors: Sequence[Detector]) -> Feeds:
    readers: dict[str, list[int]] = {}
    for number, detector in enumerate(detectors):
        for kind in detector.inputs.detections | detector.awaited:
            readers.setdefault(kind, []).append(number)
    return {
        number: sorted({reader for kind in detector.outputs for reader in readers.get(kind, ())})
        for number, detector in enumerate(detectors)
    }


CYCLIC_LANGUAGES = frozenset({"amit"})
"""Whose detectors may feed one another in cycles: conventions.md, "Order"."""


READING_LANGUAGES = frozenset({"matchrecognize", "eql"})
"""Whose definitions name what they read, not who reads them: a cycle is told that way."""


def check_cycles(detectors: Sequence[Detector], edges: Feeds) -> None:
    """No detector may consume, directly or through others, what it makes; but cycles of situations alone are allowed."""
    for number, detector in enumerate(detectors):
        if detector.language in CYCLIC_LANGUAGES:
            continue
        way = shortest_way_back(number, edges)
        if way is not None:
            raise RuleError(_cycle(detector, [detectors[n] for n in way]))


def _cycle(first: Detector, others: Sequence[Detector]) -> Diagnostic:
    reads = first.language in READING_LANGUAGES
    names = ", ".join(f"'{d.name}'" for d in (reversed(others) if reads else others))
    through = f", through {names}" if names else ""
    if first.language == "eql":
        return Diagnostic(f"{first.kind} '{first.name}' consumes what it detects{through}", first.span)
    if reads:
        return Diagnostic(f"'{first.name}' reads what it makes{through}", first.span)
    return Diagnostic(f"{first.kind} '{first.name}' consumes what it pushes{through}", first.span)


def stages(detectors: Sequence[Detector], edges: Feeds) -> list[int]:
    """The length of the longest way that leads to each detector: those of one stage do not feed one another, unless they
    lie on one cycle."""
    stage = [0] * len(detectors)
    for members in components(edges):
        level = max(stage[n] for n in members)
        for number in members:
            stage[number] = level
        for reader in (reader for n in members for reader in edges[n] if reader not in members):
            stage[reader] = max(stage[reader], level + 1)
    return stage
