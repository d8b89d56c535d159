"""Many definitions, each with its place: the index changes no answer."""

from __future__ import annotations

import random

import pytest

from coincide.api import detect
from coincide.detection.algebra import interpreter
from coincide.detection.algebra.space.zones import ZoneIndex
from coincide.model.area import Boxes
from coincide.rulebook import loads


def place(rng: random.Random) -> str:
    x, y, z, size = rng.randint(0, 90), rng.randint(0, 90), rng.randint(0, 5), rng.choice([1, 5, 10, 200])
    return rng.choice(
        [
            f"box({x}, {y}, {x + size}, {y + size})",
            f"box({x}, {y}, 0, {x + size}, {y + size}, {z})",
            f"circle({x}, {y}, {size})",
            f"circle({x}, {y}, {size * 100000})",
            f"sphere({x}, {y}, {z}, {size})",
            f"zone('z{x % 7}', 'z{y % 7}')",
            f"group('n{x % 3}')",
        ]
    )


def event(rng: random.Random, number: int) -> dict[str, object]:
    x, y = rng.uniform(0, 90), rng.uniform(0, 90)
    spaces = [{"x": x, "y": y}, {"x": x, "y": y, "z": 2, "zone": f"z{number % 7}"}, {"lat": x, "lon": y}, {"zone": "z1"}, None]
    return {
        "type": rng.choice("ab"),
        "id": str(number),
        "time": number,
        "source": f"n{number % 3}",
        **({"space": space} if (space := rng.choice(spaces)) else {}),
    }


@pytest.mark.parametrize("seed", range(5))
def test_the_index_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    lines = [f"detect d{n} = a @ {place(rng)}" for n in range(60)]
    lines += [f"detect e{n} = (a @ {place(rng)} ; b @ {place(rng)}) within 3" for n in range(20)]
    events = [event(rng, n) for n in range(200)]
    indexed = detect(loads("\n".join(lines), "ecco"), events)

    def everywhere(name: str, programs: list[tuple[int, object]]) -> ZoneIndex:
        return ZoneIndex([number for number, _ in programs])

    monkeypatch.setattr(interpreter, "zone_index", everywhere)
    assert detect(loads("\n".join(lines), "ecco"), events) == indexed
    assert indexed


def test_a_grid_looks_only_where_a_point_is() -> None:
    grid = Boxes()
    grid.add((0, 0, 5, 5), 1)
    grid.add((4, 4, 25, 25), 2)
    grid.add((-1000, -1000, 1000, 1000), 3)
    assert sorted(grid.at(4.5, 4.5)) == [1, 2, 3]
    assert sorted(grid.at(7, 7)) == [2, 3]
    assert sorted(grid.at(-7, 7)) == [3]


def test_a_circle_around_everything() -> None:
    """Its extent is beyond the largest number."""
    rules = loads("detect flat = a @ circle(0, 0, 1e308)", "ecco")
    events = [{"type": "a", "time": time, "space": {"x": x, "y": 1}} for time, x in enumerate((-3, 7))]
    assert [found["time"] for found in detect(rules, events)] == [0, 1]
