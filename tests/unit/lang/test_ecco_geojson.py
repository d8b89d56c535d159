"""Zones from GeoJSON: `space from 'city.geojson' by name`."""

from __future__ import annotations

import json
import random
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.api import detect
from coincide.attachments import TEXT, giving
from coincide.detection.algebra import interpreter
from coincide.detection.algebra.space.zones import ZoneIndex
from coincide.engines.embedded import Engine
from coincide.errors import RuleError
from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.model.area import Boxes, Polygon
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]
HOLE = [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]


def feature(name: object, coordinates: Any, kind: str = "Polygon", key: str = "name") -> dict[str, Any]:
    return {"type": "Feature", "properties": {key: name}, "geometry": {"type": kind, "coordinates": coordinates}}


def moved(ring: list[list[float]], x: float) -> list[list[float]]:
    return [[px + x, py] for px, py in ring]


CITY = [
    feature("Old Town", [SQUARE, HOLE]),
    feature("islands", [[moved(SQUARE, 100)], [moved(SQUARE, 200), moved(HOLE, 200)]], "MultiPolygon"),
]


def write(folder: Path, features: Any, name: str = "city.geojson") -> None:
    data = {"type": "FeatureCollection", "features": features} if isinstance(features, list) else features
    (folder / name).write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")


def rules(folder: Path, text: str, statement: str = "space from 'city.geojson'") -> Rulebook:
    return load(SourceText(str(folder / "r.ecco"), f"{statement}\n{text}\n"))


def found(book: Rulebook, *spaces: dict[str, Any] | None) -> list[int]:
    """The numbers of the places where something is detected."""
    events = [{"type": "a", "time": n, "id": str(n), **({"space": s} if s else {})} for n, s in enumerate(spaces)]
    return [int(d["from"][0]) for d in detect(book, events)]


def test_points_in_zones(tmp_path: Path) -> None:
    write(tmp_path, CITY)
    town = rules(tmp_path, "detect d = a @ 'Old Town'")
    inside, hole, edge, rim = {"x": 1, "y": 1}, {"x": 5, "y": 5}, {"x": 10, "y": 3}, {"x": 4, "y": 5}
    assert found(town, inside, hole, edge, rim, {"x": 11, "y": 3}, None) == [0, 2, 3]
    assert found(town, {"zone": "Old Town"}, {"zone": "islands"}, {"zone": "cell", **inside}, {"zone": "Old Town", **hole}) == [
        0,
        2,
        3,
    ]
    assert found(town, {"lat": 1, "lon": 9}, {"lat": 20, "lon": 9}) == [0]
    islands = rules(tmp_path, "space sea = zone('islands', 'elsewhere')\ndetect d = a @ sea")
    assert found(
        islands, {"x": 105, "y": 5}, {"x": 205, "y": 5}, {"x": 203, "y": 5}, {"x": 150, "y": 5}, {"zone": "elsewhere"}
    ) == [0, 2, 4]
    assert found(islands, {"lat": 5, "lon": 105}, {"lat": 105, "lon": 5}) == [0]


def test_names_by_a_property(tmp_path: Path) -> None:
    write(tmp_path, [feature(7, [SQUARE], key="no"), feature("b", [moved(SQUARE, 50)], key="no")])
    write(tmp_path, feature("c", [moved(SQUARE, 100)], key="a b"), "one.geojson")
    statement = "space from 'city.geojson' by no\nspace from 'one.geojson' by 'a b'"
    book = rules(tmp_path, "detect d = a @ zone('7', 'c')", statement)
    assert found(book, {"x": 5, "y": 5}, {"x": 55, "y": 5}, {"x": 105, "y": 5}) == [0, 2]


