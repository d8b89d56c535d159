"""What the command `coincide` can be asked to do: one module a command.

Commands import what they need when they run: `coincide run` on a small file should not wait for NumPy, Arrow or Spark.
For the same reason arguments are read by argparse, which is there anyway."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from coincide import __version__

if TYPE_CHECKING:
    from coincide.cli.command import Command

COMMANDS = {
    "run": "run.RUN",
    "serve": "serve.SERVE",
    "studio": "studio.STUDIO",
    "test": "test.TEST",
    "check": "check.CHECK",
    "analyse": "check.ANALYSE",
    "explain": "explain.EXPLAIN",
    "why": "why.WHY",
    "format": "formatting.FORMAT",
    "lsp": "lsp.LSP",
    "guess": "guess.GUESS",
    "draw": "draw.DRAW",
    "divide": "divide.DIVIDE",
    "place": "place.PLACE",
    "plan": "plan.PLAN",
    "node": "network.NODE",
    "publish": "network.PUBLISH",
    "subscribe": "network.SUBSCRIBE",
    "network": "network.NETWORK",
    "state": "holdings.STATE",
    "spark-submit": "submit.SUBMIT",
    "warm": "warm.WARM",
    "debug": "debug.DEBUG",
}
"""Where each is, in the order in which help lists them."""

DESCRIPTION = "Find situations in streams of events: patterns written as rules, run over files or on Spark."
EPILOG = """\
Begin with
  coincide run RULES --events FILE

`coincide COMMAND --help` shows an example of each command.
"""


def arguments(names: Iterable[str]) -> argparse.ArgumentParser:
    """The arguments of these commands."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("coincide", description=DESCRIPTION, epilog=EPILOG, formatter_class=layout)
    parser.add_argument("--version", action="version", version=f"coincide {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        _command(name).add_to(commands)
    return parser


def _command(name: str) -> Command:
    module, constant = COMMANDS[name].split(".")
    command: Command = getattr(import_module(f"coincide.cli.{module}"), constant)
    return command


def parsed(argv: list[str]) -> argparse.Namespace:
    """argparse takes no further rule files after an option; people do."""
    parser = arguments(argv[:1] if argv and argv[0] in COMMANDS else COMMANDS)
    if not argv:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    given, more = parser.parse_known_args(argv)
    if any(argument.startswith("-") for argument in more) or (more and not hasattr(given, "rules")):
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        given.rules += more
    return given
