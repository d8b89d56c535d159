"""The worlds of the Amit paper (section 4) give the counts that a reference evaluator has computed for them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coincide.cli.main import main

WORLDS = Path(__file__).parents[2] / "benchmarks" / "amit"
EXPECTED = {
    "noisy": {"S1": 36, "S2": 220, "S3": 41},
    "filtered": {"S1": 1703, "S2": 985, "S3": 83068, "S4": 904},
    "complex": {"S1": 1341, "S2": 3059, "S3": 118084, "S4": 360},
}
MEAN = {"noisy": (376, 40), "filtered": (12644, 500), "complex": (36543, 500)}  # lifespans, and how far one sample may be off


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / "events.jsonl"
    subprocess.run([sys.executable, WORLDS / "make_events.py", "-n", "100000", "-o", path], check=True)
    return path


@pytest.mark.parametrize("world", EXPECTED)
def test_counts(world: str, events: Path, tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    out = tmp_path / "detections.parquet"
    assert main(["run", f"{WORLDS / world}.amit.xml", "--events", str(events), "--out", str(out), "--stats", str(stats)]) == 0
    counts = json.loads(stats.read_text())
    assert counts["situations"] == EXPECTED[world]
    mean, tolerance = MEAN[world]
    assert abs(counts["lifespans_initiated"] - mean) < tolerance
