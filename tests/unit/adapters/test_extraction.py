"""Attributes inside texts: one by one, over columns and on Spark alike."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide.adapters.columns import events_of_columns
from coincide.adapters.extraction import Extract, of_series
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.mappingfile import parse_mapping
from coincide.adapters.records import event_of
from coincide.cli.main import main
from coincide.errors import InputError
from coincide.source import SourceText

FILE = r"""
extract:
  user.name: {from: message, pattern: ' for (?:invalid user )?(\S+) from '}
  source.ip: {from: message, pattern: [' from (\S+) port ', 'rhost=(\S+)']}
  source.port: {from: message, pattern: ' port ([0-9]+)', type: number}
  word: {from: message, pattern: '^[A-Z][a-z]+'}
"""
LINES = (
    "Failed password for root from 203.0.113.7 port 4711 ssh2",
    "Failed password for invalid user ann from 203.0.113.7 port 4712 ssh2",
    "authentication failure; rhost=198.51.100.1",
    "Accepted password for ann from 203.0.113.7 port 4713 ssh2",
    "é for ü from ",
    "",
)
QUERY = """// @name guessed
// @fields user.name, source.port
sequence by source.ip with maxspan=1m [any where message : "Failed*"] with runs=2 [any where word == "Accepted"]"""
EXPECTED = [
    {
        "type": "guessed",
        "time": [0, 3],
        "from": ["0", "1", "3"],
        "source.ip": "203.0.113.7",
        "source.port": 4711,
        "user.name": "root",
    }
]


def mapping(**others: Any) -> FieldMapping:
    return FieldMapping(extracts=parse_mapping(SourceText("m.yml", FILE)).extracts, **others)


def records() -> list[dict[str, Any]]:
    return [{"type": "log", "time": n, "id": str(n), "message": line} for n, line in enumerate(LINES)]


def test_a_record_has_what_its_texts_hold() -> None:
    found = [event_of(record, mapping(), 1).attributes for record in records()]
    assert found[1] == {
        "message": LINES[1], "user.name": "ann", "source.ip": "203.0.113.7", "source.port": 4712.0, "word": "Failed",
    }  # fmt: skip
    assert found[2] == {"message": LINES[2], "source.ip": "198.51.100.1"}
    assert found[4] == {"message": LINES[4], "user.name": "ü"}
    assert found[5] == {"message": ""}


def test_what_a_record_has_of_its_own_stays() -> None:
    own = {"type": "log", "time": 1, "message": LINES[0], "user": {"name": "me"}, "source.port": 0}
    found = event_of(own, mapping(), 1).attributes
    assert (found["user.name"], found["source.port"], found["source.ip"]) == ("me", 0.0, "203.0.113.7")


def test_types_of_events_can_be_extracted() -> None:
    by_word = FieldMapping(extracts=(Extract("type", "message", (r"^\w+",)),))
    assert event_of({"time": 1, "message": LINES[0]}, by_word, 1).type == "Failed"


values = st.sampled_from([*LINES, None, "x for a from b port 1", 7, ["no", LINES[0]]])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(values, st.sampled_from([None, "", "me"])), min_size=1, max_size=6))
def test_columns_hold_what_records_do(rows: list[tuple[Any, Any]]) -> None:
    raw = [{"type": "log", "time": n, "message": message, "user.name": own} for n, (message, own) in enumerate(rows)]
    expected = [event_of(record, mapping(untyped=True), n) for n, record in enumerate(raw, 1)]
    texts = all(isinstance(message, str) or message is None for message, _ in rows)
    if not texts:  # columns of Arrow have one type
        raw = [{**r, "message": r["message"] if isinstance(r["message"], list) else None} for r in raw]
        expected = [event_of(record, mapping(untyped=True), n) for n, record in enumerate(raw, 1)]
    columns = {name: pa.array([record[name] for record in raw]) for name in raw[0]}
    table, faults = events_of_columns(columns, len(raw), mapping(untyped=True), 1, Counter())
    assert not faults
    assert [(e.type, e.attributes) for e in table.events()] == [(e.type, _plain(e.attributes)) for e in expected]


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_they_can_be_keys(tier: str) -> None:
    assert list(coincide.run(coincide.loads(QUERY, "eql"), records(), mapping=mapping(), tier=tier)) == EXPECTED


@pytest.mark.spark
def test_on_spark(spark: Any) -> None:
    from coincide import spark as on_spark

    frame = spark.createDataFrame(
        [(r["type"], r["time"], r["id"], r["message"]) for r in records()], "type string, time long, id string, message string"
    )
    (row,) = on_spark.detect(coincide.loads(QUERY, "eql"), frame, mapping=mapping()).collect()
    assert (row["from"], row["source.ip"], row["user.name"], row["source.port"]) == (
        ["0", "1", "3"],
        "203.0.113.7",
        "root",
        4711.0,
    )


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("extract: {a: {from: m}}", "1:14", "'a' needs 'pattern'"),
        ("extract: {a: {from: m, pattern: '(a'}}", "1:33", "invalid regular expression: missing )"),
        ("extract: {a: {from: m, pattern: '(?=a)'}}", "1:33", "invalid regular expression: invalid perl operator"),
        ("extract: {a: {from: m, pattern: a, kind: x}}", "1:36", "unknown attribute 'kind' of 'a'"),
        ("extract: {a: {from: m, pattern: a, type: x}}", "1:33", "unknown type 'x' of 'a'"),
        ("extract: {a: {from: a, pattern: a}}", "1:33", "'a' cannot be extracted from itself"),
        ("extract: [a]", "1:10", "'extract' must be a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_mapping(SourceText("m.yml", text))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert message in diagnostic.message
    assert f"{diagnostic.span.line}:{diagnostic.span.column}" == place


def test_from_a_log_to_the_one_who_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"Jan  1 10:00:0{n} web sshd[1]: {line}" for n, line in enumerate(LINES[:4])]
    (tmp_path / "auth.log").write_text("\n".join(lines))
    (tmp_path / "m.yml").write_text(FILE)
    (tmp_path / "r.eql").write_text(QUERY)
    code = main(
        [
            *("run", str(tmp_path / "r.eql"), "--events", str(tmp_path / "auth.log")),
            "--format",
            "syslog",
            "--mapping",
            str(tmp_path / "m.yml"),
        ]
    )
    out = capsys.readouterr().out
    assert code == 0
    assert '"source.ip":"203.0.113.7"' in out


def test_series_for_spark() -> None:
    pandas, numpy = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    by_name = {extract.name: extract for extract in mapping().extracts}
    texts = pandas.Series([LINES[0], None, LINES[2]])
    assert of_series(by_name["user.name"])(texts).tolist() == ["root", None, None]
    ports = of_series(by_name["source.port"])(pandas.Series([numpy.array([LINES[5], LINES[1]], object), None]))
    assert (ports[0], ports.isna().tolist()) == (4712.0, [False, True])
