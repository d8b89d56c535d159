"""What tests of the command share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coincide.cli.main import main

RULES = """\
monitor pairs by door = repeat { push(pair, v: v) { sequential { open, close } } }
monitor twice = repeat { push(twice) { sequential { pair, pair } } }
"""
EVENTS = [
    {"type": "open", "time": 10, "door": "a"},
    {"type": "open", "time": 20, "door": "b"},
    {"type": "close", "time": 30, "door": "a", "v": 7},
    {"type": "close", "time": 40, "door": "b"},
]
FOUND = [
    {"type": "pair", "time": 30, "from": ["3"], "door": "a", "v": 7},
    {"type": "pair", "time": 40, "from": ["4"], "door": "b"},
    {"type": "twice", "time": 40, "from": ["4"]},
]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Coincide = Callable[..., Outcome]


@pytest.fixture
def coincide(capsys: pytest.CaptureFixture[str]) -> Coincide:
    """The command, called in this process."""

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Outcome(code, out, err)

    return call


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return written(tmp_path / "rules.ecl", RULES)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "events.jsonl", EVENTS)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def jsonl(path: Path, records: list[Any]) -> Path:
    return written(path, "".join(json.dumps(record) + "\n" for record in records))
