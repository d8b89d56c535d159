"""What Opera (Pietzuch, Shand and Bacon, "Composite Event Detection as a Generic Middleware Extension") offers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from coincide.detect.automaton.partition import partition
from coincide.detect.automaton.plan import plans as automaton_plans
from coincide.detect.base import Detector, DetectorPlan, Inputs
from coincide.errors import Diagnostic
from coincide.lang.opera.check import used_types
from coincide.lang.opera.definition import All, Definition, File, Limit, walk
from coincide.lang.opera.parse import parse as parse_text
from coincide.lang.opera.print import print_file
from coincide.lang.opera.warnings import definition_warnings
from coincide.source import SourceText, room_for_recursion

__all__ = ["NAME", "detectors", "names", "parse", "plans", "print_file", "warnings"]

NAME = "opera"


def parse(source: SourceText) -> File:
    return parse_text(source)


def names(file: File) -> Iterator[Diagnostic]:
    for definition in file.definitions:
        yield Diagnostic(f"'{definition.name}' is already defined", definition.span, name=definition.name)


def detectors(files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
    """Limits and sources hold for the detectors of all files that are loaded together."""
    limits = tuple(s for _, file in files for s in file.statements if isinstance(s, Limit))
    sources = tuple(dict.fromkeys(name for _, file in files for name in file.sources))
    return [[_detector(replace(d, sources=sources), limits) for d in file.definitions] for _, file in files]


def _detector(definition: Definition, limits: tuple[Limit, ...]) -> Detector:
    types = frozenset(used_types(definition.body))
    every = any(isinstance(node, All) for node in walk(definition.body))
    definition = replace(definition, limits=tuple(limit for limit in limits if every or limit.type in types))
    return Detector(
        name=definition.name,
        language=NAME,
        definition=definition,
        inputs=Inputs(None if every else types, types),
        outputs=(definition.name,),
        partition=partition(definition),
        digest=digest(definition),
        span=definition.span,
    )


def digest(definition: Definition) -> str:
    """Of the definition with all names resolved; its place in the file, and how it is laid out, do not count."""
    with room_for_recursion():
        return hashlib.sha256(f"{NAME} {definition!r}".encode()).hexdigest()


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    return automaton_plans(detectors)


def warnings(detectors: Sequence[Detector]) -> list[Diagnostic]:
    return [warning for d in detectors for warning in definition_warnings(d.definition)]
