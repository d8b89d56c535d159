"""Rules of each language, drawn in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coincide.detection.base import Detector
from coincide.draw.graph import Drawing


def drawing(detector: Detector, automaton: bool = False) -> Drawing | None:
    """The drawing of a definition, None if its language has none; `automaton`: of Opera, the states instead of the plumbing."""
    draw = DRAWINGS.get(detector.language)
    if draw is None:
        return None
    picture = (_automata if automaton and draw is _opera else draw)(detector.definition)
    return _spoken(picture, detector.definition) if detector.language == "pretty" else picture


def _automata(definition: Any) -> Drawing:
    from coincide.draw.states import automata

    return automata(definition)


def _opera(definition: Any) -> Drawing:
    from coincide.draw.opera import composition

    return composition(definition)


def _spoken(picture: Drawing, definition: Any) -> Drawing:
    from coincide.lang.pretty.phrases import with_phrases

    def in_words(text: str) -> str:
        return with_phrases(text, definition)

    nodes = tuple(replace(n, label=in_words(n.label), notes=tuple(map(in_words, n.notes))) for n in picture.nodes)
    arrows = tuple(replace(a, labels=tuple(map(in_words, a.labels))) for a in picture.arrows)
    return replace(picture, caption=in_words(picture.caption), nodes=nodes, arrows=arrows)


def _ecl(definition: Any) -> Drawing:
    from coincide.draw.ecl import machine

    return machine(definition)


def _amit(definition: Any) -> Drawing:
    from coincide.draw.amit import situation

    return situation(definition)


def _ecco(definition: Any) -> Drawing:
    from coincide.draw.ecco import algebra

    return algebra(definition.definition)


def _cdl(definition: Any) -> Drawing:
    from coincide.draw.cdl import description

    return description(definition)


def _row_pattern(definition: Any) -> Drawing:
    from coincide.draw.rowpattern import row_pattern

    return row_pattern(definition)


def _eql(definition: Any) -> Drawing:
    from coincide.draw.eql import query_drawing

    return query_drawing(definition)


DRAWINGS: dict[str, Callable[[Any], Drawing]] = {
    "opera": _opera,
    "pretty": _opera,
    "ecl": _ecl,
    "amit": _amit,
    "ecco": _ecco,
    "cdl": _cdl,
    "matchrecognize": _row_pattern,
    "eql": _eql,
}
