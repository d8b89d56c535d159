"""Logs of machines: syslog, the journal of systemd, events of Windows in the forms that tools write, and as its own files."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from evtx_support import evtx_file

import coincide
from coincide.adapters.guess import records_of
from coincide.adapters.journal import journal_record
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.read import open_events
from coincide.adapters.records import BadRecord
from coincide.adapters.syslog import syslog_reader
from coincide.adapters.winlog import windows_record
from coincide.cli.main import main
from coincide.engines.embedded import run
from coincide.errors import InputError
from coincide.model.event import Event

WRITTEN = datetime(2026, 3, 1, tzinfo=UTC)


def events(path: Path, format: str | None = None, type: str = "type") -> list[Event]:
    reader = open_events(path, FieldMapping(type=type), format=format, strict=True)
    return [event for batch in reader for event in batch.events]


# Syslog. The lines are the examples of the RFCs.


def test_current_syslog() -> None:
    read = syslog_reader(WRITTEN)
    su = (
        b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed for lonvick on /dev/pts/8"
    )
    assert read(su) == {
        "type": "syslog", "log.syslog.priority": 34, "log.syslog.facility.name": "auth", "log.syslog.severity.name": "critical",
        "log.syslog.severity.code": 2, "time": "2003-10-11T22:14:15.003Z", "host.hostname": "mymachine.example.com",
        "process.name": "su", "log.syslog.msgid": "ID47", "message": "'su root' failed for lonvick on /dev/pts/8",
    }  # fmt: skip
    process = read(b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.")
    assert (process["process.pid"], process["message"]) == (8710, "%% It's time to make the do-nuts.")
    elements = b'[exampleSDID@32473 iut="3" eventSource="Appli\\"cation" eventID="1011"][examplePriority@32473 class="high"]'
    data = read(b"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 " + elements)
    assert data["log.syslog.structured_data.exampleSDID@32473.eventSource"] == 'Appli"cation'
    assert data["log.syslog.structured_data.examplePriority@32473.class"] == "high"
    assert "message" not in data


def test_old_syslog() -> None:
    read = syslog_reader(WRITTEN)
    su = read(b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8")
    assert (su["time"], su["host.hostname"], su["process.name"]) == ("2025-10-11T22:14:15Z", "mymachine", "su")
    plain = read(b"<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!")
    assert (plain["time"], plain["message"]) == ("2026-02-05T17:32:18Z", "Use the BFG!")
    file = read(b"Mar  1 23:59:59 web sshd[4242]: Failed password for root from 203.0.113.7 port 22 ssh2\r\n")
    assert (file["time"], file["process.pid"]) == ("2026-03-01T23:59:59Z", 4242)  # a day ahead may be another zone
    assert read(b"Feb 29 00:00:00 web cron: x")["time"] == "2024-02-29T00:00:00Z"
    today = read(b"2026-02-28T10:00:00.123456+01:00 web systemd[1]: Started x.")
    assert (today["time"], today["process.name"], today["message"]) == (
        "2026-02-28T10:00:00.123456+01:00",
        "systemd",
        "Started x.",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello", "not syslog"), (b"<999>1 - - - - - -", "at most 191"), (b"<34>1 - host a - - -", "missing time"),
        (b"<34>2 2003-10-11T22:14:15Z host a - - -", "version 2"), (b"<34>1 2003-10-11T22:14:15Z h a - - [x y", "not closed"),
        (b"<34>1 2003-10-11T22:14:15Z h a - - x", "in brackets"), (b"Feb 31 00:00:00 h a: x", "is not a time"),
    ],
)  # fmt: skip
def test_bad_syslog(line: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        syslog_reader(WRITTEN)(line)


def test_a_rule_over_a_file_of_syslog(tmp_path: Path) -> None:
    log = tmp_path / "auth.log"
    failed = [f"Feb 28 10:00:0{n} web sshd[7]: Failed password for root from 203.0.113.7 port 22 ssh2\n" for n in range(3)]
    log.write_text("".join([*failed, "Feb 28 10:00:09 web sshd[8]: Accepted password for root from 203.0.113.7\n", "what?\n"]))
    os.utime(log, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    rules = coincide.loads(
        """// @name guessed
        sequence by host.hostname with maxspan=1m
          [syslog where process.name == "sshd" and message : "Failed password*"] with runs=3
          [any where message : "Accepted *"]""",
        "eql",
    )
    reader = open_events(log, rules.fields(DEFAULT), format="syslog")
    (found,) = [record for batch in run(rules, reader) for record in batch.records()]
    assert (found["type"], found["host.hostname"], found["from"]) == ("guessed", "web", ["1", "2", "3", "4"])
    assert reader.report.rejected == 1


# The journal, as `journalctl -o json` documents it.


def test_journal(tmp_path: Path) -> None:
    entry = {
        "__CURSOR": "s=1;i=2", "__REALTIME_TIMESTAMP": "1423944916375353", "PRIORITY": "6", "_HOSTNAME": "web", "_PID": "480",
        "SYSLOG_IDENTIFIER": "systemd-shutdown", "MESSAGE": [72, 255, 105], "_SYSTEMD_UNIT": "x.service", "_UID": "0",
        "CODE_FUNC": ["a", "b"], "COREDUMP": None,
    }  # fmt: skip
    record = journal_record(entry)
    assert record["message"] == record["MESSAGE"] == "H\ufffdi"
    assert (record["process.pid"], record["user.id"], record["log.syslog.severity.name"]) == (480, 0, "informational")
    log = tmp_path / "journal.json"
    log.write_text(json.dumps(entry) + "\n")
    (event,) = events(log, "journal")
    assert (event.type, event.hi, event.id) == ("journal", 1423944916375353, "s=1;i=2")
    with pytest.raises(BadRecord, match="missing __REALTIME_TIMESTAMP"):
        journal_record({"MESSAGE": "x"})


@pytest.mark.parametrize("format", ["syslog", "winlog"])
def test_large_logs_are_read_as_columns(format: str, tmp_path: Path) -> None:
    """With the same result, and bad lines told with their places."""
    line = "<34>1 2026-01-01T00:00:00Z web su - ID47 - hello" if format == "syslog" else json.dumps(FORMS["evtx_dump"])
    log = tmp_path / "log"
    log.write_text(f"{line}\n" * 50 + "bad\n" + f"{line}\n\n" * 50)
    mapping = FieldMapping(untyped=True)
    small, large = (open_events(log, mapping, format=format, block_size=size) for size in (1 << 20, 2_000))
    whole = [record for batch in small for record in batch.records()]
    batches = list(large)
    assert any(batch.has_table for batch in batches)
    assert [record for batch in batches for record in batch.records()] == whole
    assert len(whole) == 100
    assert large.report.reasons == small.report.reasons
    assert f"{log}:51: not" in small.report.reasons[0]


# Windows: one event in the forms of different tools, and a rule of Sigma that finds it in each.

DATA = {"Image": "C:\\Windows\\System32\\cmd.exe", "CommandLine": "cmd /c whoami", "User": "PC\\ann", "ProcessId": "42"}
TIME = "2026-01-01T00:00:00.123456Z"
SYSTEM = {
    "Provider": {"#attributes": {"Name": "Microsoft-Windows-Sysmon"}}, "EventID": 1, "EventRecordID": 7, "Computer": "pc",
    "TimeCreated": {"#attributes": {"SystemTime": TIME}}, "Channel": "Microsoft-Windows-Sysmon/Operational",
}  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "evtx_dump": {"Event": {"#attributes": {"xmlns": "…"}, "System": SYSTEM, "EventData": DATA}},
    "xmltodict": {
        "Event": {
            "System": SYSTEM | {"EventID": {"@Qualifiers": "0", "#text": "1"}, "TimeCreated": {"@SystemTime": TIME}},
            "EventData": {"Data": [{"@Name": name, "#text": value} for name, value in DATA.items()]},
        }
    },
    "Winlogbeat": {
        "@timestamp": TIME,
        "event": {"code": "1", "category": ["process"], "provider": "Microsoft-Windows-Sysmon"},
        "winlog": {"event_id": "1", "channel": "Microsoft-Windows-Sysmon/Operational", "computer_name": "pc", "event_data": DATA},
    },
    "OTRF": {"@timestamp": TIME, "EventID": 1, "Channel": "Microsoft-Windows-Sysmon/Operational", "Hostname": "pc", **DATA},
    "PowerShell": {"Id": 1, "TimeCreated": "/Date(1767225600123)/", "Channel": "Microsoft-Windows-Sysmon/Operational", **DATA},
}
RULE = """
title: Whoami
logsource: {category: process_creation, product: windows}
detection: {seen: {CommandLine|contains: whoami}, condition: seen}
"""


@pytest.mark.parametrize("form", FORMS)
def test_windows(form: str, tmp_path: Path) -> None:
    record = windows_record(FORMS[form])
    assert {name: record[name] for name in DATA} == DATA
    assert (record["EventID"], record["Channel"]) == (1, "Microsoft-Windows-Sysmon/Operational")
    log = tmp_path / "log.json"
    log.write_text(json.dumps([FORMS[form]]))
    (event,) = events(log, "winlog", type="EventID")
    assert event.hi // 1000 == 1767225600123
    assert _found(log, "winlog") == ["whoami"]


def _found(log: Path, format: str | None = None) -> list[str]:
    folder = log.parent / "rules"
    folder.mkdir()
    (folder / "whoami.yml").write_text(RULE)
    rules = coincide.load(folder, sigma_mapping="sysmon")
    batches = run(rules, open_events(log, rules.fields(DEFAULT), format=format))
    return [event.type for batch in batches for event in batch.events]


def test_what_is_no_event_of_windows() -> None:
    for raw in ({"a": 1}, {"Event": {"EventData": {}}}, {"winlog": {}}, [1]):
        with pytest.raises(BadRecord):
            windows_record(raw)


def test_data_without_names_and_of_users() -> None:
    service = {"System": SYSTEM | {"EventID": 7036}, "EventData": {"Data": ["Print Spooler", "stopped"]}}
    assert windows_record({"Event": service})["Data"] == ["Print Spooler", "stopped"]
    cleared = {"System": SYSTEM | {"EventID": 1102}, "UserData": {"LogFileCleared": {"SubjectUserName": "ann"}}}
    assert windows_record({"Event": cleared})["SubjectUserName"] == "ann"


def test_files_of_windows(tmp_path: Path) -> None:
    data = "".join(f'<Data Name="{name}">{value}</Data>' for name, value in DATA.items())
    system = f'<Provider Name="Microsoft-Windows-Sysmon"/><EventID>1</EventID><TimeCreated SystemTime="{TIME}"/>'
    event = ElementTree.fromstring(f"<Event><System>{system}</System><EventData>{data}</EventData></Event>")
    log = tmp_path / "Sysmon.evtx"
    log.write_bytes(evtx_file([(event, 1767225600123456)] * 3))
    first, *rest = events(log, type="EventID")
    assert len(rest) == 2
    assert (first.type, first.hi, first.attributes["Image"]) == ("1", 1767225600123456, DATA["Image"])
    assert first.attributes["Provider_Name"] == "Microsoft-Windows-Sysmon"
    assert _found(log) == ["whoami"] * 3
    log.write_bytes(b"no log")
    with pytest.raises(InputError, match=r"cannot read '.*Sysmon\.evtx'"):
        events(log)


GUESSING = """
title: Logon from Elsewhere Fails
level: medium
logsource: {product: windows, service: security}
detection:
    failed: {EventID: 4625, LogonType: 10}
    local: {IpAddress|cidr: [10.0.0.0/8, 127.0.0.0/8]}
    condition: failed and not local
