"""The languages, by the endings of their files. A language is imported when a file of its comes along."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol

from coincide.detection.base import Detector, DetectorPlan
from coincide.errors import Diagnostic, RuleError
from coincide.lang.shared.reads import Reads
from coincide.source import SourceText

MODULES = {
    ".cdl.xml": "coincide.lang.cdl.language",
    ".cdl.yaml": "coincide.lang.cdl.language",
    ".amit.xml": "coincide.lang.amit.language",
    ".amit.yaml": "coincide.lang.amit.language",
    ".ecl": "coincide.lang.ecl.language",
    ".ce": "coincide.lang.opera.language",
    ".say": "coincide.lang.pretty.language",
    ".ecco": "coincide.lang.ecco.language",
    ".mr.sql": "coincide.lang.matchrecognize.language",
}


class Language(Protocol):
    """What a language's package offers. A file's definitions (`File`) are its own frozen data."""

    NAME: str

    def parse(self, source: SourceText) -> Any:
        """Definitions of one file; RuleError at the first error."""

    def names(self, file: Any) -> Iterable[Diagnostic]:
        """Each name of a detector that the file defines (as the diagnostic's `name`), as the error that it is if the
        name is taken."""

    def detectors(self, files: Sequence[tuple[SourceText, Any]]) -> Sequence[Sequence[Detector]]:
        """The detectors of all its files together, a list for each file, in order of definition."""

    def plans(self, detectors: Sequence[Detector]) -> list[DetectorPlan]:
        """Plans for detectors of one stage of the graph."""

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]: ...

    def reads(self, detector: Detector) -> Reads:
        """What a definition reads of events, and where it says so."""

    def print_file(self, file: Any) -> str: ...


def language_of(path: str) -> Language:
    for ending, module in MODULES.items():
        if path.endswith(ending):
            return import_module(module)
    endings = ", ".join(MODULES)
    raise RuleError(Diagnostic(f"{path}: not a rule file that is known (endings: {endings})"))


def is_rule_file(path: str) -> bool:
    return path.endswith(tuple(MODULES))


def ending_of(language: str) -> str:
    """The first file ending of a language, by its name; an ending stands for itself."""
    ending = f".{language.lstrip('.')}"
    return ending if ending in MODULES else next((e for e, m in MODULES.items() if m.split(".")[2] == language), ending)
