"""Kinds of conformance cases, one function each. A new kind is a function and a line in KINDS."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from coincide.errors import CoincideError, Diagnostic, RuleError, RunError
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook
from coincide.testing.cases import Case, Check, Problem, Setup
from coincide.testing.compare import Record, answers, differing_fields, unmatched
from coincide.testing.expected import read_expected

HEAD = re.compile(r"(?:(?P<file>[^:\s]+):)?(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL)


def check_detections(case: Case, setup: Setup) -> list[Problem]:
    """`expected.jsonl`: the multiset of detections; `stats.json`: the counts of the run that it names."""
    found = _detect(case, case.book(), setup)
    return [*compared(read_expected(case.folder / "expected.jsonl"), found), *_check_statistics(case, setup)]


def compared(expected: Iterable[Record], found: Iterable[Record]) -> list[Problem]:
    """How detections differ from those expected."""
    missing, unexpected = unmatched(expected, found)
    return [*_paired(missing, unexpected), *_signed("-", missing), *_signed("+", unexpected)]


def detections_of(case: Case, setup: Setup) -> list[Record]:
    return list(_detect(case, case.book(), setup))


def _check_statistics(case: Case, setup: Setup) -> list[Problem]:
    """Only the embedded engine counts."""
    from coincide.engines.embedded import Engine

    path = case.path("stats.json")
    if path is None or setup.engine != "embedded":
        return []
    engine = Engine(case.book(), setup.tier)
    for batch in _batches(case):
        engine.process(batch)
    engine.finish(case.text("until"))
    lines = answers(msgspec.json.decode(path.read_bytes()), engine.statistics())
    return [Problem("!", f"stats.json: {line}") for line in lines]


def check_error(case: Case, setup: Setup) -> list[Problem]:
    """`expected-error`: the rules are refused there and so; where there are events, the run stops so."""
    expected = case.text("expected-error") or ""
    wanted = RunError if case.events else RuleError
    try:
        book = case.book()
        if wanted is RunError:
            for _ in _detect(case, book, setup):
                pass
    except wanted as error:
        return _compare_error(expected, error.diagnostics[0])
    outcome = "the run to stop" if wanted is RunError else "the rules to be refused"
    return [Problem("!", f"expected {outcome}: {expected}")]


def check_warnings(case: Case, setup: Setup) -> list[Problem]:
    """`expected-warnings`: these and no others, in any order. ECCO's cases leave out those about unbounded operators."""
    expected = Counter((case.text("expected-warnings") or "").splitlines())
    given = [_placed(warning, case) for warning in case.book().warnings if warning.name != "unbounded-operator"]
    return [*_signed("-", (expected - Counter(given)).elements()), *_signed("+", (Counter(given) - expected).elements())]


def check_analysis(case: Case, setup: Setup) -> list[Problem]:
    """`expected.json`: every key of it, at any depth, in the answer of `coincide analyse`."""
    from coincide.api import analyse

    expected = msgspec.json.decode((case.folder / "expected.json").read_bytes())
    other = next(iter(sorted(case.folder.glob("other.*"))), None)
    answer = analyse(case.rules, events=case.events, other=other)
    return [Problem("!", line) for line in answers(expected, answer)]


def check_policy(case: Case, setup: Setup) -> list[Problem]:
    """`policy`: detections and latencies of events that come in the order of their arrival."""
    from coincide.testing.policies import check_policy

    return check_policy(case, setup)


def check_unknown(case: Case, setup: Setup) -> list[Problem]:
    return [Problem("!", f"no kind of case that is known: {', '.join(sorted(p.name for p in case.folder.iterdir()))}")]


KINDS: list[tuple[str, Callable[[Case], bool], Check]] = [
    ("error", lambda case: case.path("expected-error") is not None, check_error),
    ("warnings", lambda case: case.path("expected-warnings") is not None, check_warnings),
    ("analysis", lambda case: case.suite.endswith("-analysis") and case.path("expected.json") is not None, check_analysis),
    ("policy", lambda case: case.path("policy") is not None, check_policy),
    ("detections", lambda case: case.path("expected.jsonl") is not None, check_detections),
    ("unknown", lambda case: True, check_unknown),
]
"""Name, which cases, how. The first that applies is taken."""


def kind_of(case: Case) -> tuple[str, Check]:
    return next((name, check) for name, applies, check in KINDS if applies(case))


def _detect(case: Case, book: Rulebook, setup: Setup) -> Iterable[Record]:
    """As `coincide run` finds them: rules that name a policy see the events as they stand."""
    from coincide.api import run

    return run(book, _events(case), case.text("until"), engine=setup.engine, tier=setup.tier, end=case.text("end") or "closed")


def _batches(case: Case) -> Iterator[EventBatch]:
    """The events, in total order."""
    from coincide.adapters.order import in_total_order
    from coincide.adapters.read import open_events

    return in_total_order(open_events(_events(case), strict=True))


def _events(case: Case) -> Path:
    if case.events is None:
        raise CoincideError(f"{case.folder}: there is no events.jsonl (or .csv, .parquet …)")
    return case.events


def _compare_error(expected: str, error: Diagnostic) -> list[Problem]:
    found = HEAD.match(expected)
    if found is None:
        raise CoincideError(f"'{expected}' is not LINE:COLUMN: TEXT")
    text = found["text"]
    place = f"{error.span.line}:{error.span.column}" if error.span else "nowhere"
    file = _as_named(error.span.file, found["file"]) if error.span else None
    if text.endswith("…"):  # parsers differ in where they notice it
        right = text.removesuffix("…") in error.message
    else:
        right = text in error.message and place == f"{found['line']}:{found['column']}" and found["file"] in (None, file)
    return (
        [] if right else [Problem("-", expected), Problem("+", f"{f'{file}:' if found['file'] else ''}{place}: {error.message}")]
    )


def _as_named(file: str, name: str | None) -> str:
    """A file by as many parts of its path as the case names it by."""
    return "/".join(Path(file).parts[-len(Path(name or "one").parts) :])


def _placed(warning: Diagnostic, case: Case) -> str:
    """A warning as cases write it: without the file where there is only one."""
    if warning.span is None:
        return warning.head
    file = f"{Path(warning.span.file).name}:" if len(case.rules) > 1 else ""
    return f"{file}{warning.span.line}:{warning.span.column}: {warning.severity}: {warning.message}"


def _signed(sign: str, records: Iterable[Record | str]) -> list[Problem]:
    return [Problem(sign, r if isinstance(r, str) else line_of(r)) for r in records]


def _paired(missing: list[Record], unexpected: list[Record]) -> list[Problem]:
    """Detections that are there but not as expected: one of each list, told field by field, and taken out of both."""
    problems = []
    for wanted in list(missing):
        near = [r for r in unexpected if r.get("type") == wanted.get("type") and len(differing_fields(wanted, r)) == 1]
        if near:
            problems.append(Problem("~", _difference(wanted, near[0])))
            missing.remove(wanted)
            unexpected.remove(near[0])
    return problems


def _difference(wanted: Record, found: Record) -> str:
    (name,) = differing_fields(wanted, found)
    return f"{line_of(wanted)}: {name} is {_json(found.get(name))}, not {_json(wanted.get(name))}"


def line_of(record: Record) -> str:
    return _json(record)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
