"""Cases of distribution: what a plan, a division, a placement must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coincide.cli.main import main
from coincide.testing.compare import same, unmatched

CASES = Path(__file__).parent / "distribution"


def cases(suite: str) -> list[Any]:
    return [pytest.param(folder, id=folder.name) for folder in sorted((CASES / suite).iterdir())]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def check_json(folder: Path, code: int, out: str, err: str) -> None:
    if (folder / "expected-error").exists():
        place, _, text = (folder / "expected-error").read_text().strip().partition(": ")
        assert code == 2
        assert err.splitlines()[0].endswith(f":{place}: error: {text}")
        return
    assert code == 0, err
    expected = json.loads((folder / "expected.json").read_text())
    assert same(json.loads(out), expected), out


@pytest.mark.parametrize("folder", cases("cdl-placement"))
def test_placement(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_json(folder, *printed(capsys, "place", *sorted(folder.glob("rules.*")), folder / "topology.json"))


@pytest.mark.parametrize("folder", cases("opera-distribution"))
def test_plan(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = printed(capsys, "plan", folder / "topology.json", folder / "request.json")
    assert code == 0, err
    expected, found = json.loads((folder / "expected.json").read_text()), json.loads(out)
    for name in ("reuse", "subscribe"):  # sets
        expected[name], found[name] = sorted(expected[name]), sorted(found[name])
    assert found == expected


@pytest.mark.parametrize("folder", cases("cdl-division"))
def test_division(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report, and that the divided descriptions detect what they must."""
    check_json(folder, *printed(capsys, "divide", folder / "rules.cdl.xml"))
    if not (folder / "events.jsonl").exists():
        return
    assert printed(capsys, "divide", folder / "rules.cdl.xml", "--out", tmp_path / "divided.cdl.xml")[0] == 0
    code, out, err = printed(capsys, "run", tmp_path / "divided.cdl.xml", "--events", folder / "events.jsonl")
    assert code == 0, err
    expected = [json.loads(line) for line in (folder / "expected.jsonl").read_text().splitlines() if line.strip()]
    assert unmatched(expected, [json.loads(line) for line in out.splitlines()]) == ([], [])
