"""`coincide format`: rule files in their regular layout."""

from __future__ import annotations

import argparse
from pathlib import Path

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Print rules in their regular layout, as the printer of their language writes them.

Comments and the order of definitions stay; a definition with a comment inside it stays as it is. What the rules say does not
change. Files of Sigma and of Elastic (.toml) say more than rules, and have no layout of their own.

example:
  coincide format climbs.mr.sql
  coincide format --write rules/*.ecl
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a rule file")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", action="store_true", help="change the files instead of printing them")
    how.add_argument("--check", action="store_true", help="only name the files that would change; exit code 1 if there are any")


def format_files(given: Given) -> int:
    """All are read before one is written: an error in the last leaves the first as it was."""
    made = {path: _formatted(path) for path in given.files}
    changed = [path for path, (before, after) in made.items() if before != after]
    if not given.write and not given.check:
        print("".join(after for _, after in made.values()), end="")
        return 0
    for path in changed:
        print(path)
        if given.write:
            Path(path).write_text(made[path][1], encoding="utf-8")
    return 1 if given.check and changed else 0


def _formatted(path: str) -> tuple[str, str]:
    from coincide.editing import formatted
    from coincide.errors import InputError
    from coincide.source import SourceText

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return text, formatted(SourceText(path, text))


FORMAT = Command("format", DESCRIPTION, _arguments, format_files)