fields: [TargetUserName, IpAddress]
"""
BLOCKED_THEN_TRIED = """sequence with maxspan=1m
  [any where EventID == 5152 and DestPort == 3389] by SourceAddress
  [any where EventID == 4625] by IpAddress"""


def test_a_log_that_windows_has_written(tmp_path: Path) -> None:
    log = tmp_path / "Security.evtx"
    log.write_bytes(gzip.decompress((Path(__file__).parent / "logs" / "security.evtx.gz").read_bytes()))
    found = events(log, type="EventID")
    assert [event.type for event in found] == ["5152", "4611", "4776", "4625", "5152", "5157", "4673"]
    assert found[4].hi == 1467213897090800
    assert found[3].attributes["SubStatus"] == "0xc000006a"
    assert {event.attributes["Channel"] for event in found} == {"Security"}
    (tmp_path / "failed.yml").write_text(GUESSING)
    (tmp_path / "tried.eql").write_text(BLOCKED_THEN_TRIED)
    rules = coincide.load(tmp_path / "failed.yml", tmp_path / "tried.eql", sigma_mapping="windows")
    made = [e for batch in run(rules, open_events(log, rules.fields(DEFAULT))) for e in batch.events]
    assert [(e.type, e.attributes.get("IpAddress") or e.attributes.get("SourceAddress")) for e in made] == [
        ("logon_from_elsewhere_fails", "23.94.153.202"),
        ("tried", "23.94.153.202"),
    ]


STOPPED = """
title: Trail Stopped
logsource: {product: aws, service: cloudtrail}
detection: {selection: {eventSource: cloudtrail.amazonaws.com, eventName: [StopLogging, DeleteTrail]}, condition: selection}
fields: [userIdentity.arn, sourceIPAddress]
"""


@pytest.mark.parametrize("indent", [None, 4])
def test_files_of_cloudtrail(indent: int | None, tmp_path: Path) -> None:
    """As they are delivered: one object with all records, compressed."""
    base = {"eventSource": "cloudtrail.amazonaws.com", "awsRegion": "us-east-1", "sourceIPAddress": "192.0.2.0"}
    user = {"type": "IAMUser", "arn": "arn:aws:iam::777788889999:user/Nikki", "userName": "Nikki"}
    records = [
        {**base, "userIdentity": user, "eventTime": f"2023-07-19T21:25:0{n}Z", "eventName": name, "eventID": f"e{n}"}
        for n, name in enumerate(["DescribeTrails", "StopLogging"])
    ]
    log = tmp_path / "trail.json.gz"
    log.write_bytes(gzip.compress(json.dumps({"Records": records}, indent=indent).encode()))
    (tmp_path / "r.yml").write_text(STOPPED)
    out = tmp_path / "out.jsonl"
    command = ["run", str(tmp_path / "r.yml"), "--events", str(log), "--sigma-mapping", "cloudtrail", "--out", str(out)]
    assert main(command) == 0
    (found,) = map(json.loads, out.read_text().splitlines())
    assert (found["from"], found["userIdentity.arn"], found["sourceIPAddress"]) == (["e1"], user["arn"], "192.0.2.0")
    assert [record["eventName"] for record in records_of(str(log))] == ["DescribeTrails", "StopLogging"]
