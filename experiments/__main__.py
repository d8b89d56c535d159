"""`python -m experiments office|placement|internet|namespaces [--pictures FOLDER]`: tables in Markdown, and plots (extra
`experiments`)."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from experiments.pictures import Pictures

NAMES = ("office", "placement", "internet")
REAL = ("namespaces",)
"""Needs root, and half an hour."""


def main() -> None:
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*NAMES, *REAL, []],
        metavar="NAME",
        help=f"{', '.join((*NAMES, *REAL))}; all but the last, if none is named",
    )
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write plots to FOLDER")
    given = parser.parse_args()
    for name in given.names or NAMES:
        print(f"## {name}\n")
        for line in importlib.import_module(f"experiments.{name}").report(Pictures(given.pictures)):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
