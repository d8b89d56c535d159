"""`make pipeline`: what comes out at its end is what the embedded engine finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.spark, pytest.mark.matrix]


def test_from_the_broker_to_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, EXAMPLES / "pipeline" / "run.py", folder], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    keys = ds.dataset(folder / "found", format="parquet", exclude_invalid_files=True).to_table().column("_key").to_pylist()
    assert sorted(keys) == _embedded(tmp_path)
    assert "micro-batch 0:" in done.stdout
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "presence" in page
    assert "guessing" in page


def _embedded(folder: Path) -> list[str]:
    """The keys that `coincide run` gives."""
    program = "import json, sys; from generate import generate; [print(json.dumps(record)) for record in generate()]"
    events = subprocess.run([sys.executable, "-c", program], cwd=EXAMPLES / "demo", capture_output=True, check=True).stdout
    (folder / "events.jsonl").write_bytes(events)
    rules = [str(EXAMPLES / "demo" / name) for name in ("rules.ecl", "rules.amit.xml")]
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "run", *rules, "--keys", "--events"]
    last = json.loads(events.splitlines()[-1])["time"] + 3_600_000
    found = subprocess.run(
        [*command, str(folder / "events.jsonl"), "--until", str(last)], capture_output=True, text=True, check=True
    )
    return sorted(json.loads(line)["_key"] for line in found.stdout.splitlines())
