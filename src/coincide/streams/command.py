"""A command that is started for a detection."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import Any

from coincide.errors import CoincideError

PATIENCE = 60.0
"""Seconds after which a command that goes on is ended."""


class CommandAction:
    """The detection is its standard input, as a line of JSON. No shell is asked: what is in a detection is never a command. What
    it prints is left out, for standard output and error are those of the run; why it failed is told."""

    def __init__(self, text: str) -> None:
        try:
            self._command = shlex.split(text)
        except ValueError as error:
            raise CoincideError(f"the command '{text}': {str(error).lower()}") from error
        if not self._command:
            raise CoincideError("the command is empty")
        self.name = f"'{self._command[0]}'"
        if shutil.which(self._command[0]) is None:
            raise CoincideError(f"there is no command {self.name}")

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        try:
            ended = subprocess.run(self._command, input=line + b"\n", capture_output=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise CoincideError(f"it did not end within {PATIENCE:.0f} s") from None
        except OSError as error:
            raise CoincideError(str(error.strerror)) from error
        if ended.returncode:
            message = ended.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise CoincideError(f"it ended with {ended.returncode}" + (f" ({message})" if message else ""))

    def close(self) -> None:
        pass
