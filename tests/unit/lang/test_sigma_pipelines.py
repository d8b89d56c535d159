"""Processing pipelines of pySigma, the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import coincide
from coincide.cli.main import main
from coincide.errors import RuleError
from coincide.rulebook import load
from coincide.source import SourceText

pytest.importorskip("sigma")

PIPELINE = """\
name: lab
priority: 10
vars: {admins: [root, 'adm_*']}
transformations:
  - id: names
    type: field_name_mapping
    mapping: {Image: process.executable, CommandLine: [process.args, process.command_line], User: user.name, Host: host.name}
  - id: windows
    type: add_condition
    conditions: {event.module: sysmon}
    rule_conditions:
      - {type: logsource, category: process_creation, product: windows}
  - id: placeholders
    type: value_placeholders
    include: [admins]
"""
HEAD = "title: %s\nname: %s\nlevel: high\nlogsource: {category: process_creation, product: windows}\n"
EVENT = {"time": 1, "event.module": "sysmon", "process.executable": "C:\\x\\net.exe", "user.name": "adm_ann", "host.name": "a"}


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    path = tmp_path / "lab.pipeline.txt"
    path.write_text(PIPELINE)
    return str(path)


def found(rule: str, pipeline: str, *events: dict[str, Any]) -> list[dict[str, Any]]:
    return coincide.detect(load(SourceText("r.yml", rule), pipeline=pipeline), list(events))


@pytest.mark.parametrize(
    ("detection", "changed", "holds"),
    [
        (r"{s: {Image|endswith: '\NET.exe'}, condition: s}", {}, True),
        (r"{s: {Image|endswith: '\net.exe'}, condition: s}", {"event.module": "other"}, False),
        (r"{s: {Image|cased|endswith: '\NET.exe'}, condition: s}", {}, False),
        (r"{s: {Image: 'C:\\*\n?t.exe'}, condition: s}", {}, True),
        (r"{s: {Image: 'C:\\x\*'}, condition: s}", {}, False),
        (r"{s: {Image: 'C:\x\*'}, condition: s}", {"process.executable": "c:\\x*"}, True),
        (r"{s: {CommandLine|contains|all: [a, b]}, condition: s}", {"process.command_line": "b a", "process.args": "a"}, True),
        (r"{s: {User|expand: '%admins%'}, condition: s}", {}, True),
        (r"{s: {User|expand: '%admins%'}, condition: s}", {"user.name": "bob"}, False),
        (r"{s: {Image|re: '(?i)NET\.exe$'}, f: {User: bob}, condition: s and not f}", {}, True),
        (r"{s: {Image|re|i: 'NET\.exe$'}, condition: s}", {}, True),
        (r"{s: {n|gte: 3, ip|cidr: 10.0.0.0/8, e|exists: true}, condition: s}", {"n": 3, "ip": "10.1.2.3", "e": 0}, True),
        (r"{s: {n|lt: 3}, condition: s}", {"n": 3}, False),
        (r"{s: {n: 3, b: true, z: null}, condition: s}", {"n": 3, "b": True}, True),
        (r"{s: {n: ''}, condition: s}", {"n": ""}, True),
        (r"{s: {User|fieldref: Host}, condition: s}", {"host.name": "ADM_ANN"}, True),
        (r"{s: {User|fieldref|startswith: Host}, condition: s}", {"host.name": "adm"}, True),
        (r"{s: {Image|windash|contains: ' -x'}, condition: s}", {"process.executable": "net /x"}, True),
        (r"{s: {Image|base64offset|contains: hello}, condition: s}", {"process.executable": "xaGVsbG8="}, True),
        (r"{k: [sysm, zzz], condition: k}", {}, True),
        (r"{s_a: {Image: x}, s_b: {User: adm_ann}, condition: 1 of s_*}", {}, True),
        (r"{s_a: {Image: x}, s_b: {User: adm_ann}, condition: [all of them, not s_b]}", {}, False),
        (r"{s: {User|neq: bob}, condition: s}", {}, True),
    ],
)
def test_rules_are_what_the_pipeline_makes_of_them(pipeline: str, detection: str, changed: dict[str, Any], holds: bool) -> None:
    rule = HEAD % ("t", "t") + f"detection: {detection}\nfields: [User]\n"
    event = {**EVENT, **changed}
    expected = [{"type": "t", "time": 1, "from": ["1"], "user.name": event["user.name"], "level": "high"}]
    assert found(rule, pipeline, event) == (expected if holds else [])


def test_correlations(pipeline: str, tmp_path: Path) -> None:
    """Across files; fields of groups are renamed as those of their rules are."""
    (tmp_path / "a.yml").write_text(
        "title: many\ncorrelation: {type: value_count, rules: [one], group-by: [Host], timespan: 5m, "
        "condition: {gte: 2, field: User}}\n"
    )
    (tmp_path / "b.yml").write_text(HEAD % ("one", "one") + "detection: {s: {Image|contains: net}, condition: s}\n")
    book = load(tmp_path / "a.yml", tmp_path / "b.yml", pipeline=pipeline)
    events = [{**EVENT, "time": n, "user.name": user} for n, user in enumerate(["a", "a", "b"])]
    assert coincide.detect(book, events) == [
        {"type": "many", "time": [0, 2], "from": ["1", "2", "3"], "count": 2, "host.name": "a"}
    ]


BAD = HEAD % ("bad", "bad") + "detection: {s: {Image|nonsense: 1}, condition: s}\n"
EMPTY = HEAD % ("empty", "empty") + "detection: {s: {User|expand: '%nobody%'}, condition: s}\n"
GOOD = HEAD % ("good", "good") + "detection: {s: {Image|contains: net}, condition: s}\n"


def test_refusals_have_the_place_of_the_document(pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.yml").write_text("---\n".join([GOOD, BAD, EMPTY]))
    with pytest.raises(RuleError, match=r"r\.yml:7:1: error: the pipeline refuses the rule: .*nonsense"):
        load(tmp_path / "r.yml", pipeline=pipeline)
    book = load(tmp_path / "r.yml", pipeline=pipeline, keep_going=True)
    assert [d.name for d in book.detectors] == ["good"]
    told = [str(warning.span).rpartition("/")[2] + " " + warning.message for warning in book.warnings]
    assert told[0].startswith("r.yml:7:1 the pipeline refuses the rule")
    assert told[1] == "r.yml:13:1 placeholder '%nobody%' has no values"
    two = SourceText("/g.yml", f"{GOOD}---\n# c\n{GOOD.replace('good', 'too')}")
    lines = [str(d.span).rpartition("/")[2] for d in load(two, pipeline=pipeline).detectors]
    assert [line.rpartition(":")[0] for line in lines] == ["g.yml:1", "g.yml:8"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pipeline", "nowhere"], "there is no pipeline 'nowhere'"),
        (["--pipeline", "{pipeline}", "--sigma-mapping", "ecs"], "a pipeline takes the place of a mapping file"),
        (["--pipeline", "{folder}/broken.txt"], "the pipeline cannot be read"),
    ],
)
def test_options(options: list[str], message: str, pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.yml").write_text(GOOD)
    (tmp_path / "broken.txt").write_text("transformations: [{type: nonsense}]")
    (tmp_path / "e.jsonl").write_text(json.dumps(EVENT))
    given = [option.format(pipeline=pipeline, folder=tmp_path) for option in options]
    assert main(["run", str(tmp_path / "r.yml"), "--events", str(tmp_path / "e.jsonl"), *given]) == 2
    assert message in capsys.readouterr().err
    assert main(["run", str(tmp_path / "r.yml"), "--events", str(tmp_path / "e.jsonl"), "--pipeline", pipeline]) == 0
