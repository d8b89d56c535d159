"""Mapping files, the guess at one, and units of time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coincide.adapters.guess import guess, records_of
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.mappingfile import load_mapping, parse_mapping
from coincide.adapters.timeunits import likely_unit, unit_of
from coincide.errors import InputError
from coincide.source import SourceText

WINDOWS = [
    {"@timestamp": "2026-05-04T08:00:00.1Z", "winlog": {"event_id": 4625, "computer_name": "pc1", "record_id": 10 + n,
     "event_data": {"TargetUserName": "eve"}}, "host": {"name": "pc1"}, "message": "An account failed to log on."}
    for n in range(3)
]  # fmt: skip
CLOUDTRAIL = [
    {"eventTime": f"2026-05-04T08:00:0{n}Z", "eventName": name, "eventType": "AwsApiCall", "eventID": f"e{n}",
     "userIdentity": {"type": kind}, "requestParameters": {"name": name, "type": "x"}}
    for n, (name, kind) in enumerate([("ConsoleLogin", "Root"), ("CreateUser", "IAMUser")])
]  # fmt: skip
CSV = "ts,kind,device,value\n1767225600,temp,s1,20.5\n1767225601,hum,s2,40\n"


def file(path: Path, text: str) -> str:
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "text", "mapping"),
    [
        (
            "w.jsonl",
            "".join(json.dumps(r) + "\n" for r in WINDOWS),
            FieldMapping(type="winlog.event_id", time="@timestamp", id="winlog.record_id", source="host.name"),
        ),
        ("w.json", json.dumps(WINDOWS, indent=2), FieldMapping(type="winlog.event_id", time="@timestamp", id="winlog.record_id",
         source="host.name")),
        ("c.json", json.dumps({"Records": CLOUDTRAIL}), FieldMapping(type="eventName", time="eventTime", id="eventID")),
        ("nested.jsonl", '{"ts":1767225600000,"payload":{"type":"a"}}\n', FieldMapping(type="payload.type", time="ts")),
        ("of-another.jsonl", '{"ts":1767225600000,"user":{"type":"a"},"action":"b"}\n', FieldMapping(type="action", time="ts")),
        ("ecs.jsonl", '{"ts":1767225600000,"user":{"type":"a"},"event":{"action":"b"}}\n',
         FieldMapping(type="event.action", time="ts")),
        ("r.csv", CSV, FieldMapping(type="kind", time="ts", source="device", unit="s")),
        ("p.jsonl", '{"type":"a","time":1,"v":2}\n', FieldMapping()),
        ("n.jsonl", '{"epoch":1767225600000000,"v":2}\n', FieldMapping(time="epoch", unit="us", constant_type="event")),
    ],
)  # fmt: skip
def test_guess(tmp_path: Path, name: str, text: str, mapping: FieldMapping) -> None:
    path = file(tmp_path / name, text)
    found = guess(records_of(path))
    assert found.mapping == mapping
    again = load_mapping(file(tmp_path / "m.yaml", found.text(name)))
    assert again == mapping


def test_mapping_file() -> None:
    text = """
events:
  type: winlog.event_id
  time: '@timestamp'
  time-unit: s
  untyped: true
types:
  ip: text
fields:
  Image: process.executable
"""
    found = parse_mapping(SourceText("m.yaml", text))
    assert found == FieldMapping("winlog.event_id", "@timestamp", unit="s", untyped=True, types=(("ip", "text"),))
    assert parse_mapping(SourceText("m.yaml", "")) == FieldMapping()


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("event: 1", "1:1", "unknown attribute 'event' of a mapping file"),
        ("events:\n  tme: x", "2:3", "unknown attribute 'tme' of 'events'"),
        ("events: [a]", "1:9", "must be a mapping"),
        ("events:\n  type: {a: b}", "2:9", "a text is wanted"),
        ("events:\n  untyped: maybe", "2:12", "true or false"),
        ("events:\n  time-unit: h", "1:1", "unknown time unit 'h'"),
        ("events: {", "1:10", "not well-formed YAML"),
        ("types: {a: text, a: text}", "1:18", "'a' is given twice"),
        ("[" * 3000, "1:101", "nested more than 100 deep"),
        ("events: \x01", "1:9", "special characters are not allowed"),
    ],
)
def test_wrong_mapping_files(text: str, place: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_mapping(SourceText("m.yaml", text))
    found = error.value.diagnostics[0]
    assert message in found.message
    assert found.head.startswith(f"m.yaml:{place}: ")


def test_units() -> None:
    day = 1767225600
    assert [unit_of([day * scale]) for scale in (1, 1000, 10**6, 10**9)] == ["s", "ms", "us", "ns"]
    assert unit_of([5.0]) is None
    assert likely_unit(day * 1000, day * 1000 + 5, "ms") == "s"
    assert likely_unit(day * 10**6, day * 10**6 + 5, "ms") is None
    assert likely_unit(1000, 5000, "ms") is None
    assert likely_unit(day * 10**9, day * 10**9, "ms") == "us"
