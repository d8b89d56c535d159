"""The demonstration finds what was planted, nothing else, and leaves its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

DEMO = Path(__file__).parents[2] / "examples" / "demo"


def test_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DEMO / "run.py", tmp_path], capture_output=True, text=True, check=True, cwd=DEMO.parents[1]
    )
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "password-guessed  user=eve  host=db1" in done.stdout
    found = [json.loads(line) for line in (tmp_path / "detections.jsonl").read_text().splitlines()]
    assert [(d["type"], d.get("user") or d.get("server") or d.get("door")) for d in found] == [
        ("backup-incomplete", "files"),
        ("password-guessed", "eve"),
        ("data-theft", "eve"),
        ("door-held-open", "lab"),
        ("server-silent", "web2"),
        ("tailgating", "server-room"),
        ("password-guessed", "sam"),
        ("ghost-at-desk", "hana"),
    ]
    ElementTree.parse(tmp_path / "timeline.svg")


def test_the_command_finds_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DEMO / "run.py", tmp_path], capture_output=True, check=True)
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
    arguments = ["run", DEMO / "rules.ecl", DEMO / "rules.amit.xml", "--events", tmp_path / "events.jsonl"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    made, kept = (
        [json.loads(line) for line in text.splitlines()] for text in (done.stdout, (tmp_path / "detections.jsonl").read_text())
    )
    assert made == kept
