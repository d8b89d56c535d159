"""A rulebook as notebooks show it: its drawings, its texts, and what it is warned of."""

from __future__ import annotations

from coincide.detection.base import Detector
from coincide.display.page import picture, shown
from coincide.draw.rules import drawing
from coincide.draw.svg import svg
from coincide.report.markup import Markup, Part, element
from coincide.rulebook import Rulebook

DRAWN = 12
LISTED = 200
"""Of a large rulebook, so many are drawn, and so many named."""


def rules_html(book: Rulebook) -> str:
    detectors = book.detectors
    named = [_named(detector) for detector in detectors[DRAWN:LISTED]]
    left = len(detectors) - LISTED
    return shown(
        *(_drawn(detector) for detector in detectors[:DRAWN]),
        element("div", *named) if named else None,
        element("div", f"… and {left:,} more", class_="faint") if left > 0 else None,
        *(element("pre", warning.render(), class_="warning") for warning in book.warnings[:DRAWN]),
        *(_text(source.name, source.text) for source, _ in book.files[:DRAWN]),
    )


def _drawn(detector: Detector) -> Markup:
    drawn = drawing(detector)
    return _named(detector) if drawn is None else element("div", picture(svg([drawn]), f"the rule {detector.name}"))


def _named(detector: Detector) -> Markup:
    reads = detector.inputs.external
    of: Part = "" if reads is None else f" of {', '.join(sorted(reads))}"
    return element("div", element("b", detector.name), element("span", f" ({detector.language})", of, class_="faint"))


def _text(name: str, text: str) -> Markup:
    return element("details", element("summary", name, class_="faint"), element("pre", text))
