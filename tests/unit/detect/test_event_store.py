"""The events that a state keeps (columns/store.py): they stand where they stood, and what says so takes no room it need not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import lengthened
from coincide.model.table import EventTable


def batch(first: int, size: int) -> EventTable:
    hi = np.arange(first, first + size) * 10
    return EventTable(hi, hi, {"id": pa.array([f"e{n}" for n in range(first, first + size)])}, first)


@pytest.mark.parametrize("step", [1, 3])
def test_events_stay_at_their_places(step: int) -> None:
    store, numbers = Store(None), list[int]()
    for first in range(0, 2_000, 100):
        rows = np.arange(0, 100, step)
        store.add(batch(first, 100), rows)
        numbers += (first + rows).tolist()
    every = np.arange(len(store))
    assert store.places(every).tolist() == [[10 * n, n, 0] for n in numbers]
    assert store.column("id", every).values() == [f"e{n}" for n in numbers]
    some = store.taken(every[5:-5:2])
    assert some.rows(3, 9).place_matrix().tolist() == [[10 * n, n, 0] for n in numbers[5:-5:2][3:9]]
    for chunk in store.chunks:
        assert chunk.given_places is None
        assert chunk.lo is chunk.hi
        assert isinstance(chunk.first, int) == (step == 1)


def test_an_array_is_as_long_as_asked_for() -> None:
    array, values = np.zeros((0, 2), np.int64), list[int]()
    for size in (1, 5, 5, 70, 71, 300):
        before, array = len(array), lengthened(array, size)
        assert len(array) == size
        array[before:] = size
        values += [size] * (size - before)
        assert array[:, 1].tolist() == values
    assert lengthened(array, 3) is array
