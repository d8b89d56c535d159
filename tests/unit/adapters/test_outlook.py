"""Events in total order before all are read, where it is known how early the rest can be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_order import events, keys, plainly_sorted, table_batch

from coincide.adapters import foresight
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.order import in_total_order
from coincide.adapters.outlook import Opened, Outlook
from coincide.adapters.read import open_events
from coincide.adapters.report import ReadReport
from coincide.engines.livestage import LiveStage
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive

Parts = list[tuple[bool, list[Event]]]
parts = st.lists(st.tuples(st.booleans(), st.lists(events(), max_size=5)), max_size=8)


def batches_of(given_parts: Parts) -> list[EventBatch]:
    return [table_batch(part) if columnar else EventBatch(part) for columnar, part in given_parts]


def ordered(batches: Sequence[EventBatch], outlook: Outlook, target: int = 1, memory: int = 10**6) -> list[EventBatch]:
    return list(in_total_order(outlook.timely(batches), outlook, memory_rows=memory, target=target))


class Nobody:
    """A consumer that waits for nothing."""

    timed = False

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@settings(max_examples=150, deadline=None)
@given(parts, st.integers(0, 3), st.integers(1, 6), st.integers(1, 12))
def test_what_is_in_time_is_in_total_order_and_what_is_late_is_what_is_so_live(
    given_parts: Parts, delay: int, target: int, memory: int
) -> None:
    batches, outlook = batches_of(given_parts), Outlook(delay)
    late: list[Event] = []
    outlook.keep = lambda batch: late.extend(batch.events)
    found = ordered(batches, outlook, target, memory)
    stage = LiveStage(Nobody(), delay=delay)
    marks = [-(10**9)]
    expected: list[Event] = []
    timely: list[Event] = []
    for event in (event for batch in batches for event in batch.events):
        (expected if event.hi < marks[-1] - delay else timely).append(event)
        marks.append(max(marks[-1], event.hi))
        stage.arrive(event)
    assert keys(found) == plainly_sorted(timely)
    assert keys([EventBatch(late)]) == keys([EventBatch(expected)])
    assert outlook.late == len(late) <= stage.refused  # live, nobody waits for others of the same instant while ids count up


@settings(max_examples=150, deadline=None)
@given(parts, st.integers(1, 6), st.integers(1, 12))
def test_parts_that_tell_how_early_they_begin(given_parts: Parts, target: int, memory: int) -> None:
    batches, report, outlook = batches_of(given_parts), ReadReport(), Outlook()
    earliest = [
        min([event.hi for later in given_parts[n:] for event in later[1]], default=10**6) for n in range(len(given_parts))
    ]
    ends = np.cumsum([len(part) for _, part in given_parts]).tolist()
    outlook.begins([file := Opened("file", list(zip(ends, earliest, strict=True)))], float("inf"))

    def read() -> Iterator[EventBatch]:
        for batch in batches:
            report.read += len(batch)
            yield batch

    watched = outlook.timely(outlook.watched(file, read(), report))
    found = list(in_total_order(watched, outlook, memory_rows=memory, target=target))
    assert keys(found) == plainly_sorted([event for _, part in given_parts for event in part])


def most_held(batches: Sequence[EventBatch], outlook: Outlook, target: int) -> int:
    """Rows that were read and not yet given out, at most."""
    held = most = 0

    def counting() -> Iterator[EventBatch]:
        nonlocal held, most
        for batch in outlook.timely(batches):
            held += len(batch)
            most = max(most, held)
            yield batch

    for batch in in_total_order(counting(), outlook, target=target):
        held -= len(batch)
    assert held == 0
    return most


@pytest.mark.parametrize(("delay", "disorder"), [(0, 0), (50, 50), (1_000, 300)])
def test_memory_is_what_waits_and_not_the_input(delay: int, disorder: int) -> None:
    moments = np.arange(20_000)
    moments = moments[np.argsort(moments + np.random.default_rng(1).integers(0, disorder + 1, len(moments)), kind="stable")]
    flat = [primitive("t", int(hi), int(hi), str(hi), {}) for hi in moments]
    batches = [table_batch(flat[i : i + 100]) for i in range(0, len(flat), 100)]
    assert most_held(batches, Outlook(delay), target=500) <= 2 * delay + 500 + 200
    assert most_held(batches, Outlook(), target=500) == len(flat)


def records(first: int, count: int, kind: str = "t", step: int = 1) -> list[dict[str, Any]]:
    return [{"type": kind, "time": first + n * step, "n": float(n)} for n in range(count)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50)
    elif path.suffix == ".csv":
        pcsv.write_csv(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, 25)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(paths: Sequence[Path], outlook: Outlook, mapping: FieldMapping = FieldMapping()) -> tuple[list[Any], int]:
    """Events in total order, and how many were held at most."""
    held = most = 0

    def counting() -> Iterator[EventBatch]:
        nonlocal held, most
        for batch in outlook.timely(open_events(paths, mapping, outlook=outlook, block_size=1_000, batch_size=25)):
            held += len(batch)
            most = max(most, held)
            yield batch

    found = []
    for batch in in_total_order(counting(), outlook, target=40):
        held -= len(batch)
        found.append(batch)
    return keys(found), most


def as_sorted(paths: Sequence[Path], mapping: FieldMapping = FieldMapping()) -> list[Any]:
    return keys(list(in_total_order(open_events(paths, mapping, block_size=1_000, batch_size=25))))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_files_one_after_another_and_side_by_side(tmp_path: Path, ending: str) -> None:
    first, second, beside = (
        write(tmp_path / f"{name}.{ending}", records(at, 1_000)) for name, at in [("a", 0), ("b", 1_000), ("c", 500)]
    )
    for paths in ([first, second], [second, first], [first, beside, second], [second, beside, first]):
        found, most = read(paths, outlook := Outlook(0))
        assert (found, outlook.late) == (as_sorted(paths), 0)
        assert (most < 400) == (paths == [first, second] or ending == "parquet")  # which knows how many records it has


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "BLOCK", 0)


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("ids", [False, True])
def test_files_side_by_side_have_the_order_and_the_ids_of_the_input(tmp_path: Path, ids: bool) -> None:
    """Records of equal times and ids stand in the order of the files, so such files are not read side by side."""
    rows = [{"type": "t", "time": n // 4, **({"id": "a"} if ids else {}), "n": float(n)} for n in range(1_000)]
    bad = [{**row, "type": None} if n % 100 == 0 else row for n, row in enumerate(rows)]
    paths = [write(tmp_path / f"{name}.parquet", given_rows) for name, given_rows in [("a", rows), ("b", bad), ("c", rows[200:])]]
    for delay in (0, None):
        outlook = Outlook(delay)
        reader = open_events(paths, outlook=outlook, batch_size=25, rejects=tmp_path / "rejects.jsonl")
        assert keys(list(in_total_order(outlook.timely(reader), outlook, target=40))) == as_sorted(paths)
        assert (reader.report.read, reader.report.rejected, outlook.late) == (2_800, 10, 0)
        assert reader.report.reasons[0].startswith(f"{paths[1]}:1:")
        assert len((tmp_path / "rejects.jsonl").read_text().splitlines()) == 10
    assert (read(paths, Outlook(0))[1] < 400) is not ids


def test_a_file_without_events_and_one_that_cannot_be_looked_into(tmp_path: Path) -> None:
    first = write(tmp_path / "a.jsonl", records(0, 300))
    (empty := tmp_path / "b.jsonl").write_text("no event\n")
    third = write(tmp_path / "c.jsonl", records(300, 300))
    assert read([first, empty, third], Outlook(0))[0] == as_sorted([first, empty, third])
    assert foresight._first(str(tmp_path), ".jsonl", FieldMapping(), 0) == float("-inf")
    assert foresight._first(str(empty), ".jsonl", FieldMapping(), 0) == float("inf")


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", None])
def test_row_groups_tell_their_times(tmp_path: Path, unit: str | None) -> None:
    time = pa.array(np.arange(2_000) * (1_000 if unit == "ns" else 1))
    table = pa.table({"type": pa.array(["t"] * 2_000), "time": time if unit is None else time.cast(pa.timestamp(unit))})
    shuffled = table.take(np.concatenate([at + np.random.default_rng(at).permutation(50) for at in range(0, 2_000, 50)]))
    pq.write_table(shuffled, tmp_path / "a.parquet", row_group_size=50)
    found, most = read([tmp_path / "a.parquet"], Outlook())
    assert found == as_sorted([tmp_path / "a.parquet"])
    assert most <= 250
    pq.write_table(table.take(pa.array(np.random.default_rng(1).permutation(2_000))), tmp_path / "b.parquet", row_group_size=50)
    found, most = read([tmp_path / "b.parquet"], Outlook())
    assert (found, most) == (as_sorted([tmp_path / "b.parquet"]), 2_000)


@pytest.mark.usefixtures("looks")
def test_statistics_of_ends_of_other_fields_and_of_several_files(tmp_path: Path) -> None:
    rows = [{"type": "t", "ts": n, "to": n + 30 if n % 3 else None} for n in range(1_000)]
    whole = write(tmp_path / "whole.parquet", rows)
    mapping = FieldMapping(time="ts", end="to", unit="s")
    found, most = read([whole], Outlook(), mapping)
    assert found == as_sorted([whole], mapping)
    assert most < 400
    some = [{"type": "t", "time": None if n % 2 else n, "@timestamp": n} for n in range(500)]
    assert read([path := write(tmp_path / "two.parquet", some)], Outlook()) == (as_sorted([path]), 500)
    files = [write(tmp_path / f"{n}.parquet", records(n * 300, 300)) for n in (0, 1, 2)]
    assert read(files, Outlook())[1] < 300
    assert read([*files, path := write(tmp_path / "some.jsonl", records(0, 10))], Outlook())[0] == as_sorted([*files, path])


def test_memory_of_arrow_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rows, pool = 200_000, pa.default_memory_pool()
    values = pa.array(np.random.default_rng(1).random(rows))
    table = pa.table({"type": pa.array(["t"] * rows), "time": pa.array(np.arange(rows)), "v": values})
    pq.write_table(table, path := tmp_path / "a.parquet", row_group_size=5_000)
    del table, values
    before, most, outlook = pool.bytes_allocated(), 0, Outlook(0)
    for _ in in_total_order(outlook.timely(open_events(path, outlook=outlook, batch_size=5_000)), outlook, target=10_000):
        most = max(most, pool.bytes_allocated() - before)
    assert most < path.stat().st_size / 2


def test_a_promise_that_is_not_kept() -> None:
    outlook = Outlook()
    outlook.begins([file := Opened("file", [(1, 5), (2, 5)])], float("inf"))
    batches = [EventBatch([primitive("t", hi, hi, "1", {})]) for hi in (5, 3)]
    with pytest.raises(InputError, match="'file' has times that are earlier"):
        list(outlook.timely(outlook.watched(file, batches, ReadReport())))
