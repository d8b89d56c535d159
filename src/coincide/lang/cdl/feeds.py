"""Which messages descriptions read, and circles of them (CDL-26)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.detection.base import Inputs
from coincide.lang.cdl.definition import Description, Source, TimeEvent
from coincide.lang.cdl.shape import fail


def inputs_of(cd: Description) -> Inputs:
    sources = [s for s in cd.sources if not isinstance(s, TimeEvent)]
    external = frozenset(s.message_class for s in sources if s.access != "internal")
    return Inputs(None if "*" in external else external, frozenset(_detections(sources)))


def _detections(sources: Sequence[Source]) -> Iterator[str]:
    """`*` matches external messages only."""
    return (s.message_class for s in sources if s.access != "external" and s.message_class != "*")


def check_circles(descriptions: Sequence[Description]) -> None:
    reads = {cd.id: inputs_of(cd).detections for cd in descriptions}
    makes = {cd.id: {event.message_class for event in cd.events} for cd in descriptions}
    feeds = {a.id: [b.id for b in descriptions if makes[a.id] & reads[b.id]] for a in descriptions}
    for cd in descriptions:
        way = _way_back(cd.id, feeds)
        if way is not None:
            circle = " -> ".join([cd.id, *way, cd.id])
            fail(cd.span, f"correlation descriptions feed each other in a circle: {circle}")


def _way_back(start: str, feeds: dict[str, list[str]]) -> list[str] | None:
    ways: dict[str, list[str]] = {start: []}
    queue = [start]
    for name in queue:
        for reader in feeds[name]:
            if reader == start:
                return ways[name]
            if reader not in ways:
                ways[reader] = [*ways[name], reader]
                queue.append(reader)
    return None
