"""`coincide test`: conformance cases, with a readable difference where one fails."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Command, Given, check_engine, engine_arguments

if TYPE_CHECKING:
    from coincide.testing.cases import Case, CaseResult

DESCRIPTION = """\
Run conformance cases: folders with rules, events and expected detections.

A case is a folder with
  rules.ENDING                   the rules (several: rules.1.ENDING, rules.2.ENDING …)
  events.jsonl, expected.jsonl   what goes in, and the detections that must come out
  until                          optional: where the clock goes on to after the last event

The exit code is 1 if a case fails, or if there is none.

example:
  coincide test tests/conformance/cases/ecl
  coincide test my-cases --tier kernel
"""

SIGNS = {"-": ("missing   ", "red"), "+": ("unexpected", "yellow"), "~": ("differs   ", "magenta"), "!": ("", "red")}
SHOWN = 20
"""Lines of one failure that are shown."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", type=Path, help="case folders, or folders with cases anywhere below")
    engine_arguments(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="also name the cases that pass")


def test(given: Given) -> int:
    from coincide.testing.cases import run_case

    check_engine(given)
    console = _console()
    passed = failed = 0
    for case in _found(given.paths):
        result = run_case(case, given.engine, given.tier)
        passed, failed = passed + result.passed, failed + (not result.passed)
        if given.verbose or not result.passed:
            _show(result, console)
    if not passed + failed:
        console.print(f"no case found below {', '.join(map(str, given.paths))}", style="red", markup=False)
    good = passed > 0 and not failed
    console.print(f"{passed} passed, {failed} failed", style="green" if good else "red", markup=False)
    return 0 if good else 1


def _found(paths: Iterable[Path]) -> list[Case]:
    from coincide.errors import InputError
    from coincide.testing.cases import find_cases

    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: No such file or directory")
    return list(dict.fromkeys(case for path in paths for case in find_cases(path)))


def _console() -> Any:
    """Colours on a terminal only; long lines stay whole, so that they can be searched and copied."""
    from rich.console import Console

    return Console(soft_wrap=True, highlight=False, emoji=False)


def _show(result: CaseResult, console: Any) -> None:
    if result.passed:
        console.print(f"passed {result.case.name}", style="green", markup=False)
        return
    console.print(f"FAILED {result.case.folder} ({result.kind})", style="bold red", markup=False)
    for problem in result.problems[:SHOWN]:
        word, style = SIGNS[problem.sign]
        console.print(f"    {word}  {problem.text}" if word else f"    {problem.text}", style=style, markup=False)
    if (more := len(result.problems) - SHOWN) > 0:
        console.print(f"    and {more} more", markup=False)


TEST = Command("test", DESCRIPTION, _arguments, test)
