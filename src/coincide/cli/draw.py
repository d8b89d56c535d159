"""`coincide draw`: pictures of rules, and of what they find."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.command import (
    Command,
    Given,
    field_arguments,
    field_mapping,
    load_rules,
    part_rules_from_events,
    rules_argument,
)
from coincide.cli.report import note

if TYPE_CHECKING:
    from coincide.detection.base import Detector
    from coincide.draw.graph import Drawing

DESCRIPTION = """\
Draw rules, as DOT, Mermaid or SVG; with --events, what they find, on a line of time.

Each language is drawn in its own way: Opera's expressions as plumbing (events are taps, ';' is a valve, '|' a
junction, '||' a tank, '*' a loop, a timing a valve with a clock) or, with --automaton, as their automata;
ECL monitors as their smallest machine; Amit situations with the lifespan in which they are looked for; ECCO
definitions as trees of operators; CDL descriptions as sources, conditions and what is published; EQL queries as
what must come, what must be missing on the way, and what ends the search.

Networks are drawn, too: brokers, detectors and what crosses the links, of TOPOLOGY.json (as `coincide plan` takes
it); before and after, if REQUEST.json follows; and of RULES.rg.xml TOPOLOGY.json who carries what.

With --events the rules are run, and a picture shows when which events came and what was detected, with threads to
the events that led to it. SVG needs no other program.

example:
  coincide draw office.ce --out office.svg
  coincide draw office.ce --automaton --only Meeting --format mermaid
  coincide draw office.ce --events today.jsonl --out today.svg
  coincide draw brokers.json meeting.json --out plan.svg
"""

FORMATS = ("dot", "mermaid", "svg")
ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser, nargs="*")
    parser.add_argument("--format", choices=FORMATS, metavar="NAME", help="dot (default), mermaid or svg (with --events)")
    parser.add_argument("--automaton", action="store_true", help="the states of Opera's automata, not the plumbing")
    parser.add_argument("--only", metavar="NAME", help="only the detector of this name")
    parser.add_argument("--out", "-o", metavar="FILE", type=Path, help="write to FILE; its ending tells the format")
    parser.add_argument(
        "--events", "-e", nargs="+", action="extend", metavar="FILE", help="draw what the rules find in these events"
    )
    parser.add_argument("--until", metavar="TIME", help="let time go on after the last event: milliseconds, ISO-8601, or inf")
    field_arguments(parser)


def draw(given: Given) -> int:
    from coincide.adapters.files import CompleteFile
    from coincide.errors import CoincideError

    if given.events is not None:
        part_rules_from_events(given)
    if not given.rules:
        raise CoincideError("no rule files are given: coincide draw RULES")
    if given.rules[-1].lower().endswith(".json"):
        text = _of_network(given)
    else:
        text = _of_rules(given) if given.events is None else _of_run(given)
    if given.out is None:
        sys.stdout.write(text)
        return 0
    with CompleteFile(given.out) as file:
        file.stream.write(text.encode())
    note(f"drawn in {given.out}")
    return 0


def _of_network(given: Given) -> str:
    """TOPOLOGY.json, with REQUEST.json behind it if a plan is to be seen; or RULES.rg.xml and the topology to place them in."""
    from coincide.distribution.brokers import Brokers, Request
    from coincide.distribution.drawing import network_drawings, placement_drawing
    from coincide.distribution.network import read_json
    from coincide.distribution.tasks import placed
    from coincide.errors import CoincideError

    first, *others = map(Path, given.rules)
    if given.events is not None or len(others) > 1:
        raise CoincideError("of a network, give TOPOLOGY.json [REQUEST.json], or RULES.rg.xml TOPOLOGY.json")
    if first.suffix.lower() != ".json":
        drawings = [placement_drawing(*placed(first, others[0]), title=first.name)]
    else:
        request = read_json(others[0].read_bytes(), Request, str(others[0])) if others else None
        drawings = network_drawings(read_json(first.read_bytes(), Brokers, str(first)), first.name, request)
    return _text(drawings, _format(given))


def _of_rules(given: Given) -> str:
    from coincide.cli.debug import detectors_named

    return _text(_drawings(detectors_named(load_rules(given), given.only), given.automaton), _format(given))


def _of_run(given: Given) -> str:
    from coincide.api import observed
    from coincide.cli.debug import detectors_named
    from coincide.draw.stream import timeline_of
    from coincide.errors import CoincideError

    if given.format in ("dot", "mermaid") or (given.out is not None and given.out.suffix.lower() in (".dot", ".gv", ".mmd")):
        raise CoincideError("what rules find is drawn as SVG only")
    book = load_rules(given)
    chosen = None if given.only is None else detectors_named(book, given.only)[0].order
    causes = observed(book, given.events, given.until, mapping=field_mapping(given))
    title = given.only or ", ".join(Path(name).name for name in given.rules)
    return timeline_of(causes, title, chosen)


def _format(given: Given) -> str:
    ending = None if given.out is None else ENDINGS.get(given.out.suffix.lower())
    return given.format or ending or "dot"


def _drawings(detectors: Sequence[Detector], automaton: bool) -> list[Drawing]:
    from coincide.draw.rules import DRAWINGS, drawing
    from coincide.errors import CoincideError

    drawings = [drawn for d in detectors if (drawn := drawing(d, automaton)) is not None]
    others = sorted({d.language for d in detectors} - DRAWINGS.keys())
    if not drawings:
        why = f"there are no drawings of {', '.join(others)}" if others else "there are no rules"
        raise CoincideError(f"there is nothing to draw: {why}")
    if others:
        print(f"warning: there are no drawings of {', '.join(others)}", file=sys.stderr)
    return drawings


def _text(drawings: Sequence[Drawing], form: str) -> str:
    from coincide.draw.dot import dot
    from coincide.draw.mermaid import mermaid
    from coincide.draw.svg import svg

    return {"dot": dot, "mermaid": mermaid, "svg": svg}[form](drawings)


DRAW = Command("draw", DESCRIPTION, _arguments, draw)
