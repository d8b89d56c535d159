"""Rules that security people have, as they come: folders of Elastic's files among others, over files and live streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import Coincide, written

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]

WEB = """[metadata]
creation_date = "2026/01/01"

[rule]
author = ["Somebody"]
language = "eql"
name = "Shell by a Web Server"
query = '''
process where event.type == "start" and process.parent.name : ("httpd", "nginx*") and process.name : ("sh", "bash")
'''

[[rule.threat]]
framework = "MITRE ATT&CK"
"""
OTHER = '[rule]\nlanguage = "kuery"\nname = "Another"\nquery = "a : b"\n'
CHAIN = "// @name followed\nsequence with maxspan=1m [shell_by_a_web_server where true] [network where destination.port == 4444]"
SIGMA = "title: Port\nlogsource: {product: linux}\ndetection: {seen: {destination.port: 4444}, condition: seen}\n"
OURS = "monitor m = repeat { push(alarm) { followed } }"
EVENTS = [
    {
        "@timestamp": "2026-01-01T00:00:00Z",
        "event": {"category": ["process"], "type": ["start"]},
        "process": {"name": "sh", "parent": {"name": "NGINX"}},
    },
    {"@timestamp": "2026-01-01T00:00:05Z", "event": {"category": ["network"]}, "destination": {"port": 4444}},
]


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    (folder / "linux").mkdir(parents=True)
    for name, text in (("linux/web.toml", WEB), ("linux/other.toml", OTHER), ("chain.eql", CHAIN), ("port.yml", SIGMA)):
        written(folder / name, text)
    written(folder / "ours.ecl", OURS)
    return folder


def lines() -> str:
    return "".join(json.dumps(event) + "\n" for event in EVENTS)


def test_a_folder_of_rules_in_several_languages(coincide: Coincide, pack: Path, tmp_path: Path) -> None:
    outcome = coincide("run", pack, "--events", written(tmp_path / "events.jsonl", lines()))
    assert outcome.code == 0, outcome.err
    found = [json.loads(line) for line in outcome.out.splitlines()]
    assert sorted(one["type"] for one in found) == ["alarm", "followed", "port", "shell_by_a_web_server"]
    assert "language 'kuery' is skipped" in outcome.err


def test_live(pack: Path) -> None:
    with subprocess.Popen([*RUN, "run", str(pack), "--events", "-"], stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines().splitlines(keepends=True)[0].encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["type"] == "shell_by_a_web_server"  # the input goes on
        out, _ = process.communicate(lines().splitlines(keepends=True)[1].encode(), timeout=180)
    assert {json.loads(line)["type"] for line in out.splitlines()} == {"alarm", "followed", "port"}


def test_a_log_that_is_followed(tmp_path: Path) -> None:
    items = '[syslog where message : "Failed*"] [any where message : "Accepted*"]'
    rules = written(tmp_path / "rules.eql", f"// @name guessed\nsequence by host.hostname with maxspan=1m {items}")
    log = written(tmp_path / "auth.log", "Jan  1 00:00:00 web sshd[1]: Failed password\n")
    command = [*RUN, "run", str(rules), "--events", f"tail:{log}", "--format", "syslog"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None
        with log.open("a") as stream:
            stream.write("Jan  1 00:00:09 web sshd[2]: Accepted password\n")
        found = json.loads(process.stdout.readline())
        process.terminate()
        process.communicate(timeout=180)
    assert (found["type"], found["host.hostname"]) == ("guessed", "web")


def test_what_is_kept_for_every_key_is_said_of_live_runs(tmp_path: Path) -> None:
    rules = written(tmp_path / "rules.eql", "// @name s\nsequence by k [a where true] [b where true]")
    done = subprocess.run([*RUN, "run", str(rules), "--events", "-"], input=b"", capture_output=True, timeout=180, check=False)
    assert b"rule 's' keeps something for every key that it sees" in done.stderr
