"""The command `coincide`: how it starts and ends. Streams that are not there, signals, failures, exit codes.

This module imports next to nothing: whoever presses Ctrl-C while the rest is still being imported gets an exit code, no trace."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TextIO

REFUSED = 2
SIGNALLED = 128
"""A program that a signal has ended gives this and the signal's number as its exit code, as shells report it."""
BROKEN_PIPE = SIGNALLED + 13  # SIGPIPE: the reader of our output has gone away


class Stopped(KeyboardInterrupt):
    """A signal asks the program to end. Libraries let it pass as they let Ctrl-C pass; files that are not complete go."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_received: list[Stopped] = []


def entry() -> None:
    """The console script."""
    try:
        _mend_streams()
        _heed_signals()
        code = main(alone=True)
    except KeyboardInterrupt as stop:  # between the lines of `main`
        code = _signalled(stop)
    if _received:  # perhaps where Python lets no exception through, such as a finaliser
        code = _signalled(_received[0])
        _turn_away(sys.stdout)  # who does not read must not hold up the end
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)  # a trace while Python winds up would help nobody
    sys.exit(code)


def main(argv: Sequence[str] | None = None, alone: bool = False) -> int:
    """Runs one command and returns its exit code: 0 done, 1 the run could not finish or a case failed, 2 refused. `alone`: the
    process does nothing else."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv), alone)
    except SystemExit as end:  # argparse has said what is wrong, or printed help
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except KeyboardInterrupt as stop:
        return _signalled(stop)
    except Exception as error:
        return _failed(error)


def _run(argv: list[str], alone: bool) -> int:
    from coincide.access import allowing
    from coincide.cli.commands import parsed

    given = parsed(argv)
    if alone and getattr(given, "engine", None) == "embedded":
        sys.meta_path.insert(0, _NoPandas)
    with allowing(given.allow_path, given.allow_db):
        code: int = given.command(given)
    sys.stdout.flush()
    return code


class _NoPandas:
    """Whatever pyarrow does first, it imports pandas where there is one, to tell its frames from other things. That takes longer
    than to read a million events, and a run in this process has no frames."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not looked for", name=name)


# Signals


def _heed_signals() -> None:
    """Those that are ignored (nohup, jobs in the background) stay so."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    _received.append(Stopped(number))
    raise _received[-1]


def _signalled(stop: KeyboardInterrupt) -> int:
    return SIGNALLED + getattr(stop, "number", signal.SIGINT)


# Streams


def _mend_streams() -> None:
    """A stream that is closed would be None, and its number the next file's: whatever is written to standard output would go
    there. What stands in its place can be neither read nor written, but errors have nowhere else to go and are dropped."""
    for number, name, mode in ((0, "stdin", os.O_WRONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _forget_output() -> None:
    """Nobody reads any more: what Python would still flush at exit must go nowhere."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _turn_away(stream)


def _turn_away(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


# Failures


def _failed(error: Exception) -> int:
    """Says what is wrong, on standard error, if that takes it."""
    code, text = _account(error)
    try:
        sys.stdout.flush()
    except OSError:
        _forget_output()
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _forget_output()
    return code


def _account(error: Exception) -> tuple[int, str]:
    from coincide.errors import CoincideError

    if isinstance(error, CoincideError):
        return error.exit_code, str(error)
    if isinstance(error, (RecursionError, MemoryError)):
        return 1, f"error: the rules or the data are too large or too deeply nested ({type(error).__name__})"
    if isinstance(error, OSError):
        if error.errno == errno.EBADF and error.filename is None:
            return REFUSED, "error: standard output is closed"
        place = f"{error.filename}: " if error.filename else ""
        return REFUSED, f"error: {place}{error.strerror or error}"
    return 1, _defect(error)


def _defect(error: Exception) -> str:
    """A mistake of ours. The trace goes to a file: it helps whoever mends it, not whoever meets it."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="coincide-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    return f"error: internal error ({type(error).__name__}: {error}); details are in {file.name}"
