"""Areas of the plane, bounded by polygons, and boxes found by a point in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import ceil, inf, log2

Point = tuple[float, float]
Ring = tuple[Point, ...]
"""Closed: the last point is the first."""
Box = tuple[float, float, float, float]
"""Least x and y, greatest x and y."""
Edge = tuple[float, float, float, float]

EDGES_A_BAND, MOST_BANDS = 4, 256
LARGEST = 2.0**1023
SMALLEST = 1e-9


@dataclass(frozen=True)
class Polygon:
    """The first ring is the outer one, the others are holes. Points on a ring are inside."""

    rings: tuple[Ring, ...]

    @cached_property
    def box(self) -> Box:
        xs, ys = zip(*self.rings[0], strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @cached_property
    def _height(self) -> float:
        """Of a band: edges are kept by the bands that they cross, so that a test looks at few of them."""
        count = min(max(sum(map(len, self.rings)) // EDGES_A_BAND, 1), MOST_BANDS)
        return max((self.box[3] - self.box[1]) / count, SMALLEST)

    @cached_property
    def _bands(self) -> dict[int, list[Edge]]:
        bands: dict[int, list[Edge]] = {}
        for ring in self.rings:
            for (x0, y0), (x1, y1) in pairwise(ring):
                for band in range(self._band(min(y0, y1)), self._band(max(y0, y1)) + 1):
                    bands.setdefault(band, []).append((x0, y0, x1, y1))
        return bands

    def _band(self, y: float) -> int:
        return int((y - self.box[1]) // self._height)

    def contains(self, x: float, y: float) -> bool:
        """By the number of edges that a ray to the right crosses."""
        left, bottom, right, top = self.box
        if not (left <= x <= right and bottom <= y <= top):
            return False
        inside = False
        for x0, y0, x1, y1 in self._bands.get(self._band(y), ()):
            side = (x1 - x0) * (y - y0) - (x - x0) * (y1 - y0)
            if side == 0 and min(x0, x1) <= x <= max(x0, x1) and min(y0, y1) <= y <= max(y0, y1):
                return True
            if (y0 > y) != (y1 > y) and (side > 0) == (y0 > y1):
                inside = not inside
        return inside


@dataclass(frozen=True)
class Area:
    """A name for one or more polygons."""

    name: str
    polygons: tuple[Polygon, ...]

    def contains(self, x: float, y: float) -> bool:
        return any(polygon.contains(x, y) for polygon in self.polygons)


@dataclass
class Boxes:
    """Numbers by the boxes that they have, each in the cells of a grid that is no finer than the box: in four at most. A
    point asks one cell of each grid that there is, and there are few: sizes of cells are powers of two."""

    grids: dict[float, dict[Point, list[tuple[Box, int]]]] = field(default_factory=dict)

    def add(self, box: Box, number: int) -> None:
        x0, y0, x1, y1 = box
        extent = max(x1 - x0, y1 - y0, SMALLEST)
        size = 2.0 ** ceil(log2(extent)) if extent <= LARGEST else inf  # four cells, for all numbers
        cells = self.grids.setdefault(size, {})
        for cell in {(x // size, y // size) for x in (x0, x1) for y in (y0, y1)}:
            cells.setdefault(cell, []).append((box, number))

    def at(self, x: float, y: float) -> Iterator[int]:
        for size, cells in self.grids.items():
            for (x0, y0, x1, y1), number in cells.get((x // size, y // size), ()):
                if x0 <= x <= x1 and y0 <= y <= y1:
                    yield number
