"""`make network`: five nodes, one of which is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "network" / "run.py"


def test_nothing_is_lost(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 doubled" in done.stdout
    assert "is killed" in done.stdout
    picture = (tmp_path / "network.svg").read_text()
    assert "lobby" in picture
    assert "ce-" in picture
