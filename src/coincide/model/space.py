"""Spacestamps: where an event occurred."""

from __future__ import annotations

from math import asin, cos, hypot, radians, sin, sqrt

import msgspec

from coincide.model.bounds import Finite

EARTH_RADIUS = 6371008.8  # metres, conventions.md


class Space(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """A planar point (`x`, `y`) or a geographic one (`lat`, `lon`), with an optional height and zone."""

    x: Finite | None = None
    y: Finite | None = None
    lat: Finite | None = None
    lon: Finite | None = None
    z: Finite | None = None
    zone: str | None = None

    @property
    def point(self) -> tuple[float, float] | None:
        """(x, y), or (lat, lon) of a geographic stamp."""
        if self.x is not None and self.y is not None:
            return self.x, self.y
        if self.lat is not None and self.lon is not None:
            return self.lat, self.lon
        return None

    @property
    def position(self) -> tuple[float, float] | None:
        """As GeoJSON has it: (x, y), or (lon, lat) of a geographic stamp."""
        point = self.point
        return point[::-1] if point is not None and self.geographic else point

    @property
    def geographic(self) -> bool:
        return self.x is None and self.lat is not None


def great_circle(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Haversine distance in metres."""
    p, q = radians(lat1), radians(lat2)
    h = sin((q - p) / 2) ** 2 + cos(p) * cos(q) * sin(radians(lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS * asin(sqrt(min(1.0, h)))


def separation(a: Space | None, b: Space | None) -> float | None:
    """Distance of two stamps of the same kind; None where there is none."""
    p, q = (a.point if a else None), (b.point if b else None)
    if a is None or b is None or p is None or q is None or a.geographic != b.geographic:
        return None
    if a.geographic:
        return great_circle(*p, *q)
    return hypot(p[0] - q[0], p[1] - q[1])


def within_box(space: Space | None, x0: float, y0: float, x1: float, y1: float) -> bool | None:
    point = space.point if space else None
    return None if point is None else x0 <= point[0] <= x1 and y0 <= point[1] <= y1


def within_radius(space: Space | None, x: float, y: float, radius: float) -> bool | None:
    point = space.point if space else None
    if space is None or point is None:
        return None
    distance = great_circle(*point, x, y) if space.geographic else hypot(point[0] - x, point[1] - y)
    return distance <= radius
