"""Compiled code on disk follows all files that it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

OUTER = """
from coincide.detection.columns.compiling import compiled
from one import value
def call(x):
    return value(x)
run = compiled(call)
print(run(1), sum(run.stats.cache_hits.values()))
"""
INNER = """
import numba
@numba.njit
def value(x):
    return x + {}
"""


def test_a_change_in_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(OUTER)
    answers = []
    for number in (1, 1, 2):
        (tmp_path / "one.py").write_text(INNER.format(number))
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # within one second Python itself would not notice
        done = subprocess.run(
            [sys.executable, "two.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        answers.append(done.stdout.split())
    assert answers == [["2", "0"], ["2", "1"], ["3", "0"]]
