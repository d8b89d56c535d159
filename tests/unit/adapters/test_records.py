"""What a good record is, and what is said of a bad one."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta, timezone

import pytest

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.records import BadRecord, event_of
from coincide.errors import InputError
from coincide.model.compound import ValueRange, ValueSet
from coincide.model.space import Space
from coincide.model.stamp import LIMIT

BAD = [
    ({"time": 1}, "missing type"),
    ({"type": "", "time": 1}, "missing type"),
    ({"type": None, "time": 1}, "missing type"),
    ({"type": False, "time": 1}, "type must be text"),
    ({"type": {"a": 1}, "time": 1}, "type must be text"),
    ({"type": "a b", "time": 1}, "type must be a name"),
    ({"type": "1a", "time": 1}, "type must be a name"),
    ({"type": "a"}, "missing time"),
    ({"type": "a", "time": None}, "missing time"),
    ({"type": "a", "time": True}, "time must be"),
    ({"type": "a", "time": {}}, "time must be"),
    ({"type": "a", "time": "noon"}, "time must be"),
    ({"type": "a", "time": [1]}, "time must be"),
    ({"type": "a", "time": [1, None]}, "time must be"),
    ({"type": "a", "time": [1, 2, 3]}, "time must be"),
    ({"type": "a", "time": [2, 1]}, "ends before"),
    ({"type": "a", "time": 10**30}, "out of range"),
    ({"type": "a", "time": 1e300}, "out of range"),
    ({"type": "a", "time": float("nan")}, "out of range"),
    ({"type": "a", "time": 1, "id": True}, "id must be"),
    ({"type": "a", "time": 1, "id": [1, 2]}, "id must be"),
    ({"type": "a", "time": 1, "id": "9" * 5000}, "too long"),
    ({"type": "a", "time": 1, "source": {}}, "source must be"),
    ({"type": "a", "time": 1, "arrival": "soon"}, "arrival must be"),
    ({"type": "a", "time": 1, "space": 3}, "space must have"),
    ({"type": "a", "time": 1, "space": {}}, "space must have"),
    ({"type": "a", "time": 1, "space": {"x": 1}}, "space must have"),
    ({"type": "a", "time": 1, "space": {"x": 1, "y": "2"}}, "space must have"),
    ({"type": "a", "time": 1, "space": {"x": 1, "y": 2, "lat": 1, "lon": 2}}, "space must have"),
    ({"type": "a", "time": 1, "space": {"zone": 3}}, "space must have"),
    ({"type": "a", "time": 1, "v": {"w": b"x"}}, "attribute 'v.w' must be"),
    ({"type": "a", "time": 1, "v": 10**400}, "attribute 'v' is not a finite"),
    ({"type": "a", "time": 1, "v": float("inf")}, "attribute 'v' is not a finite"),
    ([1], "an object of fields"),
    (3, "an object of fields"),
]


@pytest.mark.parametrize(("raw", "reason"), BAD)
def test_bad_record(raw: object, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        event_of(raw, DEFAULT, 1)


def test_all_of_the_envelope() -> None:
    event = event_of(
        {"type": "seen", "time": [1, 2.5], "id": 7, "source": "s", "space": {"x": 1, "y": 2, "zone": "z"}, "arrival": 9, "v": 1},
        DEFAULT,
        3,
    )
    assert (event.type, event.lo, event.hi, event.id, event.source, event.arrival) == ("seen", 1000, 2500, "7", "s", 9000)
    assert event.space == Space(1.0, 2.0, zone="z")
    assert event.attributes == {"v": 1.0}
    assert isinstance(event.attributes["v"], float)
    assert event.origin == ((2500, 1000, 0, 7, "7"),)


@pytest.mark.parametrize(("raw", "text"), [(None, "3"), (5, "5"), (5.0, "5"), (1.5, "1.5"), ("x", "x"), (10**20, "1" + "0" * 20)])
def test_ids(raw: object, text: str) -> None:
    assert event_of({"type": "a", "time": 1, "id": raw}, DEFAULT, 3).id == text


@pytest.mark.parametrize(
    ("unit", "raw", "moment"),
    [
        ("s", 2, 2_000_000),
        ("s", 1.5, 1_500_000),
        ("ms", 0.1, 100),
        ("ms", 0.0004, 0),
        ("us", 7, 7),
        ("ns", 1999, 1),
        ("ns", 1999.0, 1),
        ("ns", -1, -1),
        ("ms", "1970-01-01T00:00:01Z", 1_000_000),
        ("ms", "1970-01-01 02:00:01+02:00", 1_000_000),
        ("ms", "1970-01-02", 86_400_000_000),
        ("us", LIMIT, LIMIT),
    ],
)
def test_times(unit: str, raw: object, moment: int) -> None:
    assert event_of({"type": "a", "time": raw}, FieldMapping(unit=unit), 1).hi == moment


def test_mapped_fields() -> None:
    mapping = FieldMapping(type="kind", time="start", end="stop", id="key", source="who", unit="s")
    raw = {"kind": "a", "start": 1, "stop": 2, "key": "k", "who": "w", "type": "hidden", "v": "x"}
    event = event_of(raw, mapping, 1)
    assert (event.type, event.lo, event.hi, event.id, event.source) == ("a", 1_000_000, 2_000_000, "k", "w")
    assert event.attributes == {"v": "x"}
    assert event_of({"kind": "a", "start": 1}, mapping, 1).hi == 1_000_000
    with pytest.raises(BadRecord, match="ends before"):
        event_of({"kind": "a", "start": 1, "stop": 0}, mapping, 1)


def test_constant_type() -> None:
    assert event_of({"time": 1, "type": 5}, FieldMapping(constant_type="tick"), 1).type == "tick"
    with pytest.raises(InputError, match="not a name"):
        FieldMapping(constant_type="a b")
    with pytest.raises(InputError, match="unknown time unit"):
        FieldMapping(unit="h")


def test_huge_integers_are_counted() -> None:
    huge: Counter[str] = Counter()
    event_of({"type": "a", "time": 1, "v": 2**53, "w": 2**53 + 1, "x": -(2**64) - 1, "y": 1e300}, DEFAULT, 1, huge)
    assert huge == {"x": 1}


def test_null_is_absent() -> None:
    assert event_of({"type": "a", "time": 1, "v": None, "space": None, "source": None}, DEFAULT, 1).attributes == {}


@pytest.mark.parametrize(
    ("raw", "attributes"),
    [
        ({"process": {"name": "sh", "parent": {"pid": 1}}}, {"process.name": "sh", "process.parent.pid": 1.0}),
        ({"process.name": "dotted", "process": {"name": "nested"}}, {"process.name": "dotted"}),
        ({"a.b": {"c": 1}, "a": {"b": {"c": 2}, "b.c": 3}}, {"a.b.c": 1.0}),
        ({"a.b": None, "a": {"b": 2}}, {"a.b": 2.0}),
        ({"v": ["x"], "w": [None], "u": [[1], [2]]}, {"v": ValueSet(("x",))}),
        ({"v": [1, None, "x"]}, {"v": ValueSet((1.0, "x"))}),
        ({"p": [{"n": "a", "i": 1}, {"n": "b"}]}, {"p.n": ValueSet(("a", "b")), "p.i": ValueSet((1.0,))}),
        ({"v": {"lo": 1, "hi": 2}}, {"v": ValueRange(1.0, 2.0), "v.lo": 1.0, "v.hi": 2.0}),
        ({"source": {"ip": "::1"}, "space": {"x": 1, "label": "q"}}, {"source.ip": "::1", "space.x": 1.0, "space.label": "q"}),
        ({"at": datetime(1970, 1, 1, 0, 0, 1)}, {"at": 1000.0}),
    ],
)
def test_nested_objects_are_dotted_names(raw: dict[str, object], attributes: dict[str, object]) -> None:
    event = event_of({"type": "a", "time": 1, **raw}, DEFAULT, 1)
    assert event.attributes == attributes
    assert (event.source, event.space) == (None, None)


@pytest.mark.parametrize(("raw", "kind"), [(4625, "4625"), (4625.0, "4625"), (1.5, "1.5"), ("4625", "4625"), (["a"], "a")])
def test_types_that_are_numbers(raw: object, kind: str) -> None:
    assert event_of({"type": raw, "time": 1}, DEFAULT, 1).type == kind


def test_mapped_fields_may_be_nested() -> None:
    raw = {"winlog": {"event_id": 4625, "time_created": "1970-01-01T02:00:01+02:00"}, "host": {"name": "pc"}}
    event = event_of(raw, FieldMapping(type="winlog.event_id", time="winlog.time_created", source="host.name"), 1)
    assert (event.type, event.hi, event.source, event.attributes) == ("4625", 1_000_000, "pc", {})


def test_time_in_timestamp() -> None:
    assert event_of({"type": "a", "@timestamp": "1970-01-01T00:00:01Z"}, DEFAULT, 1).hi == 1_000_000
    assert event_of({"type": "a", "@timestamp": 1, "time": 2}, DEFAULT, 1).hi == 2000
    zoned = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert event_of({"type": "a", "time": [zoned, date(1970, 1, 2)]}, DEFAULT, 1).stamp == (0, 86_400_000_000)


def test_records_without_a_type() -> None:
    mapping = FieldMapping(untyped=True)
    kinds = [
        event_of({"time": 1, **raw}, mapping, 1).type
        for raw in ({}, {"event": {"category": ["x y", "process"]}}, {"event.category": "file"}, {"type": 7})
    ]
    assert kinds == ["event", "process", "file", "7"]


def test_scalars_of_numpy() -> None:
    import numpy as np

    raw = {
        "type": "a",
        "time": np.datetime64("1970-01-01T00:00:01", "ns"),
        "n": np.int64(3),
        "x": np.float32(0.5),
        "b": np.bool_(True),
    }
    event = event_of(raw, DEFAULT, 1)
    assert (event.hi, event.attributes) == (1_000_000, {"n": 3.0, "x": 0.5, "b": True})


def test_arrays_in_arrays_where_records_need_no_type() -> None:
    raw = {"time": 1, "u": [[1], [2, [3]]], "p": [[{"n": "a"}], {"n": ["b", ["c"]]}], "from": "ann"}
    attributes = {"u": ValueSet((1.0, 2.0, 3.0)), "p.n": ValueSet(("a", "b", "c")), "from": "ann"}
    assert event_of(raw, FieldMapping(untyped=True), 1).attributes == attributes
