"""`coincide test --accept`: what was got is what is expected from now on.

Expectations that are met stay as they are written, in all or in part; the others go, and what came unexpectedly is added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from coincide.adapters.files import CompleteFile
from coincide.source import Span
from coincide.testing.cases import Case, Setup
from coincide.testing.compare import Record, matching, plain_detection
from coincide.testing.expected import expectation, in_iso, read_expected, read_records, says_iso
from coincide.testing.kinds import detections_of, kind_of
from coincide.testing.suites import SuiteCase


@dataclass(frozen=True)
class Edit:
    """New text from `start` to `end` of a file (to its end, where that is not said)."""

    path: Path
    text: str
    start: int = 0
    end: int | None = None
    count: int = 0  # of the detections that are expected now


def acceptance(case: Case | SuiteCase, setup: Setup) -> Edit | None:
    """What is to be written so that the case passes; None if it is not about detections. Raises what its rules raise."""
    if isinstance(case, SuiteCase):
        return _in_suite(case, case.detections(setup))
    return _in_folder(case, setup)


def write(edits: Iterable[Edit]) -> None:
    by_file: dict[Path, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.path, []).append(edit)
    for path, own in by_file.items():
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for edit in sorted(own, key=lambda edit: edit.start, reverse=True):  # the places of earlier ones stay right
            text = text[: edit.start] + edit.text + ("" if edit.end is None else text[edit.end :])
        with CompleteFile(path) as file:
            file.stream.write(text.encode())


def _in_folder(case: Case, setup: Setup) -> Edit | None:
    path = case.folder / "expected.jsonl"
    if path.exists() and kind_of(case)[0] != "detections":
        return None
    found = detections_of(case, setup)
    written = read_records(path) if path.exists() else []
    matching, added = _kept_and_added(read_expected(path) if path.exists() else [], found, any(map(says_iso, written)))
    lines = [msgspec.json.encode(record).decode() for record in added]
    if path.exists():
        own = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        lines = [*(own[n] for n in matching), *lines]
    return Edit(path, "".join(f"{line}\n" for line in lines), count=len(lines))


def _in_suite(case: SuiteCase, found: Sequence[Record]) -> Edit:
    matching, added = _kept_and_added(case.expected, found, any(says_iso(record) for record, _ in case.written))
    items = [*(_own_text(case.written[n][1]) for n in matching), *map(_flow, added)]
    at, margin = case.expected_at, " " * (case.span.column - 1)
    listed = "".join(f"\n{margin}  - {item}" for item in items) or " []"
    if at is None:
        end = _end(case.span)
        return Edit(case.file, f"\n{margin}expected:{listed}", end, end, len(items))
    if not at.text.startswith("-"):  # a list in brackets, or nothing
        return Edit(case.file, listed, len(at.source.text[: at.start].rstrip(" ")), _end(at), len(items))
    indent = " " * (at.column - 1)
    if not items:
        return Edit(case.file, f"{margin}  []", at.start - len(indent), _end(at))
    return Edit(case.file, f"\n{indent}".join(f"- {item}" for item in items), at.start, _end(at), len(items))


def _kept_and_added(expected: Sequence[Record], found: Sequence[Record], iso: bool) -> tuple[list[int], list[Record]]:
    """The numbers of the expectations that are met, and the detections that none expects."""
    met = matching([plain_detection(expectation(r)) for r in expected], [plain_detection(r) for r in found])
    added = [record for n, record in enumerate(found) if n not in set(met.values())]
    return sorted(met), [in_iso(record) for record in added] if iso else added


def _flow(record: Record) -> str:
    """A record on one line."""
    text: str = yaml.safe_dump(dict(record), default_flow_style=True, sort_keys=False, allow_unicode=True, width=2**31)
    return text.strip()


def _own_text(span: Span) -> str:
    return span.source.text[span.start : _end(span)]


def _end(span: Span) -> int:
    """Where a node's own text ends: a block's place goes on over empty lines and comments that follow it."""
    lines = span.text.splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return span.start + len("".join(lines).rstrip())
