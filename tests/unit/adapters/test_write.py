"""Detections to JSON Lines and Parquet: complete or absent."""

from __future__ import annotations

import json
import os
from math import isnan, nan
from pathlib import Path
from random import Random
from threading import Thread

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide.adapters.tablerecords import MANY, plain_values, table_lines, table_records
from coincide.adapters.write import open_detections
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.column import Column
from coincide.model.compound import ValueSet
from coincide.model.event import Event, Value, detection, primitive
from coincide.model.numbers import plain_number
from coincide.model.space import Space

ORIGIN = ((1000, 1000, 1, 0, "q1"), (61_000_000, 61_000_000, 0, 9, "9"))


def made(kind: str, n: int, lo: int = 1000, hi: int = 61_000_000, **values: Value) -> Event:
    return detection(kind, (lo, hi), dict(values), ORIGIN, (hi, 0, 5, 1, 0, n), "here", Space(x=1.0, y=2.0))


def detections() -> list[Event]:
    return [made("hit", 0, v=1.0, w="t"), made("miss", 1, 500, 500, v=0.5), made("hit", 2, v=True, u=None)]


EXPECTED = [
    {"type": "hit", "time": [1, 61000], "from": ["q1", "9"], "source": "here", "space": {"x": 1.0, "y": 2.0}, "v": 1, "w": "t"},
    {"type": "miss", "time": 0.5, "from": ["q1", "9"], "source": "here", "space": {"x": 1.0, "y": 2.0}, "v": 0.5},
    {"type": "hit", "time": [1, 61000], "from": ["q1", "9"], "source": "here", "space": {"x": 1.0, "y": 2.0}, "v": True},
]


def written(path: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in json.loads(line).items() if v is not None} for line in path.read_text().splitlines()]


@pytest.mark.parametrize("columnar", [False, True])
def test_json_lines(tmp_path: Path, columnar: bool) -> None:
    batch = EventBatch(detections())
    with open_detections(tmp_path / "out.jsonl") as writer:
        writer.write(EventBatch(table=batch.table) if columnar else batch)
        writer.write(EventBatch([]))
        assert not (tmp_path / "out.jsonl").exists()
    assert written(tmp_path / "out.jsonl") == EXPECTED
    assert len(list(tmp_path.iterdir())) == 1


VALUES: list[Value] = [None, 1.0, 0.1, -0.0, 1e300, 2**62, True, False, "", 'a "b"\\\n', "é\x00", ValueSet((1.0, "x")), "plain"]
kinds = st.sampled_from([[None], [None, "x", 'y"'], [1.0, 2.0], [0.5, None], [True, None], VALUES])
columns = st.dictionaries(st.sampled_from(["v", 'w"', "é", "u"]), kinds)
ids = st.lists(st.sampled_from(["1", "20", "q", 'q"', "é"]), max_size=3)


Row = tuple[int, list[str], bool]


@given(columns, st.lists(st.tuples(st.sampled_from([0, 1, 1000, 1_000_000]), ids, st.booleans()), min_size=1), st.randoms())
def test_many_detections_go_by_columns(
    columns: dict[str, list[Value]], rows: list[tuple[int, list[str], bool]], chance: Random
) -> None:
    """The same bytes as record by record."""
    events = []
    for number in range(MANY + 10):
        time, made_of, is_made = chance.choice(rows)
        values = {name: value for name, kind in columns.items() if (value := chance.choice(kind)) is not None}
        origin = tuple((time, time, 1, 0, name) for name in made_of)
        event = detection(
            chance.choice("ab"), (time, time + chance.choice([0, 7])), values, origin, (9000, 0, number, 1, 0, 0), None, None
        )
        events.append(event if is_made else primitive("c", time, time, str(number), values).placed(number))
    table = EventBatch(events).table
    assert table_lines(table) == msgspec.json.Encoder().encode_lines(table_records(table))


@pytest.mark.parametrize("numbers", [[0.5, nan, 3.0, -0.0], [1.0, nan], [1e300, 2.0, nan], [2.0**53, 0.5], [7.0, -8.0], [nan]])
def test_numbers_by_columns_are_those_by_themselves(numbers: list[float]) -> None:
    expected = [None if isnan(number) else plain_number(number) for number in numbers]
    assert repr(plain_values(Column(len(numbers), numbers=np.array(numbers)))) == repr(expected)


def test_generated_ids(tmp_path: Path) -> None:
    with open_detections(tmp_path / "out.jsonl", ids=True) as writer:
        writer.write(EventBatch(detections()))
    assert [r["id"] for r in written(tmp_path / "out.jsonl")] == ["hit#1", "miss#1", "hit#2"]
    with open_detections(tmp_path / "out.parquet", ids=True) as writer:
        writer.write(EventBatch(detections()))
    assert pq.read_table(tmp_path / "out.parquet").column("id").to_pylist() == ["hit#1", "miss#1", "hit#2"]


def test_external_events_have_ids_and_no_origin(tmp_path: Path) -> None:
    event = primitive("a", 1000, 1000, "7", {})
    batch = EventBatch([event.placed(1)])
    for batch_given in (EventBatch([event]), batch, EventBatch(table=batch.table)):
        with open_detections(tmp_path / "out.jsonl") as writer:
            writer.write(batch_given)
        assert written(tmp_path / "out.jsonl") == [{"type": "a", "id": "7", "time": 1}]


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_detections() as writer:
        writer.write(EventBatch(detections()[:1]))
    assert json.loads(capfdbinary.readouterr().out) == EXPECTED[0]


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_absent_after_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("before")

    def fail() -> None:
        with open_detections(tmp_path / name) as writer:
            writer.write(EventBatch(detections()))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / name).read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_parquet_of_changing_columns(tmp_path: Path) -> None:
    with open_detections(tmp_path / "out.parquet") as writer:
        for event in detections():
            writer.write(EventBatch([event]))
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.names == ["type", "time_lo", "time_hi", "from", "source", "space", "v", "w"]
    assert [v and next(x for x in v.values() if x is not None) for v in table.column("v").to_pylist()] == [1.0, 0.5, True]
    assert table.column("w").to_pylist() == ["t", None, None]


def test_parquet_without_detections(tmp_path: Path) -> None:
    with open_detections(tmp_path / "out.parquet"):
        pass
    assert pq.read_table(tmp_path / "out.parquet").schema.names == ["type", "time_lo", "time_hi", "from"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot tell the format"):
        open_detections(tmp_path / "out.txt")
    with pytest.raises(InputError, match="cannot write"):
        open_detections(tmp_path / "none" / "out.jsonl")


def test_a_folder_is_not_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "found.jsonl").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        open_detections(tmp_path / "found.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["found.jsonl"]


def test_a_pipe_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "found.jsonl", list[bytes]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with open_detections(pipe) as writer:
        writer.write(EventBatch(detections()))
    reader.join()
    assert pipe.is_fifo()
    assert len(read[0].splitlines()) == 3
