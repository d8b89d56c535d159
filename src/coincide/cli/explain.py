"""`coincide explain`: how rules will be run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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
    text = "a sample (JSON Lines): on Spark, tell what correlation descriptions move through exchanges, whole and divided"
    parser.add_argument("--events", metavar="EVENTS", type=Path, help=text)


def explain(given: Given) -> int:
    from coincide import api

    sample = None if given.events is None else _sample(given.events, given.engine)
    print(api.explain(load_rules(given), given.engine, given.tier, sample))
    return 0


def _sample(path: Path, engine: str) -> list[dict[str, Any]]:
    import msgspec

    from coincide.errors import InputError

    if engine == "embedded":
        raise InputError("--events is for --engine spark: it tells what is moved through exchanges")
    decoder = msgspec.json.Decoder(dict[str, Any])
    try:
        found = [decoder.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        return [record for record in found if record["type"]]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, KeyError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not events as JSON Lines, each with a type: {error}") from error


EXPLAIN = Command("explain", DESCRIPTION, _arguments, explain)
