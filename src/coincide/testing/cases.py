"""Conformance cases: folders of rules, events and what must come of them. The same cases serve `coincide test` and pytest.

A case is a folder with rule files (`rules.ENDING`, or several `rules.1.ENDING`, `rules.2.ENDING` …) and a file that says
what is expected; kinds.py lists which file makes which kind of case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coincide.errors import CoincideError, InputError
from coincide.languages.registry import MODULES

if TYPE_CHECKING:
    from coincide.rulebook import Rulebook

EXPECTED = ("expected.jsonl", "expected-error", "expected-warnings", "expected.json")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a case's outcome. `sign`: '-' missing, '+' unexpected, '~' differs, '!' anything else."""

    sign: str
    text: str


@dataclass(frozen=True)
class Setup:
    """How cases are run."""

    engine: str = "embedded"
    tier: str = "auto"


@dataclass(frozen=True)
class Case:
    """A folder that holds a case."""

    folder: Path

    @property
    def name(self) -> str:
        """The last two parts of its path: the suite and the case."""
        return "/".join(self.folder.absolute().parts[-2:])

    @property
    def place(self) -> str:
        """Where somebody finds it."""
        return str(self.folder)

    @property
    def suite(self) -> str:
        return self.folder.absolute().parent.name

    @cached_property
    def rules(self) -> list[Path]:
        """Its rule files, in the order in which they are loaded."""
        folder = self.folder / "rules"
        return sorted(self.folder.glob("rules.*"), key=_file_order) + ([folder] if folder.is_dir() else [])

    def book(self) -> Rulebook:
        """Its rules, loaded together."""
        from coincide.rulebook import load

        return load(*self.rules, sigma_mapping=self.path("mapping.yml"))

    @cached_property
    def events(self) -> Path | None:
        """Its events, in a file of any form that can be read."""
        found = sorted(path for path in self.folder.glob("events.*") if path.is_file())
        if len(found) > 1:
            raise InputError(f"{self.folder}: there are several files of events: {', '.join(p.name for p in found)}")
        return found[0] if found else None

    def path(self, name: str) -> Path | None:
        """A file of the case, if it is there."""
        path = self.folder / name
        return path if path.is_file() else None

    def text(self, name: str) -> str | None:
        path = self.path(name)
        return None if path is None else path.read_text(encoding="utf-8").strip()

    @property
    def is_known(self) -> bool:
        """Are all its rules of languages that are here?"""
        return all(path.name.endswith(tuple(MODULES)) or path.is_dir() for path in self.rules)


class AnyCase(Protocol):
    """A case, in a folder or in a file of several."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> str: ...


@dataclass(frozen=True)
class CaseResult:
    case: AnyCase
    kind: str
    problems: tuple[Problem, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        lines = [f"  {problem.sign} {problem.text}" for problem in self.problems]
        return "\n".join([f"{'passed' if self.passed else 'FAILED'} {self.case.name} ({self.kind})", *lines])


Check = Callable[[Case, Setup], list[Problem]]


def find_cases(path: Path | str, *, unfinished: bool = False) -> list[Case]:
    """The cases in a folder and everywhere below it, by name; also the `unfinished`, which have rules and events but do not
    say yet what is expected."""
    return sorted(_cases_below(Path(path), unfinished), key=lambda case: case.folder)


def _cases_below(top: Path, unfinished: bool) -> Iterator[Case]:
    if not top.is_dir():
        return
    folders = [top, *(p for p in top.rglob("*") if p.is_dir() and not _is_hidden(p.relative_to(top)))]
    for folder in folders:
        case = Case(folder)
        if any((folder / name).is_file() for name in EXPECTED) or (unfinished and case.rules and case.events is not None):
            yield case


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def run_case(case: Case, engine: str = "embedded", tier: str = "auto") -> CaseResult:
    """What comes of a case. A failure is a result, not an exception; so is an error that nobody expected."""
    from coincide.testing.kinds import kind_of

    kind, check = kind_of(case)
    if not case.rules:
        return CaseResult(case, kind, (Problem("!", "there is no rule file: rules.ENDING, or rules.1.ENDING …"),))
    return result_of(case, kind, lambda: check(case, Setup(engine, tier)))


def result_of(case: AnyCase, kind: str, check: Callable[[], list[Problem]]) -> CaseResult:
    """A failure is a result, not an exception."""
    try:
        problems = check()
    except CoincideError as error:
        problems = [Problem("!", line) for line in str(error).splitlines()]
    except Exception as error:  # a mistake of ours in one case should not hide what becomes of the others
        problems = [Problem("!", f"{type(error).__name__}: {error}"), Problem("!", _last_place(error))]
    return CaseResult(case, kind, tuple(problems))


def _last_place(error: Exception) -> str:
    """Where it happened."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "nowhere"


def _file_order(path: Path) -> tuple[int, str]:
    """By the number in the name: rules.10.ecl comes after rules.9.ecl."""
    number = re.match(r"rules\.(\d+)\.", path.name)
    return int(number[1]) if number else 0, path.name
