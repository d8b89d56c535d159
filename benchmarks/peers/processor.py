"""Processor time of a command with everything that it starts: a JVM that outlives its parent too."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Failed(Exception):
    """The command ended badly; the last line that it printed."""


def processor_seconds(command: Sequence[str]) -> float:
    """User and system time of the process tree."""
    _adopt_orphans()
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)
        seconds, status = _wait_for_all(process.pid)
        process.returncode = status  # it has been waited for here, not by `subprocess`
        if status != 0:
            printed.seek(0)
            lines = printed.read().decode(errors="replace").split("\n")
            raise Failed(next((line.strip() for line in reversed(lines) if line.strip()), f"status {status}")[:100])
    return seconds


def _adopt_orphans() -> None:
    """Processes whose parent has gone become children of this one, so that their time is known when they end."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None or prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise Failed("the time of all processes can be measured on Linux only")


def _wait_for_all(first: int) -> tuple[float, int]:
    seconds, status = 0.0, 0
    while True:
        try:
            process, ended, used = os.wait4(-1, 0)
        except ChildProcessError:
            return seconds, status
        seconds += used.ru_utime + used.ru_stime
        if process == first:
            status = os.waitstatus_to_exitcode(ended)