def test_statements_come_in_any_order_and_print(tmp_path: Path) -> None:
    write(tmp_path, CITY)
    write(tmp_path, [feature("x", [SQUARE], key="it's")], "other.geojson")
    text = (
        "detect d = a @ 'Old Town'\nspace from 'city.geojson' by name\nspace from 'other.geojson' by 'it''s'\nspace from = 'z'\n"
    )
    file = parse(SourceText(str(tmp_path / "r.ecco"), text))
    printed = print_file(file)
    assert printed.splitlines()[:3] == [
        "space from 'city.geojson'",
        "space from 'other.geojson' by 'it''s'",
        "space from = zone('z')",
    ]
    assert parse(SourceText(str(tmp_path / "r.ecco"), printed)) == file


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("{", "it is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[1]", "it holds no FeatureCollection"),
        ({"type": "Polygon", "coordinates": [SQUARE]}, "it holds no FeatureCollection"),
        ({"type": "FeatureCollection"}, "it holds no FeatureCollection"),
        ([1], "feature 1 is not a Feature"),
        ([{"type": "Feature", "properties": None}], "feature 1 has no text as property 'name' (its properties: none)"),
        ([feature("a", [SQUARE], key="nome")], "feature 1 has no text as property 'name' (its properties: nome)"),
        ([*CITY, feature("islands", [SQUARE])], "feature 3 ('islands'): there is another one of this name"),
        ([feature("p", [1, 2], "Point")], "feature 1 ('p'): its geometry is Point, not Polygon or MultiPolygon"),
        ([feature("p", [[1, 2]], "LineString")], "feature 1 ('p'): its geometry is LineString, not Polygon or MultiPolygon"),
        ([{"type": "Feature", "properties": {"name": "n"}, "geometry": None}], "feature 1 ('n'): its geometry is null"),
        ([feature("p", [SQUARE[:-1]])], "feature 1 ('p'): a ring has four or more positions, and ends where it begins"),
        ([feature("p", [])], "feature 1 ('p'): it has no coordinates"),
        ([feature("p", [[[0, 0], ["1", 0], [1, 1], [0, 0]]])], "feature 1 ('p'): a position is two numbers below 1e15"),
        ([feature("p", [[[0, 0], [10**400, 0], [1, 1], [0, 0]]])], "feature 1 ('p'): a position is two numbers below 1e15"),
        ([feature("p", 5, "MultiPolygon")], "feature 1 ('p'): it has no coordinates"),
    ],
)
def test_errors(tmp_path: Path, features: Any, message: str) -> None:
    write(tmp_path, features)
    with pytest.raises(RuleError) as raised:
        rules(tmp_path, "detect d = a @ 'x'")
    text = raised.value.diagnostics[0].render()
    assert f"r.ecco:1:12: error: cannot take zones from 'city.geojson': {message}" in text


def test_errors_of_files(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"r\.ecco:1:12: error: cannot read 'city\.geojson'"):
        rules(tmp_path, "")
    (tmp_path / "city.geojson").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match="it is not a text file"):
        rules(tmp_path, "")
    write(tmp_path, CITY)
    write(tmp_path, CITY[:1], "town.geojson")
    with pytest.raises(
        RuleError, match=r"r\.ecco:2:12: error: 'town\.geojson' has a zone 'Old Town', which another file has, too"
    ):
        rules(tmp_path, "", "space from 'city.geojson'\nspace from 'town.geojson'")
    with pytest.raises(RuleError, match="expected a property"):
        rules(tmp_path, "", "space from 'city.geojson' by =")


def test_a_zone_that_no_file_has_is_warned_about(tmp_path: Path) -> None:
    write(tmp_path, CITY)
    (warning,) = rules(tmp_path, "detect d = a @ zone('Oldtown', 'islands')").warnings
    assert (warning.message, warning.hint) == ("no file has a zone 'Oldtown'", "did you mean 'Old Town'?")
    assert not load(SourceText("r.ecco", "detect d = a @ 'Oldtown'")).warnings


