"""Parquet, Arrow, pandas and Polars."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from coincide.adapters.frames import from_arrow, from_pandas, from_polars, to_arrow
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.read import EventReader, open_events
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.compound import ValueSet
from coincide.model.event import OWN_TYPE, Event, detection

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
NOON_US = 1_577_880_000_000_000


def all_events(reader: EventReader) -> list[Event]:
    return [e for batch in reader for e in batch.events]


def attributes(array: pa.Array) -> tuple[list[Any], EventReader]:
    """What becomes of an attribute's column."""
    reader = from_arrow(pa.table({"type": ["a"] * len(array), "time": [1] * len(array), "v": array}))
    return [e.attributes.get("v") for e in all_events(reader)], reader


def times(array: pa.Array, mapping: FieldMapping = DEFAULT, **more: pa.Array) -> tuple[list[tuple[int, int]], EventReader]:
    reader = from_arrow(pa.table({"type": ["a"] * len(array), "time": array, **more}), mapping)
    return [(e.lo, e.hi) for e in all_events(reader)], reader


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "stream.arrow"])
def test_files(tmp_path: Path, ending: str) -> None:
    table = pa.table({"type": ["a", None, "b"], "time": pa.array([NOON, NOON, None]), "v": [1, 2, 3]})
    path = tmp_path / f"e.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "feather":
        pyarrow.feather.write_feather(table, path)
    else:
        make = pa.ipc.new_stream if "stream" in ending else pa.ipc.new_file
        with make(path, table.schema) as writer:
            writer.write_table(table)
    reader = open_events(path, rejects=tmp_path / "r", batch_size=2)
    assert [(e.type, e.hi, e.id, e.attributes) for e in all_events(reader)] == [("a", NOON_US, "1", {"v": 1.0})]
    assert reader.report.reasons == [f"{path}:2: missing type", f"{path}:3: missing time"]
    assert (reader.report.read, reader.report.rejected) == (3, 2)
    assert json.loads((tmp_path / "r").read_text().splitlines()[1]) == {"type": "b", "v": 3}
    with pytest.raises(InputError, match=":2: missing type"):
        all_events(open_events(path, strict=True))


