"""`coincide explain`: how rules will be run."""

from __future__ import annotations

import argparse

from coincide.cli.command import Command, Given, engine_arguments, load_rules, rules_argument

DESCRIPTION = """\
Explain how rules would be run, without running them.

Shows the stages, which definitions share a plan, keys, the tier of each plan and why, which events and
attributes are read at all, what is kept in memory, and on Spark how the work is divided.

example:
  coincide explain theft.ecl
  coincide explain theft.ecl --engine spark
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser)
    engine_arguments(parser)


def explain(given: Given) -> int:
    from coincide import api

    print(api.explain(load_rules(given), given.engine, given.tier))
    return 0


EXPLAIN = Command("explain", DESCRIPTION, _arguments, explain)
