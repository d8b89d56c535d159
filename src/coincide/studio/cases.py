"""A session as a case for `coincide test`: its rules, its events, and the detections that were accepted as what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from coincide.adapters.files import CompleteFile
from coincide.adapters.records import record_for
from coincide.errors import InputError
from coincide.languages.registry import MODULES
from coincide.model.event import Event, record
from coincide.studio.files import writing
from coincide.studio.session import Session
from coincide.testing.cases import EXPECTED, Case, run_case

MOST = 200_000
"""Events of a case: of more, mark a stretch of time."""

Span = tuple[int, int]


def write_case(session: Session, name: str, span: Span | None = None) -> dict[str, Any]:
    """Writes the folder, and tells whether the case passes. Raises InputError."""
    run, folder = session.last_run(), session.files.path(name)
    _check_free(folder, name)
    rows, mapping = _rows(session, span), run.book.fields(run.mapping)
    accepted = [run.detections[n] for n in sorted(session.accepted) if _lies_in(run.detections[n], span)]
    with writing(name):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in _rules(session, folder):
            _write(path, text.encode())
        _write(folder / "events.jsonl", _lines(record_for(event, mapping) for event in session.store.events(rows)))
        _write(folder / "expected.jsonl", _lines(map(record, accepted)))
    result = run_case(Case(folder))
    problems = [f"{problem.sign} {problem.text}" for problem in result.problems[:20]]
    answer = {"events": len(rows), "expected": len(accepted), "passed": result.passed, "problems": problems}
    return {"folder": session.files.name_of(folder), **answer}


def _check_free(folder: Path, name: str) -> None:
    """A case may be written again; nothing else is replaced."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / EXPECTED[0]).is_file())):
        raise InputError(f"'{name}' already exists and is not a case")


def _rows(session: Session, span: Span | None) -> Sequence[int]:
    ends = session.store.times[1]
    rows = np.arange(len(ends)) if span is None else np.flatnonzero((ends >= span[0]) & (ends <= span[1]))
    if len(rows) > MOST:
        raise InputError(f"{len(rows):,} events are too many for a case: mark a stretch of time (Shift and drag) with fewer")
    return rows.tolist()


def _lies_in(detection: Event, span: Span | None) -> bool:
    return span is None or span[0] <= detection.hi <= span[1]


def _rules(session: Session, folder: Path) -> Iterable[tuple[Path, str]]:
    sources = session.files.sources()
    for old in folder.glob("rules.*"):
        old.unlink()
    for number, source in enumerate(sources, 1):
        ending = next(ending for ending in MODULES if source.name.endswith(ending))
        yield folder / (f"rules{ending}" if len(sources) == 1 else f"rules.{number}{ending}"), source.text


def _lines(records: Iterable[object]) -> bytes:
    return msgspec.json.Encoder().encode_lines(records)


def _write(path: Path, data: bytes) -> None:
    with CompleteFile(path) as file:
        file.stream.write(data)
