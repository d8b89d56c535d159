"""Keys of monitors in the kernel tier: those of a first batch are looked at only when somebody asks, those that are back at the
start are forgotten."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from coincide.detection.columns.keys import Keys, key_codes
from coincide.detection.machine.kernel import MANY_KEYS
from coincide.detection.machine.slots import Slots
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.column import Column, column_of
from coincide.model.table import EventTable
from coincide.rulebook import loads

PAIRS = "monitor m by k, l = repeat { push(pair) { sequential { a, b } } }"
SIZE = MANY_KEYS + 1_000


def batch(kind: str, keys: range, begin: int) -> EventBatch:
    at = np.arange(begin, begin + len(keys))
    fields = {"type": [kind] * len(keys), "id": [f"{kind}{key}" for key in keys], "k": [*map(float, keys)]}
    fields["l"] = ["even" if key % 2 == 0 else "odd" for key in keys]
    return EventBatch(table=EventTable(at, at, {name: pa.array(values) for name, values in fields.items()}))


@pytest.mark.parametrize("snapshot", [False, True])
def test_many_keys_of_one_batch_go_on_in_the_next(snapshot: bool) -> None:
    graph = Graph(loads(PAIRS).plans("kernel"))
    state = graph.initial()
    graph.advance(state, batch("a", range(SIZE), 0))
    if snapshot:
        state = graph.decode(graph.encode(state))
    found = [
        graph.advance(state, batch("b", keys, number * 10 * SIZE))
        for number, keys in enumerate((range(0, SIZE, 2), range(SIZE)), 1)
    ]
    assert [[d.attributes["k"] for d in some.events] for some in found] == [[*range(0, SIZE, 2)], [*range(1, SIZE, 2)]]


def test_keys_are_made_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, keys = key_codes([column_of([1.0, 2.0, 1.0, -0.0]), column_of(["x", True, "x", "y"])])
    slots = Slots()
    with monkeypatch.context() as patched:
        patched.setattr(Keys, "made", property(lambda _: pytest.fail("nobody has asked")))
        assert slots.of(keys)[codes].tolist() == [codes[0] + 1, codes[1] + 1, codes[0] + 1, codes[3] + 1]
        slots.keep(np.sort(codes[[0, 3]] + 1))
        assert len(slots) == 2
    by_key = dict(zip(slots.known, slots.known.numbers().tolist(), strict=True))
    assert {*by_key} == {(1.0, "x"), (0.0, "y")}
    assert {*by_key.values()} == {1, 2}
    assert slots.of([(2.0, (True,)), (1.0, "x")]).tolist() == [3, by_key[1.0, "x"]]


def test_of_a_column_that_is_coded_texts_have_its_codes() -> None:
    codes, keys = key_codes([Column(3, codes=np.array([1, -1, 0], np.int32), texts=("x", "y"))])
    assert (codes.tolist(), [*keys]) == ([1, -1, 0], [("x",), ("y",)])
    assert [*keys.take(np.array([1]))] == [("y",)]
