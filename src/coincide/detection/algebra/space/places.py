"""Spatial restriction `E @ S`: tests of a spacestamp or a source (ECCO-20, ECCO-41)."""

from __future__ import annotations

from collections.abc import Callable
from math import hypot

from coincide.detection.algebra.occurrence import Occurrence
from coincide.lang.ecco.definition import Place
from coincide.model.area import Boxes
from coincide.model.space import great_circle, within_box, within_radius

Accept = Callable[[Occurrence], bool]


def place_test(place: Place) -> Accept:
    """An event without the field that is asked for fails."""
    return _TESTS[place.kind](place)


def _zone(place: Place) -> Accept:
    """The stamp names the zone, or its point lies in it."""
    names = frozenset(place.names)
    polygons = [polygon for area in place.areas for polygon in area.polygons]
    boxes = Boxes()
    for number, polygon in enumerate(polygons):
        boxes.add(polygon.box, number)

    def accept(event: Occurrence) -> bool:
        space = event.space
        if space is None or space.zone in names:
            return space is not None
        point = space.position if polygons else None
        return point is not None and any(polygons[number].contains(*point) for number in boxes.at(*point))

    return accept


def _group(place: Place) -> Accept:
    names = frozenset(place.names)
    return lambda event: event.source in names


def _box(place: Place) -> Accept:
    if len(place.numbers) == 4:
        return lambda event: within_box(event.space, *place.numbers) is True
    x0, y0, z0, x1, y1, z1 = place.numbers

    def accept(event: Occurrence) -> bool:
        z = event.space.z if event.space else None
        return z is not None and z0 <= z <= z1 and within_box(event.space, x0, y0, x1, y1) is True

    return accept


def _circle(place: Place) -> Accept:
    return lambda event: within_radius(event.space, *place.numbers) is True


def _sphere(place: Place) -> Accept:
    x, y, z, radius = place.numbers

    def accept(event: Occurrence) -> bool:
        space = event.space
        point = space.point if space else None
        if space is None or point is None or space.z is None:
            return False
        across = great_circle(*point, x, y) if space.geographic else hypot(point[0] - x, point[1] - y)
        up = space.z - z
        return across * across + up * up <= radius * radius  # a power that is too large would be an error

    return accept


_TESTS: dict[str, Callable[[Place], Accept]] = {
    "zone": _zone,
    "group": _group,
    "box": _box,
    "circle": _circle,
    "sphere": _sphere,
}
