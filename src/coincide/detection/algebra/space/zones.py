"""Which definitions an event can concern, by where it was: many definitions, each with a place of its own, need not all
look at every event. An index only leaves out definitions whose references would all refuse the event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coincide.detection.algebra.nodes.base import Reference
from coincide.detection.algebra.occurrence import Occurrence
from coincide.detection.algebra.program import Program
from coincide.lang.ecco.definition import Place
from coincide.model.area import Box, Boxes


@dataclass
class ZoneIndex:
    """The definitions that read one type."""

    everywhere: list[int] = field(default_factory=list)
    zones: dict[str, list[int]] = field(default_factory=dict)
    circles: list[int] = field(default_factory=list)  # all of them: of a geographic stamp, the radius is in metres
    boxes: Boxes = field(default_factory=Boxes)
    polygons: Boxes = field(default_factory=Boxes)  # around those of zones, which are in another order of coordinates

    def concerned(self, event: Occurrence) -> Iterator[int]:
        yield from self.everywhere
        space = event.space
        if space is None:
            return
        yield from self.zones.get(space.zone or "", ())
        if space.geographic:
            yield from self.circles
        point, position = space.point, space.position
        if point is not None and position is not None:
            yield from self.boxes.at(*point)
            yield from self.polygons.at(*position)


def zone_index(name: str, programs: Sequence[tuple[int, Program]]) -> ZoneIndex:
    """The index of a type, over the definitions that read it."""
    index = ZoneIndex()
    for number, program in programs:
        places = _places(name, program)
        if places is None:
            index.everywhere.append(number)
            continue
        for place in places:
            for zone in place.names:
                index.zones.setdefault(zone, []).append(number)
            if place.kind in ("circle", "sphere"):
                index.circles.append(number)
            if place.numbers:
                index.boxes.add(_bounds(place), number)
            for polygon in (polygon for area in place.areas for polygon in area.polygons):
                index.polygons.add(polygon.box, number)
    return index


def _places(name: str, program: Program) -> list[Place] | None:
    """One place for each reference to the type; None if some reference takes events from everywhere, or if the event must
    be seen anyhow: by keys, which it starts to be observed, and by what counts events before it looks where they were."""
    if program.keys or program.reads_any:
        return None
    found: list[Place] = []
    for node in program.nodes:
        if isinstance(node, Reference) and node.kind == name:
            indexed = [place for place in node.places if place.kind != "group"]
            if node.thinning.stateful or not indexed:
                return None
            found.append(indexed[0])
    return found


def _bounds(place: Place) -> Box:
    """Of a circle or sphere, the square around it on the plane."""
    if place.kind == "box":
        half = len(place.numbers) // 2
        return place.numbers[0], place.numbers[1], place.numbers[half], place.numbers[half + 1]
    x, y, radius = place.numbers[0], place.numbers[1], abs(place.numbers[-1])
    return x - radius, y - radius, x + radius, y + radius