def test_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "e.parquet").write_text("no")
    with pytest.raises(InputError, match="cannot read"):
        all_events(open_events(tmp_path / "e.parquet"))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None], pa.int8()), [1.0, None]),
        (pa.array([1, 2], pa.uint64()), [1.0, 2.0]),
        (pa.array([1.5, float("nan")]), [1.5, None]),
        (pa.array([Decimal("1.25")]), [1.25]),
        (pa.array(["x", None], pa.large_string()), ["x", None]),
        (pa.array(["x", "y"], pa.string_view()), ["x", "y"]),
        (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
        (pa.DictionaryArray.from_arrays([0, 1, 2], ["x", "x", None]), ["x", "x", None]),
        (pa.array([7, 8]).dictionary_encode(), [7.0, 8.0]),
        (pa.array([True, None, False]), [True, None, False]),
        (pa.array([NOON]), [NOON_US / 1000]),
        (pa.array([date(1970, 1, 2)]), [86_400_000.0]),
        (pa.array([1500], pa.duration("ns")), [0.001]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_types_of_attributes(array: pa.Array, expected: list[object]) -> None:
    values, reader = attributes(array)
    assert values == expected
    assert list(map(type, values)) == list(map(type, expected))
    assert reader.report.rejected == 0


@pytest.mark.parametrize("array", [pa.array([[b"x"], None]), pa.array([b"x", None]), pa.array([float("inf"), None])])
def test_attributes_that_are_no_values(array: pa.Array) -> None:
    values, reader = attributes(array)
    assert values == [None]
    assert reader.report.rejected == 1
    assert "attribute 'v'" in reader.report.reasons[0]


def test_structs_and_lists() -> None:
    table = pa.table({"type": ["a", "a"], "time": [1, 2], "p": [{"name": "x", "ids": [1, 2]}, None], "p.name": [None, "dotted"]})
    events = all_events(from_arrow(table))
    assert [e.attributes for e in events] == [{"p.name": "x", "p.ids": ValueSet((1.0, 2.0))}, {"p.name": "dotted"}]
    objects = pa.table({"type": ["a"] * 3, "time": [1] * 3, "p": [[{"n": "x", "i": 1}, {"n": "y", "i": None}], [], None]})
    assert [e.attributes for e in all_events(from_arrow(objects))] == [
        {"p.n": ValueSet(("x", "y")), "p.i": ValueSet((1.0,))},
        {},
        {},
    ]
    sliced = all_events(from_arrow(table.slice(1)))
    assert [e.attributes for e in sliced] == [{"p.name": "dotted"}]


def test_a_place_that_is_none_concerns_its_row_alone() -> None:
    reader = from_arrow(pa.table({"type": ["a", "a"], "time": [1, 2], "space": pa.array([{"hi": 3}, None])}))
    assert [event.id for event in all_events(reader)] == ["2"]
    assert reader.report.rejected == 1


@pytest.mark.parametrize("types", [pa.array([True, False, None]), pa.array([["x", "y"], [], None])])
def test_what_is_no_text_is_no_type_where_none_is_needed(types: pa.Array) -> None:
    table = pa.table({"type": types, "time": [1, 2, 3]})
    assert [event.type for event in all_events(from_arrow(table, FieldMapping(untyped=True)))] == ["event"] * 3


def test_an_empty_type_is_none_also_if_coded() -> None:
    table = pa.table({"type": pa.array(["", "event", None]).dictionary_encode(), "time": [1, 2, 3]})
    events = all_events(from_arrow(table, FieldMapping(untyped=True)))
    assert [event.attributes for event in events] == [{}, {OWN_TYPE: True}, {}]


def test_huge_integers() -> None:
    numbers = [2**53, 2**53 + 1, -(2**63), 2**63 - 1]
    for kind in (pa.int64(), pa.decimal128(20, 0), pa.decimal128(38, 0)):
        found, reader = attributes(pa.array(numbers, kind))
        assert found == numbers
        assert reader.report.huge == {}
    found, reader = attributes(pa.array([2**53 + 1, 2**63, 2**64 - 1], pa.uint64()))
    assert found == [2**53 + 1, 2.0**63, 2.0**64]
    assert reader.report.huge == {"v": 1}


def test_decimals_that_no_double_is_written_as_are_refused() -> None:
    values = [Decimal("12.50"), Decimal("0.10"), Decimal("12345678901234567890.12")]
    found, reader = attributes(pa.array(values, pa.decimal128(30, 2)))
    assert found == [12.5, 0.1]
    assert reader.report.reasons == ["<arrow>:3: attribute 'v' has more digits than a number with a fraction can hold"]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, 2]), [(1000, 1000), (2000, 2000)]),
        (pa.array([1.5]), [(1500, 1500)]),
        (pa.array([NOON], pa.timestamp("ns", "Europe/Berlin")), [(NOON_US, NOON_US)]),
        (pa.array([1999], pa.timestamp("ns")), [(1, 1)]),
        (pa.array([date(1970, 1, 2)]), [(86_400_000_000,) * 2]),
        (pa.array(["2020-01-01T12:00:00Z", "2020-01-01 14:00+02:00"]), [(NOON_US,) * 2] * 2),
        (pa.array(["2020-01-01T12:00:00", "2020-01-01 12:00:00Z", "20200101T120000"]), [(NOON_US,) * 2] * 3),
        (pa.array(["2020-01-01T12:00"]).dictionary_encode(), [(NOON_US,) * 2]),
        (pa.array([[1, 2], [3, 4]]), [(1000, 2000), (3000, 4000)]),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [(1000, 2000)]),
        (pa.array([{"lo": 1, "hi": 2}]), [(1000, 2000)]),
    ],
)
def test_times(array: pa.Array, expected: list[tuple[int, int]]) -> None:
    found, reader = times(array)
    assert (found, reader.report.reasons) == (expected, [])


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (pa.array([2**62]), "out of range"),
        (pa.array([2**64 - 1], pa.uint64()), "out of range"),
        (pa.array([float("inf")]), "out of range"),
        (pa.array([float("nan")]), "missing time"),
        (pa.array([2**62], pa.timestamp("s")), "out of range"),
        (pa.array(["noon"]), "time must be"),
        (pa.array([True]), "time must be"),
        (pa.array([[1]]), "time must be"),
        (pa.array([[1, None]]), "time must be"),
        (pa.array([[2, 1]]), "ends before"),
        (pa.array([{"lo": 2, "hi": 1}]), "ends before"),
    ],
)
def test_bad_times(array: pa.Array, reason: str) -> None:
    found, reader = times(array)
    assert found == []
    assert reason in reader.report.reasons[0]


def test_lists_with_bad_ones_between() -> None:
    found, reader = times(pa.array([[1, 2], None, [3], [4, 5], [], [6, 7, 8], [9, 9]]))
    assert found == [(1000, 2000), (4000, 5000), (9000, 9000)]
    assert [reason.split(":")[1] for reason in reader.report.reasons] == ["2", "3", "5", "6"]


def test_end_column() -> None:
    found, reader = times(pa.array([1, 2, 3]), FieldMapping(end="till", unit="s"), till=pa.array([4, None, 1]))
    assert found == [(1_000_000, 4_000_000), (2_000_000, 2_000_000)]
    assert reader.report.rejected == 1


