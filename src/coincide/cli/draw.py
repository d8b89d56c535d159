"""`coincide draw`: pictures of rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.cli.command import Command, Given, rules_argument
from coincide.cli.report import note

if TYPE_CHECKING:
    from coincide.detection.base import Detector
    from coincide.draw.graph import Drawing

DESCRIPTION = """\
Draw rules, as DOT, Mermaid or SVG.

Opera's expressions are drawn as plumbing: events are taps, ';' is a valve, '|' a junction, '||' a tank, '*' a
loop, a timing a valve with a clock. With --automaton their automata are drawn: a double circle makes a
detection, a double arrow is strong. ECL monitors are drawn as their smallest machine. SVG needs no other program.

example:
  coincide draw office.ce --out office.svg
  coincide draw office.ce --automaton --only Meeting --format mermaid
"""

FORMATS = ("dot", "mermaid", "svg")
ENDINGS = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}


def _arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser)
    parser.add_argument("--format", choices=FORMATS, metavar="NAME", help="dot (default), mermaid or svg")
    parser.add_argument("--automaton", action="store_true", help="the states of Opera's automata, not the plumbing")
    parser.add_argument("--only", metavar="NAME", help="only the detector of this name")
    parser.add_argument("--out", "-o", metavar="FILE", type=Path, help="write to FILE; its ending tells the format")


def draw(given: Given) -> int:
    from coincide.adapters.files import CompleteFile
    from coincide.cli.debug import detectors_named
    from coincide.rulebook import load

    text = _text(_drawings(detectors_named(load(*given.rules), given.only), given.automaton), _format(given))
    if given.out is None:
        sys.stdout.write(text)
        return 0
    with CompleteFile(given.out) as file:
        file.stream.write(text.encode())
    note(f"drawn in {given.out}")
    return 0


def _format(given: Given) -> str:
    ending = None if given.out is None else ENDINGS.get(given.out.suffix.lower())
    return given.format or ending or "dot"


def _drawings(detectors: Sequence[Detector], automaton: bool) -> list[Drawing]:
    from coincide.errors import CoincideError

    drawings = [drawing for d in detectors if (drawing := _drawing(d, automaton)) is not None]
    others = sorted({d.language for d in detectors} - {"opera", "pretty", "ecl"})
    if not drawings:
        raise CoincideError(f"there is nothing to draw: Opera and ECL have drawings, {', '.join(others) or 'no rules'} not")
    if others:
        print(f"warning: there are no drawings of {', '.join(others)}", file=sys.stderr)
    return drawings


def _drawing(detector: Detector, automaton: bool) -> Drawing | None:
    if detector.language in ("opera", "pretty"):
        from coincide.draw.opera import composition
        from coincide.draw.states import automata

        return automata(detector.definition) if automaton else composition(detector.definition)
    if detector.language == "ecl":
        from coincide.draw.ecl import machine

        return machine(detector.definition)
    return None


def _text(drawings: Sequence[Drawing], form: str) -> str:
    from coincide.draw.dot import dot
    from coincide.draw.mermaid import mermaid
    from coincide.draw.svg import svg

    return {"dot": dot, "mermaid": mermaid, "svg": svg}[form](drawings)


DRAW = Command("draw", DESCRIPTION, _arguments, draw)
