"""`coincide place`: descriptions and what they need of nodes, mapped to a network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Place correlation descriptions in a network.

RULES.rg.xml is a restriction graph: descriptions, pins, and what they demand of nodes and of one another. TOPOLOGY.json
has the nodes and links and says what is to be done (`"task"`): place (default), replace, or rcp, which takes no graph.

example:
  coincide place visit.rg.xml hospital.json
  coincide place gossip.json
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="RULES.rg.xml TOPOLOGY.json, or TOPOLOGY.json alone for gossip")
    parser.add_argument("--algorithm", default="heuristic", metavar="NAME", help="heuristic (default) or exact: the best weights")


def place(given: Given) -> int:
    import msgspec

    from coincide.distribution.tasks import result_of

    *graphs, topology = map(Path, given.files)
    found: dict[str, Any] = result_of(graphs, topology, given.algorithm)
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
    return 0


PLACE = Command("place", DESCRIPTION, _arguments, place)
