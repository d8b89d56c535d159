"""Opera's English-like language: its files are core definitions once they are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coincide.detection.automaton.starts import start_can_fail
from coincide.detection.automaton.warnings import warnings_of
from coincide.detection.base import Detector
from coincide.errors import Diagnostic
from coincide.lang.opera.definition import File
from coincide.lang.pretty.parse import parse as parse_text
from coincide.lang.pretty.phrases import with_phrases
from coincide.lang.pretty.print import print_file as print_text
from coincide.languages.opera import Opera
from coincide.source import SourceText


class Pretty(Opera):
    name = "pretty"

    def parse(self, source: SourceText) -> File:
        return parse_text(source, start_can_fail)

    def print_file(self, file: File) -> str:
        return print_text(file, start_can_fail)

    def detectors(self, files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
        return [[replace(d, language=self.name, printed_in=d.language) for d in some] for some in super().detectors(files)]

    def warnings(self, detectors: Sequence[Detector]) -> list[Diagnostic]:
        found = [(d.definition, warning) for d in detectors for warning in warnings_of(d.definition)]
        return [replace(warning, message=with_phrases(warning.message, definition)) for definition, warning in found]


LANGUAGE = Pretty()
