"""Compiled code on disk follows all files that it was made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OUTER = """
from coincide.detection.columns.compiling import compiled
from far.one import value
def call(x):
    return value(x)
run = compiled(call)
print(run(1), sum(run.stats.cache_hits.values()))
"""
HEAVY = """
import sys
print("numba.np.linalg" in sys.modules)
"""
NESTED = """
from coincide.detection.columns.compiling import compiled, inner
@inner
def below(n):
    return 1 if n < 2 else n * below(n - 1)
@inner
def between(n):
    return below(n) + 1
@compiled
def run(n):
    return between(n) + below(n)
print(run(5), sum(run.stats.cache_hits.values()))
"""
MIDDLE = "from deep.two import value\n"
INNER = """
import numba
@numba.njit
def value(x):
    return x + {}
"""


def write(folder: Path, number: int) -> None:
    texts = {"outer.py": OUTER, "far/__init__.py": "", "far/one.py": MIDDLE, "deep/__init__.py": "", "deep/two.py": INNER}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.format(number))


def answer(folder: Path, cache: Path) -> list[str]:
    """What the function gives, and how often it was found on disk."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run([sys.executable, "outer.py"], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_a_change_in_a_file_that_is_imported_by_another(tmp_path: Path) -> None:
    here, cache = tmp_path / "here", tmp_path / "cache"
    write(here, 1)
    assert answer(here, cache) == ["2", "0"]
    assert answer(here, cache) == ["2", "1"]
    write(here, 2)
    assert answer(here, cache) == ["3", "0"]


def test_what_only_compiled_code_calls_is_part_of_what_calls_it(tmp_path: Path) -> None:
    here, cache = tmp_path / "here", tmp_path / "cache"
    write(here, 1)
    (here / "outer.py").write_text(NESTED)
    assert answer(here, cache) == ["241", "0"]
    assert answer(here, cache) == ["241", "1"]


def test_a_copy_of_the_same_files_need_not_compile(tmp_path: Path) -> None:
    here, there, cache = tmp_path / "here", tmp_path / "there", tmp_path / "cache"
    write(here, 1)
    assert answer(here, cache) == ["2", "0"]
    shutil.copytree(here, there)
    assert answer(there, cache) == ["2", "1"]


def test_what_is_kept_loads_none_of_the_declarations(tmp_path: Path) -> None:
    """They take longer than all the rest."""
    here, cache = tmp_path / "here", tmp_path / "cache"
    write(here, 1)
    (here / "outer.py").write_text(OUTER + HEAVY)
    assert answer(here, cache) == ["2", "0", "True"]
    assert answer(here, cache) == ["2", "1", "False"]
