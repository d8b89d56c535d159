"""The command `coincide`: one module a command, and what happens when one of them fails.

Commands import what they need when they run: `coincide run` on a small file should not wait for NumPy, Arrow or Spark.
For the same reason arguments are read by argparse, which is there anyway."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from coincide import __version__
from coincide.cli import check, debug, draw, explain, run, test
from coincide.errors import CoincideError

REFUSED = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
BROKEN_PIPE = 141  # 128 + SIGPIPE, as of any program whose reader has gone away

DESCRIPTION = "Find situations in streams of events: patterns written as rules, run over files or on Spark."
EPILOG = """\
Begin with
  coincide run RULES --events FILE

`coincide COMMAND --help` shows an example of each command.
"""


def arguments() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("coincide", description=DESCRIPTION, epilog=EPILOG, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"coincide {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (run.RUN, test.TEST, check.CHECK, check.ANALYSE, explain.EXPLAIN, draw.DRAW, debug.DEBUG):
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 the run could not finish or a case failed, 2 refused."""
    try:
        given = _parsed(list(sys.argv[1:] if argv is None else argv))
        code: int = given.command(given)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse has said what is wrong, or printed help
        return end.code if isinstance(end.code, int) else 0
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _failed(error)


def entry() -> None:
    """The console script."""
    sys.exit(main())


def _parsed(argv: list[str]) -> argparse.Namespace:
    """argparse takes no further rule files after an option; people do."""
    parser = arguments()
    if not argv:
        parser.print_help()
        raise SystemExit(REFUSED)
    given, more = parser.parse_known_args(argv)
    if any(argument.startswith("-") for argument in more) or (more and not hasattr(given, "rules")):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        given.rules += more
    return given


def _failed(error: Exception) -> int:
    if isinstance(error, CoincideError):
        print(error, file=sys.stderr)
        return error.exit_code
    if isinstance(error, (RecursionError, MemoryError)):
        print(f"error: the rules or the data are too large or too deeply nested ({type(error).__name__})", file=sys.stderr)
        return 1
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        return REFUSED
    return _defect(error)


def _defect(error: Exception) -> int:
    """A mistake of ours. The trace goes to a file: it helps whoever mends it, not whoever meets it."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="coincide-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    print(f"error: internal error ({type(error).__name__}: {error}); details are in {file.name}", file=sys.stderr)
    return 1


def _forget_output() -> None:
    """Nobody reads any more: what Python would still flush at exit must go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
