"""What the command `coincide` can be asked to do: one module a command.

Commands import what they need when they run: `coincide run` on a small file should not wait for NumPy, Arrow or Spark.
For the same reason arguments are read by argparse, which is there anyway."""

from __future__ import annotations

import argparse
import sys

from coincide import __version__
from coincide.cli import (
    check,
    debug,
    divide,
    draw,
    explain,
    formatting,
    guess,
    holdings,
    lsp,
    network,
    place,
    plan,
    run,
    serve,
    studio,
    submit,
    test,
    warm,
    why,
)

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
    for command in (
        run.RUN,
        serve.SERVE,
        studio.STUDIO,
        test.TEST,
        check.CHECK,
        check.ANALYSE,
        explain.EXPLAIN,
        why.WHY,
        formatting.FORMAT,
        lsp.LSP,
        guess.GUESS,
        draw.DRAW,
        divide.DIVIDE,
        place.PLACE,
        plan.PLAN,
        network.NODE,
        network.PUBLISH,
        network.SUBSCRIBE,
        network.NETWORK,
        holdings.STATE,
        submit.SUBMIT,
        warm.WARM,
        debug.DEBUG,
    ):
        command.add_to(commands)
    return parser


def parsed(argv: list[str]) -> argparse.Namespace:
    """argparse takes no further rule files after an option; people do."""
    parser = arguments()
    if not argv:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    given, more = parser.parse_known_args(argv)
    if any(argument.startswith("-") for argument in more) or (more and not hasattr(given, "rules")):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        given.rules += more
    return given
