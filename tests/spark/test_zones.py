"""Zones from a file on Spark: the file travels with the rules."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support import expected, texts

from coincide.engines.spark import runner
from coincide.model.batch import EventBatch
from coincide.model.event import primitive
from coincide.model.space import Space
from coincide.rulebook import load

pytestmark = pytest.mark.spark


def zone(number: int) -> dict[str, Any]:
    x, y = number % 5 * 20, number // 5 * 20
    ring = [[x, y], [x + 15, y], [x + 15, y + 15], [x, y + 15], [x, y]]
    return {"type": "Feature", "properties": {"no": number}, "geometry": {"type": "Polygon", "coordinates": [ring]}}


@pytest.mark.parametrize("run", [runner.run_batch, runner.run_streaming])
def test_workers_need_no_file(spark: Any, tmp_path: Path, run: Any) -> None:
    data = {"type": "FeatureCollection", "features": [zone(n) for n in range(25)]}
    (tmp_path / "city.geojson").write_text(json.dumps(data), encoding="utf-8")
    lines = [
        "space from 'city.geojson' by no",
        *(f"detect moved{n} per car = (a @ '{n}' ; a @ '{n + 1}') within 9" for n in range(24)),
    ]
    (tmp_path / "r.ecco").write_text("\n".join(lines), encoding="utf-8")
    book = load(tmp_path / "r.ecco")
    rng = random.Random(1)
    events = [
        primitive("a", n * 1000, n * 1000, f"e{n}", {"car": float(n % 3)}, space=Space(rng.uniform(0, 100), rng.uniform(0, 100)))
        for n in range(600)
    ]
    wanted = expected(book, events)
    assert len(wanted) > 20
    (tmp_path / "city.geojson").unlink()
    assert texts(e for batch in run(book, [EventBatch(events)]) for e in batch.events) == wanted
