"""What is mutated: conformance cases with their texts and events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from coincide.engines.choice import until_microseconds
from coincide.errors import CoincideError
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.cases import Case, find_cases
from coincide.testing.compare import Record

DEFAULT = Path("tests/conformance/cases")

STEPS = 1_000_000
"""That a row pattern may need from a row: random values may make of a case what takes exponential time, and has to stop."""


@dataclass(frozen=True)
class Example:
    """A case's rules as texts (names are paths, so that files beside them are found) and its events as records."""

    name: str
    rules: tuple[SourceText, ...]
    events: tuple[Record, ...]
    until: float | None

    @cached_property
    def book(self) -> Rulebook:
        return replace(load(*self.rules), steps=STEPS)

    @cached_property
    def is_accepted(self) -> bool:
        try:
            return bool(self.book.detectors)
        except CoincideError:
            return False


def examples(folder: Path) -> list[Example]:
    """All cases of known languages below a folder, by name."""
    found = [
        _example(case)
        for case in find_cases(folder)
        if case.rules and case.is_known and all(path.is_file() for path in case.rules)
    ]
    if not found:
        raise CoincideError(f"there are no conformance cases in '{folder}': name their folder with --corpus")
    return found


def runnable(folder: Path) -> list[Example]:
    """Those whose rules are accepted and that have events."""
    return [example for example in examples(folder) if example.events and example.is_accepted]


def _example(case: Case) -> Example:
    from coincide.testing.expected import read_records

    events = case.path("events.jsonl")
    rules = tuple(SourceText(str(path), path.read_text(encoding="utf-8")) for path in case.rules)
    return Example(case.name, rules, tuple(read_records(events)) if events else (), until_microseconds(case.text("until")))
