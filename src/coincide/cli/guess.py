"""`coincide guess`: which fields of a file of events are what."""

from __future__ import annotations

import argparse

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Look at a file of events and propose a mapping of its fields.

The mapping is printed as YAML: put it into a file, put right what is wrong, and give it to --mapping.

example:
  coincide guess auth.csv > mapping.yaml
  coincide run theft.ecl --events auth.csv --mapping mapping.yaml
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="events: .jsonl, .json or .csv (also .gz, .zst), .parquet, .arrow")
    parser.add_argument("--format", metavar="NAME", help="of the file, whatever it is called: jsonl, csv, parquet, arrow")


def guess_mapping(given: Given) -> int:
    from coincide.adapters.guess import guess, records_of
    from coincide.errors import InputError

    found = guess(records_of(given.file, given.format))
    if not found.records:
        raise InputError(f"'{given.file}' has no records")
    print(found.text(given.file), end="")
    return 0


GUESS = Command("guess", DESCRIPTION, _arguments, guess_mapping)
