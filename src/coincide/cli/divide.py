"""`coincide divide`: a correlation description as smaller ones that can run near their publishers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Divide a correlation description into smaller ones.

The first description of the file is divided: groups of conditions, layers, intermediate events. The report is printed as
JSON; with --out the divided descriptions are written, which detect the same.

example:
  coincide divide visit.cdl.xml
  coincide divide visit.cdl.xml --out divided.cdl.xml
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="RULES.cdl.xml", type=Path)
    parser.add_argument("--out", metavar="FILE.cdl.xml", type=Path, help="write the divided descriptions, with the file's others")


def divide(given: Given) -> int:
    import msgspec

    from coincide.adapters.files import CompleteFile
    from coincide.distribution.divided import divided_file
    from coincide.distribution.division import divide as divide_description
    from coincide.distribution.division import report_of
    from coincide.errors import InputError
    from coincide.lang.cdl.definition import File
    from coincide.lang.cdl.print import print_file
    from coincide.rulebook import load

    if not given.file.name.endswith((".cdl.xml", ".cdl.yaml")):
        raise InputError(f"{given.file}: not a file of correlation descriptions (.cdl.xml or .cdl.yaml)")
    ((_, file),) = load(given.file).files
    assert isinstance(file, File)
    detected = {event.message_class for cd in file.descriptions for event in cd.events}
    division = divide_description(file.descriptions[0], detected)
    if given.out is None:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report_of(division))).decode() + "\n")
        return 0
    if not division.divided:
        print(f"warning: not divided: {division.reason or 'one description results'}", file=sys.stderr)
    with CompleteFile(given.out) as out:
        out.stream.write(print_file(divided_file(file, division)).encode())
    return 0


DIVIDE = Command("divide", DESCRIPTION, _arguments, divide)
