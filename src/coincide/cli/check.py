"""`coincide check` and `coincide analyse`: what can be said of rules without running them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Command, Given, load_rules, rules_argument
from coincide.cli.report import show_warnings
from coincide.expr.quantities import counted

if TYPE_CHECKING:
    from coincide.rulebook import Rulebook

CHECK_DESCRIPTION = """\
Check rules without events: errors, warnings, analysis.

Of ECL monitors it tells: can it ever push? Again and again, or only so many times? What does each output
depend on? Which monitors are covered by others? Are two files equivalent?

Of Sigma's rules, with a mapping: which can never match, since no entry has their log source, or no event what they
ask for? With --keep-going: which cannot be read, and why?

example:
  coincide check theft.ecl
  coincide check sigma/rules/windows --sigma-mapping sysmon --keep-going
  coincide check theft.ecl --other theft-new.ecl
"""

ANALYSE_DESCRIPTION = """\
Print the analysis of ECL monitors as one JSON object.

The same as `coincide check --json`.

example:
  coincide analyse theft.ecl --events today.jsonl
"""


def _analysis_arguments(parser: argparse.ArgumentParser) -> None:
    rules_argument(parser)
    parser.add_argument("--other", metavar="FILE", help="rules to compare these with")
    parser.add_argument("--events", "-e", metavar="FILE", help="events after which to tell what is of no interest then")
    parser.add_argument("--all", action="store_true", help="compare each with each, also of many monitors: may take long")


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    _analysis_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the whole analysis as one JSON object")


def check(given: Given) -> int:

    if given.json:
        return analyse(given)
    book = load_rules(given)
    diagnostics = [*book.warnings, *book.remarks, *book.endless_warnings]
    show_warnings(diagnostics)
    left_out = len(book.compiled.left_out())
    more = f", {counted(left_out, 'rule')} left out" if left_out else ""
    print(f"{counted(len(book.detectors), 'detector')}, {counted(len(diagnostics), 'warning')}{more}")
    if given.other or given.events or given.all:
        _show_analysis(_analysis(book, given))
    elif all(source.name.endswith(".ecl") for source, _ in book.files):
        _show_if_few(book, given)
    return 0


def _show_if_few(book: Rulebook, given: Given) -> None:
    from coincide.analysis.report import MANY

    if len(book.detectors) <= MANY:
        _show_analysis(_analysis(book, given))
    else:
        print(f"the analysis is left out: it is shown of at most {MANY} monitors, or with --all")


def analyse(given: Given) -> int:
    import msgspec

    answer = msgspec.json.encode(_analysis(load_rules(given), given))
    sys.stdout.write(msgspec.json.format(answer, indent=1).decode() + "\n")
    return 0


def _analysis(book: Rulebook, given: Given) -> dict[str, Any]:
    from coincide import api

    return api.analyse(book, events=given.events, other=given.other, whole=True if given.all else None)


def _show_analysis(answer: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    for name, monitor in answer["monitors"].items():
        console.print(f"\n[bold]{name}[/bold]")
        for what, text in _monitor_lines(monitor):
            console.print(f"  [cyan]{what:<13}[/cyan]", end="")
            console.print(text, markup=False)
    lines = [*_pair_lines(answer.get("pairs", {})), *_file_lines(answer)]
    if "left_out" in answer:
        lines.append("so many monitors are not compared with one another; --all does it")
    if lines:
        console.print()
    for line in lines:
        console.print(line, markup=False)


def _monitor_lines(monitor: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if monitor.get("limit"):
        yield "analysis", "too many states or kinds of events to tell anything; it runs like any other"
        return
    yield "outputs", _how_often(monitor)
    for token, labels in monitor["depends"].items():
        yield f"{token}", f"depends on {_listed(labels)}" if labels else "depends on no test: any event may do"
    for token in monitor["dead"]:
        yield token, "can never happen"
    if monitor["outcomes"]:
        yield "ends", f"with {' or '.join(monitor['outcomes'])}"
    yield "machine", f"{counted(monitor['states'], 'state')}, {counted(monitor['letters'], 'kind')} of events"
    if "quenched_now" in monitor:
        yield "ignores now", _letters(monitor["quenched_now"])
    yield "ignores", _letters(monitor["quenched_always"])
    if not monitor["exact"]:
        yield "note", "some tests cannot be decided in advance: the answers hold if all their outcomes are possible"


def _how_often(monitor: Mapping[str, Any]) -> str:
    if monitor["vacuous"]:
        return "none, whatever happens"
    if monitor["trivial"]:
        return "at every event"
    often = "again and again" if monitor["recurrent"] else "a bounded number of times"
    return f"{often}; {'possible until it is over' if monitor['live'] else 'it can get stuck before'}"


def _letters(letters: list[list[str]]) -> str:
    if not letters:
        return "nothing: every event may matter"
    return "events that satisfy " + "; or ".join(
        f"only {_listed(letter)}" if letter else "none of its tests" for letter in letters
    )


def _pair_lines(pairs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for names, pair in pairs.items():
        a, b = names.split(",")
        if pair.get("equivalent"):
            if a < b:
                yield f"{a} and {b} are equivalent: one of them is enough"
        elif pair.get("contained"):
            yield f"{a} is contained in {b}: {b} makes all its outputs, at the same events"
        elif pair.get("covered"):
            yield f"{a} is covered by {b}: {b} makes some output whenever {a} does"


def _file_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    system = answer.get("system", {})
    other = system.get("other") or answer.get("other")
    if other and not other.get("limit"):
        if other["equivalent"]:
            yield "the two files are equivalent"
        else:
            inside = "its outputs are all made by the other file too; " if other["contained"] else ""
            yield f"the two files differ: {inside}{counted(other['distinguish'], 'event')} can tell them apart"
    if "unchanged" in answer:
        yield f"unchanged in the other file, would keep their state: {_listed(answer['unchanged']) or 'none'}"


def _listed(texts: list[str]) -> str:
    return ", ".join(texts)


CHECK = Command("check", CHECK_DESCRIPTION, _check_arguments, check)
ANALYSE = Command("analyse", ANALYSE_DESCRIPTION, _analysis_arguments, analyse)
