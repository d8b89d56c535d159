"""Which definitions an event can concern, by where it was: many definitions, each with a place of its own, need not all
look at every event. An index only leaves out definitions whose references would all refuse the event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor, sqrt

from coincide.detection.algebra.nodes import Reference
from coincide.detection.algebra.occurrence import Occurrence
from coincide.detection.algebra.program import Program
from coincide.lang.ecco.definition import Place

MANY_CELLS = 64
"""A place that covers more cells of the grid is looked at for every event."""

Box = tuple[float, float, float, float]


@dataclass
class Grid:
    """Boxes by the cells that they cover."""

    size: float
    cells: dict[tuple[int, int], list[tuple[Box, int]]] = field(default_factory=dict)
    large: list[tuple[Box, int]] = field(default_factory=list)

    def add(self, box: Box, number: int) -> None:
        columns, rows = (range(self._cell(box[n]), self._cell(box[n + 2]) + 1) for n in (0, 1))
        if len(columns) * len(rows) > MANY_CELLS:
            self.large.append((box, number))
            return
        for column in columns:
            for row in rows:
                self.cells.setdefault((column, row), []).append((box, number))

    def at(self, x: float, y: float) -> Iterator[int]:
        for box, number in (*self.large, *self.cells.get((self._cell(x), self._cell(y)), ())):
            if box[0] <= x <= box[2] and box[1] <= y <= box[3]:
                yield number

    def _cell(self, coordinate: float) -> int:
        return floor(coordinate / self.size)


@dataclass
class ZoneIndex:
    """The definitions that read one type."""

    everywhere: list[int] = field(default_factory=list)
    zones: dict[str, list[int]] = field(default_factory=dict)
    circles: list[int] = field(default_factory=list)  # all of them: of a geographic stamp, the radius is in metres
    grid: Grid | None = None

    def concerned(self, event: Occurrence) -> Iterator[int]:
        yield from self.everywhere
        space = event.space
        if space is None:
            return
        yield from self.zones.get(space.zone or "", ())
        if space.geographic:
            yield from self.circles
        if space.point is not None and self.grid is not None:
            yield from self.grid.at(*space.point)


def zone_index(name: str, programs: Sequence[tuple[int, Program]]) -> ZoneIndex:
    """The index of a type, over the definitions that read it."""
    index = ZoneIndex()
    boxes: list[tuple[Box, int]] = []
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
                boxes.append((_bounds(place), number))
    if boxes:
        index.grid = _grid(boxes)
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


def _grid(boxes: Iterable[tuple[Box, int]]) -> Grid:
    """Cells of about the size of the boxes."""
    given = list(boxes)
    areas = sorted(max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1]) for box, _ in given)
    grid = Grid(max(sqrt(areas[len(areas) // 2]), 1e-9))
    for box, number in given:
        grid.add(box, number)
    return grid
