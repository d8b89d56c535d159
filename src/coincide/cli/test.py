"""`coincide test`: cases of rules, with a readable difference where one fails."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Command, Given, check_engine, engine_arguments

if TYPE_CHECKING:
    from coincide.testing.accept import Edit
    from coincide.testing.cases import Case, CaseResult
    from coincide.testing.suites import SuiteCase

DESCRIPTION = """\
Test rules: events in, and the detections that must come out.

A case is a folder with
  rules.ENDING            the rules (several: rules.1.ENDING, rules.2.ENDING …)
  events.jsonl            what goes in (or .csv, .parquet …)
  expected.jsonl          what must come out; a line with "...": true tells only some of the fields
  until                   optional: where the clock goes on to after the last event
or one of several in a file NAME.test.yaml: rules, events, expected and until, in line or in files.

With --accept, what comes out is what is expected from now on. The exit code is 1 if a case fails, or if
there is none.

example:
  coincide test my-cases
  coincide test doors.test.yaml --accept
  coincide test tests/conformance/cases/ecl --tier kernel
"""

SIGNS = {"-": ("missing   ", "red"), "+": ("unexpected", "yellow"), "~": ("differs   ", "magenta"), "!": ("", "red")}
SHOWN = 20
"""Lines of one failure that are shown."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        type=Path,
        help="case folders, YAML files of cases, or folders with cases anywhere below",
    )
    parser.add_argument("--accept", action="store_true", help="of cases that fail, write down what came out as what is expected")
    engine_arguments(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="also name the cases that pass")


def test(given: Given) -> int:
    check_engine(given)
    console = _console()
    outcomes: Counter[str] = Counter(passed=0, failed=0)
    edits: list[Edit] = []
    for case in _cases_in(given.paths, given.accept):
        result, notes = _run(case, given)
        edit = _acceptance(case, given) if given.accept and not result.passed else None
        outcomes["passed" if result.passed else "failed" if edit is None else "accepted"] += 1
        if edit is not None:
            edits.append(edit)
            console.print(f"accepted {case.place}: {edit.count} expected", style="yellow", markup=False)
        elif given.verbose or not result.passed:
            _show(result, notes, console)
    _write(edits)
    if not sum(outcomes.values()):
        console.print(f"no case found below {', '.join(map(str, given.paths))}", style="red", markup=False)
    good = not outcomes["failed"] and sum(outcomes.values()) > 0
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    console.print(counts, style="green" if good else "red", markup=False)
    return 0 if good else 1


def _run(case: Case | SuiteCase, given: Given) -> tuple[CaseResult, list[str]]:
    """And what the rules read and no event had: hardly any example has it all, so that is told only of one that fails."""
    import warnings

    from coincide.errors import DataWarning
    from coincide.testing.cases import Case, run_case
    from coincide.testing.suites import run_suite_case

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        if isinstance(case, Case):
            result = run_case(case, given.engine, given.tier)
        else:
            result = run_suite_case(case, given.engine, given.tier)
    return result, [str(one.message).partition("\n")[0] for one in caught if issubclass(one.category, DataWarning)]


def _acceptance(case: Case | SuiteCase, given: Given) -> Edit | None:
    """None where there is nothing to accept: the rules do not run, or the case is not about detections."""
    import warnings

    from coincide.errors import CoincideError, DataWarning
    from coincide.testing.accept import acceptance
    from coincide.testing.cases import Setup

    try:
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            return acceptance(case, Setup(given.engine, given.tier))
    except CoincideError:
        return None


def _write(edits: list[Edit]) -> None:
    if edits:
        from coincide.testing.accept import write

        write(edits)


def _cases_in(paths: Iterable[Path], unfinished: bool) -> list[Case | SuiteCase]:
    from coincide.errors import InputError
    from coincide.testing.cases import find_cases
    from coincide.testing.suites import find_suites, read_suite

    found: dict[str, Case | SuiteCase] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: No such file or directory")
        found.update((case.place, case) for case in find_cases(path, unfinished=unfinished))
        found.update((case.place, case) for file in find_suites(path) for case in read_suite(file))
    return list(found.values())


def _console() -> Any:
    """Colours on a terminal only; long lines stay whole, so that they can be searched and copied."""
    from rich.console import Console

    return Console(soft_wrap=True, highlight=False, emoji=False)


def _show(result: CaseResult, notes: list[str], console: Any) -> None:
    if result.passed:
        console.print(f"passed {result.case.name}", style="green", markup=False)
        return
    console.print(f"FAILED {result.case.place} ({result.kind})", style="bold red", markup=False)
    for problem in result.problems[:SHOWN]:
        word, style = SIGNS[problem.sign]
        console.print(f"    {word}  {problem.text}" if word else f"    {problem.text}", style=style, markup=False)
    if (more := len(result.problems) - SHOWN) > 0:
        console.print(f"    and {more} more", markup=False)
    for note in notes[:SHOWN]:
        console.print(f"    {note}", markup=False)


TEST = Command("test", DESCRIPTION, _arguments, test)
