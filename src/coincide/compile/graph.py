"""Who feeds whom: cycles, and the stage of each detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coincide.detection.base import Detector
from coincide.errors import Diagnostic, RuleError

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


READING_LANGUAGES = frozenset({"matchrecognize"})
"""Whose definitions name what they read, not who reads them: a cycle is told that way."""


def check_cycles(detectors: Sequence[Detector], edges: Feeds) -> None:
    """No detector may consume, directly or through others, what it makes; but cycles of situations alone are allowed."""
    for number, detector in enumerate(detectors):
        if detector.language in CYCLIC_LANGUAGES:
            continue
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
    reads = first.language in READING_LANGUAGES
    names = ", ".join(f"'{d.name}'" for d in (reversed(others) if reads else others))
    through = f", through {names}" if names else ""
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


def components(edges: Feeds) -> list[list[int]]:
    """Strongly connected components, each after all that feed it (Tarjan 1972, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    found: list[list[int]] = []
    for root in edges:
        work = [(root, iter(edges[root]))] if root not in index else []
        while work:
            node, readers = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                path.append(node)
                on_path.add(node)
            following = next((r for r in readers if r not in index or r in on_path), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = path.index(node)
                    found.append(sorted(path[cut:]))
                    on_path.difference_update(path[cut:])
                    del path[cut:]
            elif following in on_path:
                low[node] = min(low[node], index[following])
            else:
                work.append((following, iter(edges[following])))
    return found[::-1]
