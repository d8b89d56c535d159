"""Zones from a GeoJSON file (RFC 7946): the polygons of its features, by a property."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coincide.access import permitted_file
from coincide.attachments import TEXT, attachment
from coincide.errors import Diagnostic, RuleError
from coincide.lang.ecco.definition import ZoneFile
from coincide.model.area import Area, Point, Polygon, Ring
from coincide.source import Span

FARTHEST = 1e15
"""Of a coordinate, whatever its unit: beyond it, numbers are too coarse to say what is inside."""


class NoZones(Exception):
    """What is wrong with a file."""


def zones_of(file: ZoneFile, span: Span) -> dict[str, Area]:
    """By name. RuleError at the statement that names the file, whose path is relative to the rules."""
    folder = Path(span.file).parent
    try:
        text = attachment((TEXT, str(folder / file.path)), lambda: permitted_file(folder, file.path).read_text(encoding="utf-8"))
        return _zones(json.loads(text), file.property)
    except json.JSONDecodeError as error:
        problem = f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        problem = f"it is not a text file (byte {error.start + 1} is not UTF-8)"
    except OSError as error:
        raise RuleError(Diagnostic(f"cannot read '{file.path}'", span, hint=error.strerror)) from error
    except NoZones as error:
        problem = str(error)
    raise RuleError(Diagnostic(f"cannot take zones from '{file.path}': {problem}", span))


def _zones(data: Any, key: str) -> dict[str, Area]:
    found: dict[str, Area] = {}
    for number, feature in enumerate(_features(data), 1):
        name = _name(feature, key, number)
        try:
            if name in found:
                raise NoZones("there is another one of this name")
            found[name] = Area(name, tuple(_polygons(feature.get("geometry"))))
        except NoZones as error:
            raise NoZones(f"feature {number} ('{name}'): {error}") from None
    return found


def _features(data: Any) -> list[Any]:
    kind = data.get("type") if isinstance(data, dict) else None
    features = data.get("features") if kind == "FeatureCollection" else [data] if kind == "Feature" else None
    if not isinstance(features, list):
        raise NoZones("it holds no FeatureCollection")
    return features


def _name(feature: Any, key: str, number: int) -> str:
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        raise NoZones(f"feature {number} is not a Feature")
    given = feature.get("properties")
    properties = given if isinstance(given, dict) else {}
    if not isinstance(properties.get(key), (str, int)):
        there = ", ".join(properties) or "none"
        raise NoZones(f"feature {number} has no text as property '{key}' (its properties: {there})")
    return str(properties[key])


def _polygons(geometry: Any) -> Iterator[Polygon]:
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise NoZones(f"its geometry is {kind or 'null'}, not Polygon or MultiPolygon")
    coordinates = geometry.get("coordinates")
    polygons = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(polygons, list) or not polygons or not all(isinstance(rings, list) and rings for rings in polygons):
        raise NoZones("it has no coordinates")
    for rings in polygons:
        yield Polygon(tuple(map(_ring, rings)))


def _ring(points: Any) -> Ring:
    ring = tuple(map(_point, points if isinstance(points, list) else ()))
    if len(ring) < 4 or ring[0] != ring[-1]:
        raise NoZones("a ring has four or more positions, and ends where it begins")
    return ring


def _point(position: Any) -> Point:
    """A height is left out."""
    numbers = position[:2] if isinstance(position, list) else []
    if len(numbers) != 2 or not all(type(n) in (int, float) and abs(n) < FARTHEST for n in numbers):
        raise NoZones("a position is two numbers below 1e15")
    return float(numbers[0]), float(numbers[1])
