"""`make live`, for a shorter while."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[2] / "examples" / "live" / "run.py"


def test_situations_are_shown_as_they_happen() -> None:
    done = subprocess.run([sys.executable, RUN, "4"], capture_output=True, text=True, check=True, timeout=180)
    assert "error" not in done.stderr  # on a busy machine events may be late, and that is told
    assert re.search(r"^\d\d:\d\d:\d\d  guessed   user\d+ +\d+ ms after it was due$", done.stdout, re.MULTILINE)
    assert re.search(r"[1-9]\d* situations detected while they came", done.stdout)
