"""Rules of each language, drawn in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from coincide.detection.base import Detector
from coincide.draw.graph import Drawing


def drawing(detector: Detector, automaton: bool = False) -> Drawing | None:
    """The drawing of a definition, None if its language has none; `automaton`: of Opera, the states instead of the plumbing."""
    draw = DRAWINGS.get(detector.language)
    if draw is None:
        return None
    definition = _say(detector.definition) if detector.language == "pretty" else detector.definition
    if automaton and draw is _opera:
        from coincide.draw.states import automata

        return automata(definition)
    return draw(definition)


def _opera(definition: Any) -> Drawing:
    from coincide.draw.opera import composition

    return composition(definition)


def _say(definition: Any) -> Any:
    """With the phrases of the rule text instead of the names that they have become."""
    from coincide.lang.opera.definition import OfSet
    from coincide.lang.pretty.phrases import spoken

    if isinstance(definition, tuple):
        return tuple(map(_say, definition))
    if not is_dataclass(definition) or isinstance(definition, type):
        return definition
    parts = {f.name: _say(getattr(definition, f.name)) for f in fields(definition) if f.init}
    if isinstance(definition, OfSet):
        parts["name"] = spoken(definition.name)
    return replace(definition, **parts)


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


DRAWINGS: dict[str, Callable[[Any], Drawing]] = {
    "opera": _opera,
    "pretty": _opera,
    "ecl": _ecl,
    "amit": _amit,
    "ecco": _ecco,
    "cdl": _cdl,
}
