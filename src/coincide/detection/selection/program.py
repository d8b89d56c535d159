"""Rules of one plan: those that are detected, and those that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from coincide.detection.base import Detector
from coincide.detection.selection.correlating import Correlation, head_attributes
from coincide.lang.sigma.definition import HIDDEN_NAMES, TEMPORAL, CorrelationRule, DetectionRule
from coincide.lang.sigma.link import Linked
from coincide.model.event import Event, Value, caused, detection


@dataclass(frozen=True)
class Simple:
    """A detection rule."""

    name: str
    rule: DetectionRule
    order: int | None  # None: it makes no detections
    referred: bool  # does a correlation look at it?

    @cached_property
    def head(self) -> dict[str, Value]:
        return head_attributes(self.rule.head.id, self.rule.head.level)

    @cached_property
    def shown(self) -> tuple[tuple[str, str], ...]:
        return tuple((s.name, s.attribute) for s in self.rule.fields if s.name not in HIDDEN_NAMES)

    def detection(self, event: Event) -> Event:
        assert self.order is not None
        shown = ((name, event.attributes.get(attribute)) for name, attribute in self.shown)
        attributes: dict[str, Value] = {name: value for name, value in shown if value is not None}
        attributes.update(self.head)
        return detection(self.name, event.stamp, attributes, event.origin, caused(event.place, self.order, 0))


class Program:
    """The rules of detectors that are stepped together."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        orders = {d.name: d.order for d in detectors if d.outputs}
        tops: list[Linked] = [d.definition for d in detectors if d.outputs]
        items = {item.name: item for top in tops for item in top.together}
        correlations = [item for item in items.values() if isinstance(item.rule, CorrelationRule)]
        referred = {need.name for item in correlations for need in item.needs}
        wanted = {need.name for item in correlations if _is_temporal(item) for need in item.needs}
        self.simple = tuple(
            Simple(item.name, item.rule, orders.get(item.name), item.name in referred)
            for item in items.values()
            if isinstance(item.rule, DetectionRule)
        )
        self.digests = tuple(item.digest for item in correlations)
        self.correlations = tuple(Correlation(item, orders.get(item.name), item.name in wanted) for item in correlations)


def _is_temporal(item: Linked) -> bool:
    return isinstance(item.rule, CorrelationRule) and item.rule.kind in TEMPORAL
