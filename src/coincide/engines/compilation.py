"""Kernels that are compiled beside the runs that want them.

A compiler takes some seconds, for Amit up to half a minute, once on a machine. A run that meets a kernel for the first time
begins in the interpreter; a process of low priority compiles, and lives on if the run is over before it: the next one finds its
work."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.detection.columns.stamps import is_compiled

if TYPE_CHECKING:
    import subprocess

_ready: set[str] = set()
_compilers: dict[str, subprocess.Popen[bytes]] = {}


def is_ready(loop: str) -> bool:
    """Need nobody wait for the compiled code of this module? If not, somebody sees to it."""
    if loop in _ready:
        return True
    if is_compiled(loop) or _has_ended(loop):
        _ready.add(loop)
    return loop in _ready


def _has_ended(loop: str) -> bool:
    """Where no compiler can be started, or one has failed, the code is compiled in its place when it is called."""
    if loop not in _compilers:
        if (os.cpu_count() or 1) < 2 or not sys.executable:
            return True
        try:
            _compilers[loop] = _start(loop)
        except OSError:
            return True
    return _compilers[loop].poll() is not None


def _start(loop: str) -> subprocess.Popen[bytes]:
    import subprocess

    root = str(Path(__file__).resolve().parents[2])
    places = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", "coincide.engines.warming", loop],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": places},
        start_new_session=True,
    )
