"""What tests of Amit's forms share."""

from __future__ import annotations

from pathlib import Path

from coincide.lang.amit.definition import Definition, File
from coincide.lang.amit.print import print_file as print_xml
from coincide.lang.amit.print_yaml import print_file as print_yaml
from coincide.lang.amit.templates import expand
from coincide.languages.amit import LANGUAGE
from coincide.source import SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases"
FILES = sorted((CASES / "amit").glob("*/rules*.amit.xml"))


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def read(path: Path) -> File:
    return LANGUAGE.parse(SourceText(path.name, path.read_text(encoding="utf-8")))


def from_xml(text: str) -> File:
    return LANGUAGE.parse(SourceText("rules.amit.xml", text))


def from_yaml(text: str) -> File:
    return LANGUAGE.parse(SourceText("rules.amit.yaml", text))


def expanded(file: File, *others: File) -> list[Definition]:
    """The definitions, templates written out."""
    return [definition for definitions in expand([file, *others]) for definition in definitions]


def through_yaml(file: File) -> File:
    return from_yaml(print_yaml(file))


def through_xml(file: File) -> File:
    return from_xml(print_xml(file))
