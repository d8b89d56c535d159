"""Total order in both faces of a batch, in memory and through temporary files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.adapters import spill
from coincide.adapters.order import in_total_order, sort_batch
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive

ids = st.one_of(
    st.integers(-3, 12).map(str),
    st.sampled_from(["07", "-0", "a", "b", "é", "\U0001f600", "\uffff", "9" * 25, "-" + "9" * 25, "", "-", "1 ", "١"]),
)
stamps = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
values = st.one_of(st.none(), st.integers(0, 3).map(float), st.sampled_from(["x", True]))


@st.composite
def events(draw: Any) -> Event:
    (lo, hi), value = draw(stamps), draw(values)
    return primitive("t", lo, hi, draw(ids), {} if value is None else {"v": value, f"v{draw(st.integers(0, 2))}": 1.0})


def table_batch(given_events: list[Event]) -> EventBatch:
    return EventBatch(table=EventBatch(given_events).table) if given_events else EventBatch([])


def keys(batches: list[EventBatch]) -> list[tuple[object, ...]]:
    return [(e.type, e.lo, e.hi, e.id, e.attributes) for batch in batches for e in batch.events]


def plainly_sorted(given_events: list[Event]) -> list[tuple[object, ...]]:
    return keys([EventBatch(sorted(given_events, key=lambda e: e.origin))])


def test_whole_numbers_come_first() -> None:
    order = ["-7", "2", "03", "3", "10", "", "a", "b", "é", "\U0001f600"]
    batch = [primitive("t", 0, 0, i, {}) for i in reversed(order)]
    assert [e.id for e in sort_batch(EventBatch(batch)).events] == order
    assert [e.id for e in sort_batch(table_batch(batch)).events] == order


def test_a_batch_in_order_stays_the_same() -> None:
    batch = [primitive("t", 0, hi, str(i), {}) for i, hi in enumerate([1, 2, 2, 2, 3])]
    for face in (EventBatch(batch), table_batch(batch)):
        assert sort_batch(face) is face


@settings(max_examples=150, deadline=None)
@given(st.lists(events(), max_size=12))
def test_both_faces_have_one_order(given_events: list[Event]) -> None:
    expected = plainly_sorted(given_events)
    assert keys([sort_batch(EventBatch(given_events))]) == expected
    assert keys([sort_batch(table_batch(given_events))]) == expected


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(events(), max_size=5)), max_size=6), st.integers(1, 12), st.integers(1, 4))
def test_spilling_gives_the_plain_order(parts: list[tuple[bool, list[Event]]], memory: int, target: int) -> None:
    batches = [table_batch(part) if columnar else EventBatch(part) for columnar, part in parts]
    flat = [e for _, part in parts for e in part]
    assert keys(list(in_total_order(batches, memory_rows=memory, target=target))) == plainly_sorted(flat)


def test_many_runs_are_merged_in_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "FAN_IN", 2)
    flat = [primitive("t", 0, (i * 7) % 10, str(i % 4), {"n": float(i)}) for i in range(40)]
    batches = [EventBatch(flat[i : i + 3]) for i in range(0, 40, 3)]
    assert keys(list(in_total_order(batches, memory_rows=4, target=2))) == plainly_sorted(flat)


@pytest.mark.parametrize("columns", [False, True])
def test_rows_that_are_large_spill_sooner_and_are_merged_in_smaller_pieces(
    columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = [primitive("t", 0, (i * 7) % 50, str(i), {"text": f"{i} " + "x" * 100_000}) for i in range(50)]
    batches = [table_batch(flat[i : i + 5]) if columns else EventBatch(flat[i : i + 5]) for i in range(0, 50, 5)]
    runs: list[int] = []
    monkeypatch.setattr(spill.Runs, "add", lambda self, given, add=spill.Runs.add: runs.append(1) or add(self, given))
    out = list(in_total_order(batches, memory_rows=2_000, target=1_000))
    assert keys(out) == plainly_sorted(flat)
    assert len(runs) > 4
    assert max(map(len, out)) <= 5
    small = [primitive("t", 0, (i * 7) % 50, str(i), {"text": f"{i}"}) for i in range(50)]
    runs.clear()
    assert len([*in_total_order([table_batch(small) if columns else EventBatch(small)], memory_rows=4_000)]) == 1
    assert not runs


def test_arrivals_and_sources_survive_spilling() -> None:
    flat = [primitive("t", 0, 9 - i, str(i), {}, source=f"s{i}", arrival=i) for i in range(9)]
    out = [e for b in in_total_order([EventBatch(flat[:5]), EventBatch(flat[5:])], memory_rows=3) for e in b.events]
    assert [(e.source, e.arrival) for e in out] == [(f"s{i}", i) for i in reversed(range(9))]


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def failing() -> Iterator[EventBatch]:
        for i in range(3):
            yield EventBatch([primitive("t", 0, i, "1", {})])
        assert list(tmp_path.iterdir())
        raise RuntimeError

    with pytest.raises(RuntimeError):
        list(in_total_order(failing(), memory_rows=1))
    assert not list(tmp_path.iterdir())
    ordered = in_total_order([EventBatch([primitive("t", 0, i, "1", {})]) for i in range(9)], memory_rows=1, target=1)
    next(ordered)
    ordered.close()  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())


def test_objects_stay_objects() -> None:
    out = list(in_total_order([EventBatch([primitive("t", 0, 9 - i, "1", {})]) for i in range(5)], target=2))
    assert [len(b) for b in out] == [2, 2, 1]
    assert not any(b.has_table for b in out)
    assert list(in_total_order([])) == []


def test_numbers_of_a_batch_that_has_both_faces() -> None:
    batch = EventBatch([primitive("t", 0, i, str(i), {}) for i in range(3)])
    assert len(batch.table) == 3
    assert [e.place for e in batch.numbered(7).events] == [(0, 0, 7, 0), (1, 0, 8, 0), (2, 0, 9, 0)]
