"""Fields of detections: one order in every tier, no id twice, the source of the envelope."""

from __future__ import annotations

import pytest

import coincide
from coincide.adapters.tablerecords import table_records
from coincide.model.batch import EventBatch
from coincide.model.event import detection, record
from coincide.model.stamp import order_key

EVENTS = [
    {"type": "a", "id": "7", "time": 1, "source": "n1", "z": 1, "k": "x", "b": 2},
    {"type": "b", "id": "7", "time": 2, "source": "n1", "z": 1, "k": "x", "a": 3},
]
RULES = (
    ("ecl", "monitor m by k = repeat { push(found, z: z, c: 1) { b } }"),
    ("ce", "detect found = [a(k = ?k) as x] ; [b(k = ?k) as y] with z = x.z, c = y.a"),
    ("ecco", "detect found per source, k = a as x ; b as y give z = x.z, c = y.a"),
    ("ecco", "detect found = a + b"),
)


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize(("language", "rules"), RULES)
def test_attributes_come_by_name_after_the_envelope(language: str, rules: str, tier: str) -> None:
    (found,) = coincide.detect(coincide.loads(rules, language), EVENTS, tier=tier)
    envelope = [name for name in ("type", "time", "from", "source") if name in found]
    assert list(found) == [*envelope, *sorted(found.keys() - set(envelope))]
    assert found["from"] == ["7"]  # two events that share an id are told once


def test_both_faces_of_a_batch_are_written_alike() -> None:
    origin = tuple(order_key(0, time, name) for time, name in ((1, "x"), (2, "y"), (3, "x"), (4, "z")))
    values = [{"b": 1.0, "a": True}, {"c": "t", "a": 2.0, "source": 5.0}, {"source": True}]
    batch = EventBatch([detection("d", (0, 4), one, origin[: n + 2], (4, 0, n, 1, 0, 0)) for n, one in enumerate(values)])
    assert [list(r.items()) for r in table_records(batch.table)] == [list(record(e).items()) for e in batch.events]
    assert [record(e).get("source") for e in batch.events] == [None, "5", "true"]
    assert [record(e)["from"] for e in batch.events] == [["x", "y"], ["x", "y"], ["x", "y", "z"]]