def test_envelope_columns() -> None:
    table = pa.table(
        {
            "time": [1, 2, 3, 4],
            "id": pa.array([1.0, 2.5, None, 4]),
            "source": [1, 2, None, 4],
            "arrival": [5, None, 6, 7],
            "space": pa.array([{"x": 1, "y": 2}, None, {"x": 1, "y": None}, {"x": 0, "y": 1}]),
        }
    )
    reader = from_arrow(table, FieldMapping(constant_type="tick"))
    assert [(e.type, e.id, e.source, e.arrival, e.space and e.space.point) for e in all_events(reader)] == [
        ("tick", "1", "1", 5000, (1.0, 2.0)),
        ("tick", "2.5", "2", None, None),
        ("tick", "4", "4", 7000, (0.0, 1.0)),
    ]
    assert reader.report.reasons == ["<arrow>:3: space must have x and y, or lat and lon, or a zone"]


def test_pandas_and_polars() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    data = {"type": ["a", "b", None], "time": [NOON, NOON, NOON], "v": ["x", None, "z"], "n": [1.0, None, 2.0]}
    for reader in (from_pandas(pd.DataFrame(data)), from_polars(pl.DataFrame(data)), from_polars(pl.LazyFrame(data))):
        assert [(e.type, e.hi, e.attributes) for e in all_events(reader)] == [
            ("a", NOON_US, {"v": "x", "n": 1.0}),
            ("b", NOON_US, {}),
        ]
        assert reader.report.rejected == 1
    frame = pl.DataFrame(data).with_columns(pl.col("v").cast(pl.Categorical))
    assert [e.attributes.get("v") for e in all_events(from_polars(frame))] == ["x", None]


def test_pandas_with_objects_of_several_types() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"type": "a", "time": [1, [2, 3], pd.Timestamp(NOON), 4], "v": [1, "x", pd.NA, b"y"], "n": [1, 2, 3, 4]})
    reader = from_pandas(frame, batch_size=2)
    assert [(e.lo, e.hi, e.attributes) for e in all_events(reader)] == [
        (1000, 1000, {"v": 1.0, "n": 1.0}),
        (2000, 3000, {"v": "x", "n": 2.0}),
        (NOON_US, NOON_US, {"n": 3.0}),
    ]
    assert reader.report.rejected == 1


def test_what_is_no_table() -> None:
    with pytest.raises(InputError, match="not int"):
        from_arrow(3)


def made(kind: str, n: int, **values: Any) -> Event:
    return detection(kind, (1000, 2000), values, ((1000, 1000, 1, 0, "q1"), (2000, 2000, 0, 9, "9")), (2000, 0, 5, 1, 0, n))


def test_detections_to_arrow_and_back() -> None:
    table = to_arrow(EventBatch([made("hit", 0, v=1.0, time_lo="x"), made("hit", 1, v="t", w=True)]))
    assert table.schema.names == ["type", "time_lo", "time_hi", "from", "time_lo_", "v", "w"]
    assert table.column("from").to_pylist() == [["q1", "9"]] * 2
    assert table.schema.field("time_lo").type == pa.timestamp("us", "UTC")
    again = all_events(from_arrow(table))
    assert [(e.lo, e.hi, e.attributes) for e in again] == [
        (1000, 2000, {"v": 1.0, "time_lo_": "x"}),
        (1000, 2000, {"v": "t", "w": True}),
    ]


def test_columns_of_parquet_that_nobody_wants(tmp_path: Path) -> None:
    """They are left out only where no value of them could make a record a bad one."""
    table = pa.table(
        {
            "type": ["a", "b", "a"],
            "time": [1, 2, 3],
            "k": ["x", None, "y"],
            "n": [1, None, 3],
            "good": [0.5, 1.5, None],
            "bad": [1.0, math.inf, 2.0],
            "raw": pa.array([None, None, b"1"]),
            "@timestamp": [None, None, 5],
        }
    )
    pq.write_table(table, tmp_path / "e.parquet")
    whole = open_events(tmp_path / "e.parquet")
    events = all_events(whole)
    some = open_events(tmp_path / "e.parquet", attributes=frozenset({"k"}))
    assert [(e.type, e.hi, e.attributes) for e in all_events(some)] == [
        (e.type, e.hi, {name: value for name, value in e.attributes.items() if name in ("k", "bad")}) for e in events
    ]
    assert (some.report.rejected, some.report.reasons) == (2, whole.report.reasons)
    assert some.report.unread == {"n": 2, "good": 2}
    kept = open_events(tmp_path / "e.parquet", attributes=frozenset({"k"}), rejects=tmp_path / "rejects")
    assert all_events(kept) == events
