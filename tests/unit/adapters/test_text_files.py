"""JSON Lines and CSV: formats, bad records, and the columnar way against the way record by record."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.read import EventReader, open_events
from coincide.adapters.tableorder import arranged_tables, joined
from coincide.errors import InputError
from coincide.model.compound import ValueSet
from coincide.model.event import Event
from coincide.model.fields import LazyColumns

WHOLE = 1 << 22  # a block that is larger than any input here: all is read as objects
quick = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def all_events(reader: EventReader) -> list[Event]:
    """Events without their places, which only a table has before events are numbered."""
    return [e.placed(0) for batch in reader for e in batch.events]


def read(path: Path, data: bytes, block: int = WHOLE, mapping: FieldMapping = DEFAULT) -> tuple[list[Event], Any]:
    path.write_bytes(data)
    rejects = path.parent / "rejects"
    reader = open_events(path, mapping, block_size=block, rejects=rejects)
    return all_events(reader), (reader.report, rejects.read_bytes())


def same_both_ways(path: Path, data: bytes, mapping: FieldMapping = DEFAULT) -> tuple[list[Event], Any]:
    by_record = read(path, data, mapping=mapping)
    for block in (1, 60, 400):
        assert read(path, data, block, mapping) == by_record
        assert read_only(path, {"v"}, block, mapping) == (narrowed(by_record[0], {"v"}), by_record[1][0].reasons)
    return by_record


def read_only(path: Path, names: set[str], block: int, mapping: FieldMapping = DEFAULT) -> tuple[list[Event], list[str]]:
    """Events with these attributes, where the others need not be read."""
    reader = open_events(path, mapping, block_size=block, attributes=frozenset(names))
    return narrowed(all_events(reader), names), reader.report.reasons


def narrowed(events: list[Event], names: set[str]) -> list[Event]:
    return [
        msgspec.structs.replace(e, attributes={name: value for name, value in e.attributes.items() if name in names})
        for e in events
    ]


def lines(*records: object) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def test_json_lines(tmp_path: Path) -> None:
    data = lines({"type": "a", "time": 1, "v": 1}, {"type": "b", "time": [1, 2], "id": "x", "v": "t"})
    events, (report, _) = same_both_ways(tmp_path / "e.jsonl", data)
    assert [(e.type, e.lo, e.hi, e.id, e.attributes) for e in events] == [
        ("a", 1000, 1000, "1", {"v": 1.0}),
        ("b", 1000, 2000, "x", {"v": "t"}),
    ]
    assert (report.read, report.rejected, report.warnings) == (2, 0, [])


def test_bad_records_are_counted_shown_and_kept(tmp_path: Path) -> None:
    data = b'{"type":"a","time":1}\n\n{"type": "a" ,"time":[2,1]} \nnonsense\r\n{"type":"a","time":2}'
    events, (report, rejects) = same_both_ways(tmp_path / "e.jsonl", data)
    assert [e.id for e in events] == ["1", "4"]  # bad records count as positions, blank lines do not
    assert (report.read, report.rejected, report.accepted) == (4, 2, 2)
    name = tmp_path / "e.jsonl"
    assert report.reasons == [f"{name}:3: time interval ends before it begins", f"{name}:4: not JSON: invalid character (byte 4)"]
    assert rejects == b'{"type": "a" ,"time":[2,1]} \nnonsense\r\n'


@pytest.mark.parametrize("block", [1, WHOLE])
def test_strict_stops_and_leaves_no_rejects(tmp_path: Path, block: int) -> None:
    (tmp_path / "e.jsonl").write_bytes(lines({"type": "a", "time": 1}, {"time": 1}))
    with pytest.raises(InputError, match=r"e.jsonl:2: missing type") as caught:
        all_events(open_events(tmp_path / "e.jsonl", strict=True, rejects=tmp_path / "r", block_size=block))
    assert caught.value.exit_code == 2
    assert [p.name for p in tmp_path.iterdir()] == ["e.jsonl"]


def test_positions_go_on_over_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.ndjson"):
        (tmp_path / name).write_bytes(lines({"type": "a", "time": 1}, {}))
    (tmp_path / "c.csv").write_bytes(b"type,time\na,1\n")
    reader = open_events([tmp_path / "a.jsonl", tmp_path / "b.ndjson", tmp_path / "c.csv"])
    assert [e.id for e in all_events(reader)] == ["1", "3", "5"]


def test_huge_integers_warn_once(tmp_path: Path) -> None:
    data = lines(*[{"type": "a", "time": 1, "x": 2**64 + i, "y": 0.5} for i in range(4)])
    _, (report, _) = same_both_ways(tmp_path / "e.jsonl", data)
    assert report.warnings == [
        "attribute 'x' has integers of more than 64 bits (3 of them), which lose digits: give them as text"
    ]


def test_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + lines({"type": "a", "time": 1})
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbftype,time\na,1\n"))
    assert [e.id for e in all_events(open_events([tmp_path / "e.jsonl.gz", tmp_path / "e.csv.gz"]))] == ["1", "2"]
    (tmp_path / "e.jsonl.gz").write_bytes(gzip.compress(data)[:-12])
    with pytest.raises(InputError, match="cannot read"):
        all_events(open_events(tmp_path / "e.jsonl.gz"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines({"type": "a", "time": 1}))))
    assert [e.id for e in all_events(open_events("-"))] == ["1"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        all_events(open_events(tmp_path / "none.jsonl"))
    for name in ("events.xlsx", "events", "events.parquet.gz"):
        with pytest.raises(InputError, match="cannot tell the format"):
            open_events(name)


def test_small_inputs_import_no_arrow(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(lines({"type": "a", "time": 1}))
    (tmp_path / "e.csv").write_bytes(b"type,time\na,1\n")
    code = (
        "import sys\nfrom coincide.adapters.read import open_events\nfrom coincide.adapters.order import in_total_order\n"
        "from coincide.adapters.write import open_detections\n"
        "assert sum(map(len, in_total_order(open_events(sys.argv[1:])))) == 2\n"
        "assert not {'numpy', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "e.jsonl", tmp_path / "e.csv"], check=True)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([2**53 + 1, 2**63 - 1, 2**70, -(2**63) - 1, 0.5, 1e300, -0.0, 1e22]),
    st.sampled_from(["", "x", "ü\n", "2020-01-01", "2020-01-01 10:00:00", "12", "true", "nan"]),
)
nested = st.recursive(
    values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["x", "y", "lo", "hi", "x.y", "m n"]), inner, max_size=3)
    ),
    max_leaves=5,
)
times = st.one_of(
    st.integers(0, 5),
    st.sampled_from([0.5, 1e18, 2**53 + 1, "2020-01-01", "2020-01-01T10:00:00.5Z", "x", [1, 2], [2, 1], [0.5, 2], None]),
    st.just(["2020-01-01", "2020-01-02T01:00:00"]),
)
records = st.fixed_dictionaries(
    {},
    optional={"type": st.sampled_from(["a", "b-c", "", "1", 3, 4.5, "x y"]), "time": times, "id": values, "source": nested}
    | {"space": st.sampled_from([None, {"x": 1, "y": 2.5}, {"zone": "z"}, {}, {"lat": 1, "lon": "2"}, {"x": 1, "q": 2}, 4])}
    | {"arrival": times, "v": nested, "w": nested, "v.x": nested, "v.x.y": values, "@timestamp": times}
    | {"event": st.sampled_from([{"category": "a"}, {"category": ["x y", "b"]}, 7])},
)
good = st.fixed_dictionaries({"type": st.just("a"), "time": st.integers(0, 9)}, optional={"v": st.integers(), "w": st.text()})
junk = st.sampled_from(
    [b"", b"  ", b"{}{}", b'{"type":"a",', b'"time":1}', b'{"type":"a","time":NaN}', b"[1]", b'{"type":"\xff"}']
)
json_lines = st.one_of(records.map(lambda r: json.dumps(r).encode()), good.map(lambda r: json.dumps(r).encode()), junk)
breaks = st.sampled_from([b"\n", b"\r\n"])


@quick
@given(st.lists(st.one_of(good, records), max_size=6), breaks, st.booleans())
def test_json_columns_equal_records(tmp_path: Path, raw: list[object], end: bytes, untyped: bool) -> None:
    data = b"".join(json.dumps(r).encode() + end for r in raw)
    same_both_ways(tmp_path / "e.jsonl", data, FieldMapping(untyped=untyped))


filled = st.fixed_dictionaries(
    {"type": st.just("a"), "time": st.integers(0, 9)},
    optional={
        "process": st.fixed_dictionaries({"name": st.text(), "parent": st.fixed_dictionaries({"pid": st.integers(0, 9)})}),
        "process.name": st.text(),
        "tags": st.lists(st.sampled_from(["x", "y"]), min_size=1),
        "files": st.lists(st.fixed_dictionaries({"name": st.sampled_from("xyz"), "size": st.integers(0, 3)}), min_size=1),
    },
)


@quick
@given(st.lists(filled, min_size=1, max_size=6))
def test_nested_columns_equal_nested_records(tmp_path: Path, raw: list[object]) -> None:
    same_both_ways(tmp_path / "e.jsonl", lines(*raw))


def test_nested_records_come_as_columns(tmp_path: Path) -> None:
    raw = {"type": "a", "time": 1, "process": {"name": "sh", "args": ["-c", "ls"]}, "tags": ["x"]}
    (tmp_path / "e.jsonl").write_bytes(lines(*[raw] * 9))
    batches = list(open_events(tmp_path / "e.jsonl", block_size=90))
    assert all(batch.has_table for batch in batches)
    several = {"process.args": ValueSet(("-c", "ls"))}
    assert batches[0].events[0].attributes == {"process.name": "sh", "tags": ValueSet(("x",)), **several}


@quick
@given(st.lists(json_lines, max_size=6), breaks)
def test_json_columns_equal_records_in_any_text(tmp_path: Path, raw: list[bytes], end: bytes) -> None:
    same_both_ways(tmp_path / "e.jsonl", end.join(raw))


@quick
@given(
    st.lists(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_json_times_in_all_units(tmp_path: Path, raw: list[float], unit: str) -> None:
    data = lines(*[{"type": "a", "time": t} for t in raw])
    same_both_ways(tmp_path / "e.jsonl", data, FieldMapping(unit=unit))


CSV = b"""type,time,id,source,space.x,space.y,v,w
a,1,007,s,1,2,3,true
b,2.5,,,,,x,"say ""hi"", \nyou"
"""


def test_csv(tmp_path: Path) -> None:
    events, (report, _) = same_both_ways(tmp_path / "e.csv", CSV)
    assert [(e.hi, e.id, e.source, e.attributes) for e in events] == [
        (1000, "007", "s", {"v": "3", "w": "true"}),
        (2500, "2", None, {"v": "x", "w": 'say "hi", \nyou'}),
    ]
    assert [e.space and e.space.point for e in events] == [(1.0, 2.0), None]
    assert report.read == 2


def test_bad_rows_of_csv(tmp_path: Path) -> None:
    data = b'type,time,v\na,1,"x\ny"\n\na,1\na,\xff,1\n,1,1\na,2020-01-01,\n'
    events, (report, rejects) = same_both_ways(tmp_path / "e.csv", data)
    assert [e.id for e in events] == ["1", "5"]
    assert [r.split(".csv:")[1] for r in report.reasons] == ["5: has 2 cells, the header 3", "6: not UTF-8", "7: missing type"]
    assert [json.loads(r) for r in rejects.splitlines()][::2] == [["a", "1"], {"type": None, "time": 1, "v": "1"}]


def test_columns_of_csv_that_nobody_wants(tmp_path: Path) -> None:
    """They are not read, unless something in them can be wrong; then the same records are as wrong as ever."""
    header, good = "type,time,v,text,number,empty", [f"a,{n},{n % 7},t{n},{n}.5," for n in range(1, 9_000)]
    for number, last in enumerate(
        (b"a,9001,1,t,1e400,x", b"a,9001,1,\xff,1,x", b"a,9001,1,1e400,1,x", b"a,9001,1,t,none,", b"a,9001")
    ):
        path = tmp_path / f"{number}.csv"
        path.write_bytes("\n".join([header, *good]).encode() + b"\n" + last + b"\na,9002,1,t,1,\n")
        whole = open_events(path, block_size=30_000)
        events = narrowed(all_events(whole), {"v"})
        assert read_only(path, {"v"}, 30_000) == (events, whole.report.reasons)
        assert whole.report.rejected == (number in (0, 1, 4))
    path.write_bytes("\n".join([header, *good]).encode())
    some = open_events(path, block_size=30_000, attributes=frozenset({"v"}))
    assert [sorted(e.attributes) for e in all_events(some)] == [["v"]] * len(good)
    assert some.report.unread == {"text": len(good), "number": len(good)}


def test_csv_header_twice(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_bytes(b"type,time,v,v\n")
    with pytest.raises(InputError, match="'v' more than once"):
        all_events(open_events(tmp_path / "e.csv"))


plain = ["", "1", "-2.5", "+3", "007", "1e3", "0x1F", "5.", ".5", "nan", "inf", "1e999", "true", "False", "text", " 1"]
special = ["9007199254740993", "2020-01-01", "2020-01-01T00:00Z", "a\rb", "'"]
quoted = ['"q"', '"1"', '""', '"a,b"', '"a\nb"', '"a""b"', 'a"b', '"a"b', '"']
cells = st.sampled_from([*plain, *special, *quoted])


@quick
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "", "1"]), st.one_of(st.just("1"), cells), cells, cells), max_size=5), breaks
)
def test_csv_columns_equal_rows(tmp_path: Path, rows: list[tuple[str, ...]], end: bytes) -> None:
    text = end.join([b"type,time,v,id", *(",".join(row).encode() for row in rows)])
    same_both_ways(tmp_path / "e.csv", text)


@quick
@given(st.lists(st.tuples(st.just("a"), st.just("1"), cells, cells), max_size=5))
def test_csv_columns_equal_rows_where_all_is_well(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    same_both_ways(tmp_path / "e.csv", "\n".join(["type,time,v,w", *(",".join(row) for row in rows)]).encode())


spelt = ["0", "7", "-12", "345", "-0", "007", "+3", " 1", "2 ", "0x1F", "0x7FFFFFFFFFFFFFFF", "9223372036854775807", "1e3", ""]


@quick
@given(st.lists(st.tuples(*[st.one_of(st.integers(-200, 200).map(str), st.sampled_from(spelt))] * 3), max_size=6))
def test_whole_numbers_of_csv_in_any_spelling(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    """Arrow takes them for numbers in more spellings than we do, and tells us none."""
    sure = ["a,1,1,1,x", "b,2,2,2,y", ",3,3,3,"]
    same_both_ways(
        tmp_path / "e.csv", "\n".join(["type,time,id,v,w", *sure, *("a," + ",".join(r) + ",é" for r in rows)]).encode()
    )
    same_both_ways(tmp_path / "f.csv", b"\n".join([b"type,time,id,w", b"a,1,1,x", b"\xff,2,2,y", b"b,3,3,\xff", b"b,4,4,y"]))


def test_records_with_names_of_their_own_are_no_wide_table(tmp_path: Path) -> None:
    raw = [{"type": "a", "time": n, "k": n % 3, f"name_{n}": n, "in": {f"inner_{n}": "x"}} for n in range(1000)]
    (tmp_path / "e.jsonl").write_bytes(lines(*raw))
    batches = list(open_events(tmp_path / "e.jsonl", block_size=1 << 14))
    assert not any(batch.has_table for batch in batches)
    tables = [batch.table for batch in batches]
    (whole,) = arranged_tables([joined(tables).take(np.arange(999, -1, -1))], 2000)
    assert isinstance(whole.fields, LazyColumns)
    assert len(whole.attributes) == 2001
    assert [whole.column("name_7").value(row) for row in (6, 7, 8)] == [None, 7.0, None]
    assert whole.column("in.inner_999").value(999) == "x"
    assert whole.column("k").value(5) == 2.0
    assert len(whole.fields._waiting) > 1990  # nobody has asked for them


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["007", "x"], ["007", "x"]),
        (["007", "8"], ["007", "8"]),
        (["7", "8.5"], [7.0, 8.5]),
        (["7", "x"], ["7", "x"]),
        (["true", "False"], [True, False]),
        (["true", "1"], ["true", "1"]),
        (["1", ""], [1.0, None]),
    ],
)
def test_a_column_of_csv_has_one_type(tmp_path: Path, cells: list[str], values: list[object]) -> None:
    text = "".join(["type,time,v\n", *(f"a,1,{cell}\n" for cell in cells)]).encode()
    events, _ = same_both_ways(tmp_path / "e.csv", text)
    assert [event.attributes.get("v") for event in events] == values


@pytest.mark.brief(parameters=3)
@pytest.mark.parametrize("last", ["8", "x", "007", "true", "nan", "9007199254740993"])
def test_the_last_row_of_csv_decides_the_types_of_columns(tmp_path: Path, last: str) -> None:
    text = "".join(["type,time,v\n", *(f"a,{n},{n}\n" for n in range(60)), f"a,60,{last}\n"]).encode()
    same_both_ways(tmp_path / "e.csv", text)
    same_both_ways(tmp_path / "f.csv", text + b"a,no time,1\n")


def test_csv_whose_first_rows_tell_its_types_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.adapters.csvfile._types", None)
    text = "".join(["type,time,v,w\n", *(f"a,{n},{n / 2},{n % 2 == 0}\n" for n in range(100))]).encode()
    events, (report, _) = read(tmp_path / "e.csv", text, 400)
    assert [event.attributes for event in events] == [{"v": n / 2, "w": n % 2 == 0} for n in range(100)]
    assert report.read == 100


def test_types_of_csv_columns_that_are_given(tmp_path: Path) -> None:
    mapping = FieldMapping(types=(("v", "text"), ("w", "number")))
    events, (report, _) = same_both_ways(tmp_path / "e.csv", b"type,time,v,w\na,1,7,007\na,2,8,x\n", mapping)
    assert [event.attributes for event in events] == [{"v": "7", "w": 7.0}]
    assert report.reasons[0].endswith("'w' must be a number")
    with pytest.raises(InputError, match="unknown type 'int' of column 'v'"):
        FieldMapping(types=(("v", "int"),))


def test_arrays_folders_and_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    raw = [{"type": "a", "time": 1, "v": {"w": 2}}, {"type": "b"}, {"type": "b", "time": 3}]
    folder = tmp_path / "events"
    (folder / "more").mkdir(parents=True)
    (folder / "1.json").write_bytes(json.dumps(raw, indent=1).encode())
    (folder / "more" / "2.csv").write_bytes(b"type,time\nc,4\n")
    (folder / "notes.txt").write_bytes(b"nothing")
    with pa.output_stream(str(folder / "3.jsonl.zst"), compression="zstd") as stream:
        stream.write(lines({"type": "d", "time": 5}))
    reader = open_events(folder)
    assert [e.type for e in all_events(reader)] == ["a", "b", "d", "c"]
    assert reader.report.reasons == [f"{folder}/1.json: record 2: missing time"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"type,time\nz,1\n")))
    assert [e.type for e in all_events(open_events("-", format="csv"))] == ["z"]
    with pytest.raises(InputError, match="unknown format 'xml'"):
        open_events("-", format="xml")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="has no files of events"):
        open_events(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "data"),
    [("e.jsonl", lines(*[{"type": "a", "time": i, "v": "x"} for i in range(99)])), ("e.csv", b"type,time,v\n" + b"a,1,x\n" * 99)],
)
def test_large_inputs_come_as_columns(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert all(batch.has_table for batch in open_events(tmp_path / name, block_size=500))
    assert not any(batch.has_table for batch in open_events(tmp_path / name))


def test_a_fraction_in_a_column_costs_whole_times_no_digits(tmp_path: Path) -> None:
    """Found by a random case: in a column of doubles, 1000 times a whole number was rounded."""
    data = lines(*({"type": "a", "time": time} for time in (-100_000_000_000_001, 0.5)))
    events, _ = same_both_ways(tmp_path / "e.jsonl", data)
    assert [e.hi for e in events] == [-100_000_000_000_001_000, 500]
