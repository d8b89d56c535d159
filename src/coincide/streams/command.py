"""A command that is started for a detection."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from typing import Any

from coincide.errors import CoincideError

PATIENCE = 60.0
"""Seconds after which a command that goes on is ended."""


class CommandAction:
    """The detection is its standard input, as a line of JSON. No shell is asked: what is in a detection is never a command. What
    it prints goes to standard error, for standard output is that of the run."""

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

    def tell(self, key: str, record: dict[str, Any], line: bytes) -> None:
        try:
            ended = subprocess.run(self._command, input=line + b"\n", stdout=_errors(), timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise CoincideError(f"it did not end within {PATIENCE:.0f} s") from None
        except OSError as error:
            raise CoincideError(str(error.strerror)) from error
        if ended.returncode:
            raise CoincideError(f"it ended with {ended.returncode}")

    def close(self) -> None:
        pass


def _errors() -> Any:
    """A file, even where somebody has put something else in the place of standard error."""
    try:
        sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        return subprocess.DEVNULL
    return sys.stderr
