"""What Opera's English-like language offers to the compiler: its files are core definitions once they are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coincide.detection.base import Detector
from coincide.lang.opera import language as opera
from coincide.lang.opera.definition import File
from coincide.lang.opera.language import linked, names, plans, reads, warnings
from coincide.lang.pretty.parse import parse
from coincide.lang.pretty.print import print_file
from coincide.source import SourceText

__all__ = ["NAME", "detectors", "linked", "names", "parse", "plans", "print_file", "reads", "warnings"]

NAME = "pretty"


def detectors(files: Sequence[tuple[SourceText, File]]) -> list[list[Detector]]:
    return [[replace(d, language=NAME) for d in some] for some in opera.detectors(files)]
