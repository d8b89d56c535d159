"""Data as people have it: mappings, formats, types of columns, times in another unit, and nothing that can be read."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from cli_support import Coincide, jsonl, written

RULES = "monitor m = repeat { push(hit, ip: ip) { login } }"
CSV = "kind,seconds,ip\nlogin,1767225600,007\nlogin,1767225601,10\n"


@pytest.fixture
def hits(tmp_path: Path) -> Path:
    return written(tmp_path / "hits.ecl", RULES)


def test_all_records_left_out_is_an_error(coincide: Coincide, hits: Path, tmp_path: Path) -> None:
    events = jsonl(tmp_path / "e.jsonl", [{"kind": "login", "time": 1}, {"kind": "login", "time": 2}])
    outcome = coincide("run", hits, "--events", events)
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: all records were left out" in outcome.err
    assert "coincide guess" in outcome.err
    assert coincide("run", hits, "--events", written(tmp_path / "none.jsonl", "")).code == 0


def test_what_is_no_json_is_told_of_formats(coincide: Coincide, hits: Path, tmp_path: Path) -> None:
    outcome = coincide("run", hits, "--events", written(tmp_path / "e.jsonl", CSV))
    assert outcome.code == 2
    assert "hint: if they are not JSON Lines, --format says what they are" in outcome.err


def test_times_out_of_range(coincide: Coincide, hits: Path, tmp_path: Path) -> None:
    events = jsonl(tmp_path / "e.jsonl", [{"type": "login", "time": 1767225600_000_000_000}])
    outcome = coincide("run", hits, "--events", events)
    assert outcome.code == 2
    assert "--time-unit ns" in outcome.err
    assert coincide("run", hits, "--events", events, "--time-unit", "ns").code == 0


@pytest.mark.parametrize(("time", "unit"), [(1767225600, "s"), (1767225600_000_000, "us")])
def test_times_in_another_unit_are_told(coincide: Coincide, hits: Path, tmp_path: Path, time: int, unit: str) -> None:
    events = jsonl(
        tmp_path / "e.jsonl", [{"type": "login", "time": time, "ip": "x"}, {"type": "login", "time": time + 9, "ip": "x"}]
    )
    assert f"--time-unit {unit}, " in coincide("run", hits, "--events", events).err
    assert "--time-unit" not in coincide("run", hits, "--events", events, "--time-unit", unit).err


def test_mapping_guessed_and_used(coincide: Coincide, hits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = written(tmp_path / "e.csv", CSV)
    proposed = coincide("guess", events)
    assert proposed.code == 0
    mapping = written(tmp_path / "mapping.yaml", proposed.out)
    found = coincide("run", hits, "--events", events, "--mapping", mapping)
    assert [(d["time"], d["ip"]) for d in found.records] == [(1767225600000, "007"), (1767225601000, "10")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    given = coincide("run", hits, "--events", "-", "--format", "csv", "--mapping", mapping, "--types", "ip=number")
    assert [d["ip"] for d in given.records] == [7, 10]


def test_what_is_wrong_with_a_mapping(coincide: Coincide, hits: Path, tmp_path: Path) -> None:
    events = written(tmp_path / "e.csv", CSV)
    mapping = written(tmp_path / "m.yaml", "events:\n  tme: x\n")
    outcome = coincide("run", hits, "--events", events, "--mapping", mapping)
    assert outcome.code == 2
    assert "m.yaml:2:3: error: unknown attribute 'tme' of 'events'" in outcome.err
    assert "did you mean 'time'?" in outcome.err
    assert coincide("run", hits, "--events", events, "--types", "ip").code == 2
    assert coincide("guess", written(tmp_path / "empty.jsonl", "")).code == 2
