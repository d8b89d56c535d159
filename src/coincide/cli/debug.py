"""`coincide debug`: the form that rules have at each stage of their way, readable."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from coincide.cli.command import Command, Given

if TYPE_CHECKING:
    from coincide.detection.base import Detector
    from coincide.rulebook import Rulebook

DESCRIPTION = """\
Show the form that rules have at each stage.

  parse        the rules as they were understood, in the language's own words and regular layout
  definition   the definitions as data, one line a node, names resolved
  machine      the correlation machine of each ECL monitor, written as a `machine`
  plan         the graph of plans: stages, inputs, tests, outputs
  xml, yaml    rules of Amit or CDL in another of their forms
  python       rules of Amit as calls

example:
  coincide debug parse theft.ecl
  coincide debug machine theft.ecl --only thief
  coincide debug yaml stocks.amit.xml > stocks.amit.yaml
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stage", choices=list(STAGES), metavar="STAGE", help=f"one of {', '.join(STAGES)}")
    parser.add_argument("file", metavar="FILE", help="a rule file")
    parser.add_argument("--only", metavar="NAME", help="only the detector of this name")


def debug(given: Given) -> int:
    from coincide.rulebook import load

    book = load(given.file)
    for line in STAGES[given.stage](book, detectors_named(book, given.only)):
        print(line)
    return 0


def _parse(book: Rulebook, chosen: Sequence[Detector]) -> Iterator[str]:
    from coincide.languages.registry import language_of

    for source, definitions in book.files:
        yield language_of(source.name).print_file(definitions).rstrip()


def _definition(book: Rulebook, chosen: Sequence[Detector]) -> Iterator[str]:
    from coincide.outline import outline

    for detector in chosen:
        yield from outline(detector.definition)


def _machine(book: Rulebook, chosen: Sequence[Detector]) -> Iterator[str]:
    from coincide.detection.machine.construction import construct
    from coincide.lang.ecl.definition import File, Monitor
    from coincide.lang.ecl.print import print_file

    for detector in chosen:
        if detector.language != "ecl":
            yield f"# {detector.kind} {detector.name}: {detector.language} has no correlation machines"
            continue
        literal = detector.definition
        if isinstance(literal, Monitor):
            built = construct(literal)
            yield f"# {built.success}: success, {built.failure}: failure"
            literal = built.machine
        yield print_file(File((), (literal,))).rstrip()


def _plan(book: Rulebook, chosen: Sequence[Detector]) -> Iterator[str]:
    from coincide.explanation import plan_outline

    names = {detector.name for detector in chosen}
    return plan_outline(book, names)


def _as_form(form: str, book: Rulebook, chosen: Sequence[Detector]) -> Iterator[str]:
    from coincide.errors import Diagnostic, RuleError
    from coincide.languages.registry import language_of

    for source, definitions in book.files:
        language = language_of(source.name)
        if form not in language.forms:
            raise RuleError(Diagnostic(f"{source.name}: rules of {language.name} have no form in {form}"))
        yield language.printed(definitions, form).rstrip()


def detectors_named(book: Rulebook, only: str | None) -> Sequence[Detector]:
    from coincide.errors import Diagnostic, RuleError, nearest

    found = [detector for detector in book.detectors if only in (None, detector.name)]
    if only is not None and not found:
        names = [detector.name for detector in book.detectors]
        hint = nearest(only, names) or f"there are {', '.join(names)}"
        raise RuleError(Diagnostic(f"nothing of the name '{only}' is defined", hint=hint))
    return found


STAGES: dict[str, Callable[[Rulebook, Sequence[Detector]], Iterator[str]]] = {
    "parse": _parse,
    "definition": _definition,
    "machine": _machine,
    "plan": _plan,
    "xml": partial(_as_form, "xml"),
    "yaml": partial(_as_form, "yaml"),
    "python": partial(_as_form, "python"),
}
DEBUG = Command("debug", DESCRIPTION, _arguments, debug)
