"""Pictures of the rules: each in the way of its language, and the graph of all."""

from __future__ import annotations

from typing import Any

from coincide.compile.graph import feeds, stages
from coincide.detection.base import Detector
from coincide.draw.rules import drawing
from coincide.draw.svg import svg
from coincide.errors import CoincideError
from coincide.explanation import explanation, plan_outline
from coincide.rulebook import Rulebook


def picture_of(detector: Detector, automaton: bool) -> str:
    """As SVG whose nodes bear their names. Raises CoincideError where there is nothing to draw."""
    drawn = drawing(detector, automaton)
    if drawn is None:
        raise CoincideError(f"there are no drawings of {detector.language}")
    return svg([drawn], marked=True)


def graph_of(book: Rulebook) -> dict[str, Any]:
    """Detectors with their keys, tiers and stages, and who feeds whom."""
    edges = feeds(book.detectors)
    levels = stages(book.detectors, edges)
    plans = {name: plan for plan in book.compiled.plans for name in plan.definitions}
    nodes = []
    for number, (detector, level) in enumerate(zip(book.detectors, levels, strict=True)):
        plan = plans.get(detector.name)
        reasons = () if plan is None else plan.tier_reasons()
        read = detector.inputs.external
        nodes.append(
            {
                "number": number,
                "name": detector.name,
                "kind": detector.kind,
                "language": detector.language,
                "stage": level,
                "key": list(detector.partition) if detector.partition else None,
                "reads": None if read is None else sorted(read),
                "detections": sorted(detector.inputs.detections),
                "makes": list(detector.outputs),
                "tier": f"interpreter: {'; '.join(reasons)}" if reasons or plan is None else f"kernel ({plan.manner})",
                "plan": None if plan is None else plan.name,
            }
        )
    return {"nodes": nodes, "edges": [[n, reader] for n, readers in edges.items() for reader in readers]}


def plan_of(book: Rulebook, rule: str | None = None) -> str:
    """How they will be run, in words; or one of them, tests and all."""
    if rule is not None:
        return "\n".join(plan_outline(book, {rule}))
    return str.__str__(explanation(book))
