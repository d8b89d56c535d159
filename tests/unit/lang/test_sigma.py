"""Sigma: what the cases do not say of reading rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.errors import RuleError
from coincide.lang.sigma.parse import parse
from coincide.lang.sigma.print import _text, print_file
from coincide.rulebook import load, mapping_path
from coincide.source import Reading, SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases" / "sigma"
FILES = sorted(path for path in CASES.rglob("*.y*ml") if path.name != "mapping.yml")

GOOD = "title: good\nlogsource: {category: log}\nlevel: high\ndetection: {s: {a: 1}, condition: s}\n"
LOW = "title: low\nlogsource: {category: log}\nlevel: low\ndetection: {s: {a: 1}, condition: s}\n"
BAD = "title: bad\nname: bad\nlogsource: {category: log}\ndetection: {s: {a|nonsense: 1}, condition: s}\n"
NEEDS_BAD = "title: needs\ncorrelation: {type: event_count, rules: [bad], timespan: 5m, condition: {gte: 2}}\n"
ODD = ["a\u0085b", "tab\tline\nend ", "\ufeffx", 'it\'s "so" # no comment', "0x1f", "yes", "~", "=", "\U0001f600"]
EVENT = {"type": "log", "time": 1, "a": 1}


@pytest.mark.parametrize("file", [pytest.param(f, id="/".join(f.relative_to(CASES).parts)) for f in FILES])
def test_what_is_printed_reads_as_the_same(file: Path) -> None:
    mapping = file.parent / "mapping.yml"
    reading = Reading(SourceText("mapping.yml", mapping.read_text())) if mapping.exists() else Reading()
    parsed = parse(SourceText("rules.yml", file.read_text(), reading))
    assert parse(SourceText("again.yml", print_file(parsed), reading)) == parsed


@pytest.mark.parametrize(
    "text", ["a\u0085b", "tab\tline\nend ", "\ufeffx", 'it\'s "so" # no comment', "0x1f", "yes", "~", "=", "\U0001f600"]
)
def test_texts_of_any_kind_are_printed(text: str) -> None:
    source = SourceText("r.yml", GOOD)
    parsed = parse(SourceText("r.yml", GOOD.replace("{a: 1}", f"{{a: {_text(text)}}}")))
    assert parse(SourceText("r.yml", print_file(parsed))) == parsed != parse(source)


@pytest.mark.parametrize("null", ["", "null", "~"])
def test_null_is_no_text_however_it_is_written(null: str) -> None:
    rules = f"[good, {null or 'null'}]"
    many = f"correlation: {{type: event_count, rules: {rules}, group-by: {null}, timespan: 5m, condition: {{gte: 1}}}}\n"
    text = GOOD.replace("category: log", f"category: log, service: {null}") + f"fields:\n  - {null}\n  - a\n"
    parsed = parse(SourceText("r.yml", f"{text}---\ntitle: many\n{many}"))
    assert parse(SourceText("r.yml", print_file(parsed))) == parsed
    assert [d["type"] for d in coincide.detect(load(SourceText("r.yml", f"{text}---\ntitle: many\n{many}")), [EVENT])] == ["many"]


@pytest.mark.parametrize("key", ["a|windash", "a|expand"])
def test_alternatives_are_counted_before_they_are_made(key: str) -> None:
    mapping = SourceText("m.yml", "placeholders: {x: [a, b, c, d, e]}")
    text = " -x" * 50 if key == "a|windash" else "%x%" * 50
    with pytest.raises(RuleError, match="more than 10,000 alternatives"):
        load(SourceText("r.yml", GOOD.replace("{a: 1}", f"{{{key}: '{text}'}}")), sigma_mapping=mapping)


def test_keep_going(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("---\n".join([BAD, GOOD, NEEDS_BAD]))
    (tmp_path / "b.yml").write_text("title: [no")
    with pytest.raises(RuleError, match="unknown modifier"):
        load(tmp_path)
    book = load(tmp_path, keep_going=True)
    assert [d.name for d in book.detectors] == ["good"]
    heads = [warning.head.removeprefix(f"{tmp_path}/") for warning in book.warnings]
    assert heads[0] == "a.yml:4:17: warning: unknown modifier 'nonsense'"
    assert [head.partition(": ")[0] for head in heads] == ["a.yml:4:17", "b.yml:1:11", "a.yml:12:42"]
    assert "rule 'bad' is not loaded" in heads[2]


def test_correlations_go_with_what_they_need(tmp_path: Path) -> None:
    outer = "name: outer\ncorrelation: {type: event_count, rules: [inner], timespan: 5m, condition: {gte: 1}}\n"
    inner = "name: inner\ncorrelation: {type: event_count, rules: [gone], timespan: 5m, condition: {gte: 1}}\n"
    (tmp_path / "a.yml").write_text("---\n".join([outer, inner, GOOD]))
    book = load(tmp_path, keep_going=True)
    assert [d.name for d in book.detectors] == ["good"]
    assert [w.message for w in book.warnings] == ["rule 'gone' is not loaded", "rule 'outer' is left out with rule 'inner'"]
    assert [(w.span.line, w.span.column) for w in book.warnings if w.span] == [(5, 42), (2, 42)]


def test_level() -> None:
    source = SourceText("r.yml", f"{GOOD}---\n{LOW}")
    assert [d["type"] for d in coincide.detect(load(source), [EVENT])] == ["good", "low"]
    assert [d["type"] for d in coincide.detect(load(source, level="high"), [EVENT])] == ["good"]
    with pytest.raises(RuleError, match="unknown level 'hihg'"):
        load(source, level="hihg")


def test_a_level_counts_for_correlations_not_for_what_they_refer_to() -> None:
    many = "title: many\nlevel: high\ncorrelation: {type: event_count, rules: [low], timespan: 5m, condition: {gte: 1}}\n"
    found = coincide.detect(load(SourceText("r.yml", f"{many}---\n{LOW}"), level="high"), [EVENT])
    assert [d["type"] for d in found] == ["many"]


def test_records_without_a_type_piece_by_piece() -> None:
    engine = coincide.Engine(load(SourceText("r.yml", GOOD)))
    assert engine.process({"@timestamp": "2026-01-01T00:00:00Z", "a": 1}).records()[0]["type"] == "good"


def test_detections_of_other_languages_where_types_name_them(tmp_path: Path) -> None:
    (tmp_path / "m.yml").write_text("logsources: [{category: alerts, types: hot}]")
    (tmp_path / "r.yml").write_text("title: seen\nlogsource: {category: alerts}\ndetection: {s: {v|gt: 35}, condition: s}\n")
    (tmp_path / "h.ecl").write_text("monitor hot = repeat { push(hot, v: v) { reading and v > 30 } }")
    book = load(tmp_path / "r.yml", tmp_path / "h.ecl", sigma_mapping=tmp_path / "m.yml")
    readings = [{"type": "reading", "time": t, "v": v} for t, v in enumerate((20, 32, 40))]
    assert [d["time"] for d in coincide.detect(book, readings) if d["type"] == "seen"] == [2]


def test_names_of_all_languages_are_taken_before_titles(tmp_path: Path) -> None:
    """Also where the other language comes later."""
    (tmp_path / "r.yml").write_text("---\n".join([GOOD, GOOD, GOOD.replace("title: good", "title: other\nname: good_2")]))
    (tmp_path / "good.eql").write_text("any where a == 1")
    (tmp_path / "m.ecl").write_text("monitor good_3 = repeat { push(x) { log } }")
    book = load(tmp_path / "r.yml", tmp_path / "good.eql", tmp_path / "m.ecl")
    assert [d.name for d in book.detectors] == ["good_4", "good_5", "good_2", "good", "good_3"]
    (tmp_path / "named.yml").write_text(GOOD.replace("title: good", "name: good"))
    with pytest.raises(RuleError, match="'good' is already defined"):
        load(tmp_path / "named.yml", tmp_path / "good.eql")


PROCESS = "title: %s\nlogsource: {category: process_creation, product: windows}\ndetection: {%s}\n"
NO = "events of its log source have no '%s'"
CHECKED = [
    ("s: {OriginalFileName: net.exe, CommandLine|contains: x}, condition: s", "'t' can never match: " + NO % "OriginalFileName"),
    ("s: {OriginalFileName: n.exe}, o: {Image: x}, condition: s or o", "a part of 't' is of no use: " + NO % "OriginalFileName"),
    ("s: {Foo|exists: true}, o: {Image: x}, condition: o and not s", "a part of 't' is of no use: " + NO % "Foo"),
    ("s: {Foo: null}, condition: not s", "'t' can never match: " + NO % "Foo"),
    ("s: {Foo|neq: x}, condition: s", "a part of 't' is of no use: " + NO % "Foo"),
    ("s: {Foo|re|i: x}, o: [{Comandline|all|contains: [a, b]}], condition: all of them", "'t' can never match: " + NO % "Foo"),
    ("s: {Image: x, EventID: 1, type: y}, condition: s", None),
    ("s: word, condition: s", None),
]  # fmt: skip


@pytest.mark.parametrize(("detection", "message"), CHECKED)
def test_rules_that_can_never_match_the_mapping(detection: str, message: str | None) -> None:
    book = load(SourceText("r.yml", PROCESS % ("t", detection)), sigma_mapping="windows-security")
    assert [remark.message for remark in book.remarks][:1] == ([] if message is None else [message])
    assert not book.warnings


@pytest.mark.parametrize(
    ("mapping", "logsource", "field", "near"),
    [("cloudtrail", "product: aws, service: cloudtrail", "eventNmae", "eventName"),
     ("okta", "product: okta, service: okta", "outcomes", None),
     ("okta", "product: okta, service: okta", "displayMesage", "displayMessage"),
     ("ecs", "product: windows, service: security", "LogonTyp", None)],
)  # fmt: skip
def test_fields_that_a_vendor_does_not_write(mapping: str, logsource: str, field: str, near: str | None) -> None:
    text = f"title: t\nlogsource: {{{logsource}}}\ndetection: {{s: {{{field}: x}}, condition: s}}\n"
    (told,) = load(SourceText("r.yml", text), sigma_mapping=mapping).remarks
    assert told.message == f"'t' can never match: events of its log source have no '{field}'"
    assert near is None or near in str(told.hint)


def test_check_tells_what_the_mapping_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from coincide.cli.main import main

    rules = [PROCESS % ("a", "s: {CommandLin: x}, condition: s"), RULE % ("category: webserver", "a: b")]
    (tmp_path / "r.yml").write_text("---\n".join([*rules, BAD]))
    assert main(["check", str(tmp_path), "--sigma-mapping", "sysmon", "--keep-going"]) == 0
    told = capsys.readouterr()
    assert told.out == "2 detectors, 3 warnings, 1 rule left out\n"
    assert "r.yml:3:17: warning: 'a' can never match: events of its log source have no 'CommandLin'" in told.err
    assert "hint: did you mean 'CommandLine'?" in told.err
    assert "r.yml:6:12: warning: the mapping has no entry for the log source (category: webserver) of 'found'" in told.err
    assert "unknown modifier 'nonsense'" in told.err
    assert main(["run", str(tmp_path), "--sigma-mapping", "sysmon", "--events", "x.jsonl"]) == 2
    assert "hint: --keep-going leaves out rules with errors" in capsys.readouterr().err


RULE = "title: found\nlogsource: {%s}\ndetection: {s: {%s}, condition: s}\n"
SECURITY = {"Channel": "Security", "EventID": 4625, "TargetUserName": "ann"}
SAMPLES: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "sysmon", "category: process_creation, product: windows", r"Image|endswith: '\whoami.exe', User|contains: ann",
        {"EventID": 1, "Image": "C:\\Windows\\System32\\whoami.exe", "User": "LAB\\ann"},
        {"EventID": 5, "Image": "C:\\Windows\\System32\\whoami.exe", "User": "LAB\\ann"},
    ),
    (
        "windows", "category: process_creation, product: windows", r"Image|endswith: '\whoami.exe'",
        {"Channel": "Microsoft-Windows-Sysmon/Operational", "EventID": 1, "Image": "C:\\Windows\\System32\\whoami.exe"},
        {"Channel": "Application", "EventID": 1, "Image": "C:\\Windows\\System32\\whoami.exe"},
    ),
    ("windows", "product: windows, service: security", "TargetUserName: ann", SECURITY, {**SECURITY, "Channel": "System"}),
    (
        "ecs", "category: process_creation, product: windows", r"Image|endswith: '\whoami.exe', ParentImage|endswith: '\cmd.exe'",
        {"event": {"category": ["process"], "type": ["start"], "code": "1"},
         "process": {"executable": "C:\\Windows\\whoami.exe", "parent": {"executable": "C:\\Windows\\cmd.exe"}}},
        {"event": {"category": ["process"], "type": ["end"]}, "process": {"executable": "C:\\Windows\\System32\\whoami.exe"}},
    ),
    (
        "ecs", "product: windows, service: security", "EventID: 4625, SubjectUserName: ann",
        {"event": {"code": 4625}, "winlog": {"channel": "Security", "event_data": {"SubjectUserName": "ANN"}}},
        {"event": {"code": 4625}, "winlog": {"channel": "System", "event_data": {"SubjectUserName": "ANN"}}},
    ),
    (  # of Sysmon's event 12 Winlogbeat's pipeline says `change`, whatever was done
        "ecs", "category: registry_add, product: windows", r"TargetObject|contains: '\CurrentVersion\Run'",
        {"event": {"category": ["configuration", "registry"], "type": ["change"], "code": "12"},
         "registry": {"path": "HKU\\S-1-5-21\\Software\\Microsoft\\Windows\\CurrentVersion\\Run", "hive": "HKU"},
         "winlog": {"channel": "Microsoft-Windows-Sysmon/Operational", "event_data": {"EventType": "CreateKey"}}},
        {"event": {"category": ["configuration", "registry"], "type": ["change"], "code": "12"},
         "registry": {"path": "HKU\\S-1-5-21\\Software\\Microsoft\\Windows\\CurrentVersion\\Run", "hive": "HKU"},
         "winlog": {"channel": "Microsoft-Windows-Sysmon/Operational", "event_data": {"EventType": "DeleteKey"}}},
    ),
    (
        "ecs", "category: registry_set, product: windows", "Details|contains: powershell",
        {"event": {"category": ["configuration", "registry"], "type": ["change"], "code": "13"},
         "registry": {"path": "HKLM\\Software\\x", "data": {"strings": ["powershell -nop"], "type": "REG_SZ"}}},
        {"event": {"category": ["configuration", "registry"], "type": ["change"], "code": "14"},
         "registry": {"path": "HKLM\\Software\\x", "data": {"strings": ["powershell -nop"]}}},
    ),
    (  # the same pipeline: the module is the file, and its process has changed
        "ecs", "category: image_load, product: windows", r"ImageLoaded|endswith: '\dbghelp.dll', Image|endswith: '\winword.exe'",
        {"event": {"category": ["process"], "type": ["change"], "code": "7"},
         "process": {"executable": "C:\\Office\\WINWORD.EXE"}, "file": {"path": "C:\\Windows\\System32\\dbghelp.dll"},
         "winlog": {"channel": "Microsoft-Windows-Sysmon/Operational", "event_data": {"Signed": "true"}}},
        {"event": {"category": ["process"], "type": ["change"], "code": "8"},
         "process": {"executable": "C:\\Office\\WINWORD.EXE"}, "file": {"path": "C:\\Windows\\System32\\dbghelp.dll"},
         "winlog": {"channel": "Microsoft-Windows-Sysmon/Operational"}},
    ),
    (
        "ecs", "category: process_access, product: windows", r"TargetImage|endswith: '\lsass.exe', GrantedAccess: '0x1010'",
        {"event": {"category": ["process"], "type": ["access"], "code": "10"}, "process": {"executable": "C:\\x.exe"},
         "winlog": {"channel": "Microsoft-Windows-Sysmon/Operational",
                    "event_data": {"TargetImage": "C:\\Windows\\system32\\lsass.exe", "GrantedAccess": "0x1010"}}},
        {"event": {"category": ["process"], "type": ["access"], "code": "10"},
         "winlog": {"channel": "Security", "event_data": {"TargetImage": "C:\\lsass.exe", "GrantedAccess": "0x1010"}}},
    ),
    (  # 4697 is of the Security log; 7045, of the System log, has an ImagePath instead
        "ecs", "product: windows, service: security", "EventID: 4697, ServiceFileName|contains: ADMIN$",
        {"event": {"code": "4697"}, "winlog": {"channel": "Security", "event_data": {"ServiceFileName": "\\\\h\\ADMIN$\\x.exe"}}},
        {"event": {"code": "4697"}, "winlog": {"channel": "Security", "event_data": {"ImagePath": "\\\\h\\ADMIN$\\x.exe"}}},
    ),
    (
        "windows", "product: windows, service: applocker", "EventID: 8004",
        {"Channel": "Microsoft-Windows-AppLocker/EXE and DLL", "EventID": 8004, "RuleName": "-"},
        {"Channel": "Application", "EventID": 8004},
    ),
    (
        "windows-security", "category: process_creation", "LogonId: '0x3e7', ParentImage|endswith: services.exe",
        {"EventID": 4688, "SubjectLogonId": "0x3e7", "ParentProcessName": "C:\\Windows\\System32\\services.exe"},
        {"EventID": 4688, "TargetLogonId": "0x3e7", "ParentProcessName": "C:\\Windows\\System32\\services.exe"},
    ),
    (
        "windows-security", "category: process_creation", r"Image|endswith: '\net.exe', CommandLine|contains: ' /add'",
        {"EventID": 4688, "NewProcessName": "C:\\Windows\\System32\\net.exe", "CommandLine": "net user bob /add"},
        {"EventID": 4689, "NewProcessName": "C:\\Windows\\System32\\net.exe", "CommandLine": "net user bob /add"},
    ),
    (
        "sysmon", "category: registry_delete, product: windows", r"TargetObject|endswith: '\shell\open\command'",
        {"EventID": 12, "EventType": "DeleteKey", "TargetObject": "HKCR\\x\\shell\\open\\command"},
        {"EventID": 12, "EventType": "CreateKey", "TargetObject": "HKCR\\x\\shell\\open\\command"},
    ),
    (  # the example of Microsoft's page on event 4657
        "windows-security", "category: registry_set", r"TargetObject|startswith: '\REGISTRY\MACHINE', Details: Andrei",
        {"EventID": 4657, "SubjectUserName": "dadmin", "ObjectName": "\\REGISTRY\\MACHINE", "ObjectValueName": "Name_New",
         "OperationType": "%%1905", "NewValueType": "%%1873", "NewValue": "Andrei", "ProcessName": "C:\\Windows\\regedit.exe"},
        {"EventID": 4657, "ObjectName": "\\REGISTRY\\MACHINE", "OperationType": "%%1906", "NewValue": "Andrei"},
    ),
    (
        "windows", "category: ps_classic_provider_start, product: windows", "Data|contains: HostApplication=powershell",
        {"Channel": "Windows PowerShell", "EventID": 600, "Data": ["Registry", "Started", "HostApplication=powershell -nop"]},
        {"Channel": "Windows PowerShell", "EventID": 400, "Data": ["Available", "None", "HostApplication=powershell -nop"]},
    ),
    (
        "auditd", "product: linux, service: auditd", "type: EXECVE, a0: chattr, a1|contains: -i",
        {"type": "EXECVE", "argc": 3, "a0": "chattr", "a1": "-i", "a2": "/etc/passwd"},
        {"type": "SYSCALL", "a0": "chattr", "a1": "-i"},
    ),
    (
        "auditd", "category: process_creation, product: linux", "Image|endswith: /nc",
        {"type": "SYSCALL", "syscall": 59, "exe": "/usr/bin/nc"},
        {"type": "CWD", "exe": "/usr/bin/nc"},
    ),
    (  # the example of Red Hat's page on audit records
        "auditd", "category: file_event, product: linux", "TargetFilename: /etc/ssh/sshd_config",
        {"type": "PATH", "item": 0, "name": "/etc/ssh/sshd_config", "inode": 409248, "mode": "0100600", "objtype": "NORMAL"},
        {"type": "CWD", "name": "/etc/ssh/sshd_config", "cwd": "/home/shadowman"},
    ),
    (
        "auditd", "category: network_connection, product: linux", "DestinationIp|cidr: 203.0.113.0/24, DestinationPort: 443",
        {"type": "SOCKADDR", "saddr_fam": "inet", "laddr": "203.0.113.7", "lport": 443},
        {"type": "SOCKADDR", "saddr_fam": "inet", "laddr": "198.51.100.7", "lport": 443},
    ),
    (
        "cloudtrail", "product: aws, service: cloudtrail", "eventName: StopLogging, userIdentity.type: IAMUser",
        {"eventSource": "cloudtrail.amazonaws.com", "eventName": "StopLogging", "userIdentity": {"type": "IAMUser"}},
        {"eventName": "StopLogging", "userIdentity": {"type": "IAMUser"}},
    ),
    (
        "okta", "product: okta, service: okta", "eventtype: user.account.lock, actor.alternateid: ann@example.com",
        {"eventType": "user.account.lock", "actor": {"alternateId": "ann@example.com"}, "outcome": {"result": "FAILURE"}},
        {"eventType": "user.session.start", "actor": {"alternateId": "ann@example.com"}},
    ),
    (  # the System Log's example of a session, with names as older rules write them
        "okta", "product: okta, service: okta",
        "eventtype: user.session.start, securitycontext.isproxy: 'true', debugcontext.debugdata.behaviors|contains: POSITIVE",
        {"eventType": "user.session.start", "securityContext": {"asNumber": 401, "isProxy": True}, "severity": "INFO",
         "debugContext": {"debugData": {"requestUri": "/api/v1/authn", "behaviors": "{New IP=POSITIVE, New Device=NEGATIVE}"}}},
        {"eventType": "user.session.start", "securityContext": {"isProxy": False},
         "debugContext": {"debugData": {"behaviors": "{New IP=POSITIVE}"}}},
    ),
    (
        "syslog", "product: linux, service: sshd", "message|contains: 'Failed password'",
        {"type": "syslog", "process.name": "sshd", "message": "Failed password for root from 203.0.113.7 port 22 ssh2"},
        {"type": "syslog", "process.name": "su", "message": "Failed password for root"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "logsource", "selection", "match", "other"), SAMPLES)
def test_mappings_of_the_package(name: str, logsource: str, selection: str, match: dict[str, Any], other: dict[str, Any]) -> None:
    from coincide.adapters.mappingfile import load_mapping

    book = load(SourceText("r.yml", RULE % (logsource, selection)), sigma_mapping=name)
    fields = load_mapping(mapping_path(name))
    records = [{fields.time: f"2026-01-01T00:00:0{n}Z", **record} for n, record in enumerate((match, other))]
    assert [d["from"] for d in coincide.detect(book, records, mapping=fields)] == [[d.get("id", "1")] for d in records[:1]]


def test_explained() -> None:
    many = "title: many\ntags: [attack.t1110]\ncorrelation: {type: event_count, rules: [low], group-by: u, timespan: 5m, "
    text = coincide.explain(load(SourceText("r.yml", f"{many}condition: {{gte: 2}}}}\n---\n{LOW}---\n{GOOD}")))
    assert "rule many many; attack.t1110; keeps what matched within 300 s, by u" in " ".join(text.split())
    assert "rule good good; high; nothing is kept" in " ".join(text.split())
