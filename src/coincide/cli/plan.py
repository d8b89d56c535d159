"""`coincide plan`: where a composite event is detected in a network of brokers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from coincide.cli.command import Command, Given

DESCRIPTION = """\
Plan the detection of a composite event in a network of brokers.

TOPOLOGY.json has brokers, links, publishers, subscribers and the detectors that run; REQUEST.json a subscription: an
Opera expression and a policy of placement. What is reused, what is started, and where, is printed as JSON.

example:
  coincide plan office.json meeting.json
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topology", metavar="TOPOLOGY.json", type=Path)
    parser.add_argument("request", metavar="REQUEST.json", type=Path)


def plan(given: Given) -> int:
    import msgspec

    from coincide.distribution.brokers import Brokers, Request
    from coincide.distribution.network import read_json
    from coincide.distribution.planning import make_plan

    brokers = read_json(given.topology.read_bytes(), Brokers, str(given.topology))
    request = read_json(given.request.read_bytes(), Request, str(given.request))
    made = make_plan(brokers, request)
    for warning in made.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    new: list[dict[str, Any]] = []
    for detector in made.new:
        row: dict[str, Any] = {"name": detector.name, "expr": detector.expr, "node": detector.node}
        row |= {"sides": list(detector.sides)} if detector.sides else {}
        row |= {"restart": True} if detector.restart else {}
        new.append(row)
    answer = {"reuse": made.reuse, "new": new, "subscribe": made.subscribe}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(answer)).decode() + "\n")
    return 0


PLAN = Command("plan", DESCRIPTION, _arguments, plan)
