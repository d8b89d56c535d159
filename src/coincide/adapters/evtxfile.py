"""Logs of Windows as its own files (`.evtx`), by the package `evtx` (MIT), which is the extra of this name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import BadRecord, event_of
from coincide.adapters.report import Intake
from coincide.adapters.winlog import windows_record
from coincide.errors import Diagnostic, InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event

ROWS = 10_000
"""Of a batch."""


def read_evtx(name: str, mapping: FieldMapping, intake: Intake) -> Iterator[EventBatch]:
    events: list[Event] = []
    for number, data in enumerate(_records(name), 1):
        position = intake.position
        intake.counted(1)
        try:
            if isinstance(data, Exception):
                raise BadRecord(str(data))
            events.append(event_of(windows_record(msgspec.json.decode(data)), mapping, position, intake.report.huge))
        except BadRecord as bad:
            intake.reject(f"{name}: record {number}", str(bad), data if isinstance(data, str) else None)
        if len(events) == ROWS:
            yield EventBatch(events)
            events = []
    yield EventBatch(events)


def _records(name: str) -> Iterator[str | Exception]:
    """Each as JSON, or why it cannot be read."""
    try:
        from evtx import PyEvtxParser
    except ImportError:
        raise InputError(
            Diagnostic(f"cannot read '{name}': the package 'evtx' is not installed", hint="pip install 'coincide[evtx]'")
        ) from None
    try:
        records = iter(PyEvtxParser(name).records_json())
    except (RuntimeError, OSError) as error:
        raise InputError(f"cannot read '{name}': {error}") from error
    while True:
        try:
            record: Any = next(records)
        except StopIteration:
            return
        except (RuntimeError, OSError) as error:
            yield error
        else:
            yield record["data"]