def test_state_goes_with_the_shape_of_the_zones_that_are_named(tmp_path: Path) -> None:
    text = "detect d = (a @ 'Old Town' ; b) within 1h\ndetect e = (a @ 'islands' ; b) within 1h"
    write(tmp_path, CITY)
    engine = Engine(rules(tmp_path, text))
    engine.process([{"type": "a", "time": time, "space": {"x": x, "y": 1}} for time, x in ((0, 1), (1, 101), (2, 300))])
    kept = engine.snapshot()
    write(tmp_path, [feature("Old Town", [SQUARE]), CITY[1]])
    engine = Engine(rules(tmp_path, text))
    engine.restore(kept)
    engine.process([{"type": "b", "time": 3}])
    assert [d.type for d in engine.finish().events] == ["e"]


def test_files_travel_with_the_rules(tmp_path: Path) -> None:
    write(tmp_path, CITY)
    book = rules(tmp_path, "detect d = a @ 'Old Town'")
    path = tmp_path / "city.geojson"
    assert book.attachments == {(TEXT, str(path)): path.read_text(encoding="utf-8")}
    path.unlink()
    with giving(book.attachments):
        assert found(rules(tmp_path, "detect d = a @ 'Old Town'"), {"x": 1, "y": 1}) == [0]


def test_the_index_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    write(tmp_path, [feature(f"z{n}", [star(rng)]) for n in range(80)])
    lines = [f"detect d{n} = a @ zone('z{n}', 'z{(n * 7) % 80}')" for n in range(80)]
    points = [{"x": rng.uniform(0, 100), "y": rng.uniform(0, 100)} for _ in range(200)]
    points += [{"lat": rng.uniform(0, 100), "lon": rng.uniform(0, 50)} for _ in range(50)]
    events = [{"type": "a", "time": n, "space": point} for n, point in enumerate(points)]
    indexed = detect(rules(tmp_path, "\n".join(lines)), events)
    assert len(indexed) > 100
    monkeypatch.setattr(interpreter, "zone_index", lambda name, programs: ZoneIndex([number for number, _ in programs]))
    assert detect(rules(tmp_path, "\n".join(lines)), events) == indexed


def star(rng: random.Random, corners: int = 12) -> list[list[float]]:
    x, y, size = rng.uniform(0, 100), rng.uniform(0, 100), rng.choice([1, 5, 20, 60])
    turns = [2 * pi * n / corners for n in range(corners)]
    ring = [[x + size * rng.uniform(0.3, 1) * cos(turn), y + size * rng.uniform(0.3, 1) * sin(turn)] for turn in turns]
    return [*ring, ring[0]]


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(3, 200), st.booleans())
def test_polygons_and_boxes_against_shapely(rng: random.Random, corners: int, whole: bool) -> None:
    """With whole coordinates many points lie on edges and corners."""
    shapely = pytest.importorskip("shapely")
    rings = [[(x, y) for x, y in star(rng, corners)] for _ in range(5)]
    shapes = [shapely.Polygon(ring) for ring in rings]
    if whole:
        boxes_only = [shapely.box(*map(round, shape.bounds)) for shape in shapes]
        shapes = [box for box in boxes_only if box.is_valid and box.area]
    shapes = [shape for shape in shapes if shape.is_valid]
    mine = [Polygon((tuple((float(x), float(y)) for x, y in shape.exterior.coords),)) for shape in shapes]
    index = Boxes()
    for number, polygon in enumerate(mine):
        index.add(polygon.box, number)
    for _ in range(50):
        x, y = rng.uniform(-10, 110), rng.uniform(-10, 110)
        point = (float(round(x)), float(round(y))) if whole else (x, y)
        expected = [n for n, shape in enumerate(shapes) if shape.covers(shapely.Point(point))]
        assert [n for n, polygon in enumerate(mine) if polygon.contains(*point)] == expected
        assert sorted(n for n in index.at(*point) if mine[n].contains(*point)) == expected
