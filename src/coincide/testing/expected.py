"""Expectations: detections as somebody writes them down, in all or in part, with times in any form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import BadRecord, instant
from coincide.errors import InputError
from coincide.model.stamp import format_instant, milliseconds
from coincide.testing.compare import PARTIAL, Record


def read_records(path: Path) -> list[Record]:
    """Records of a JSON Lines file."""
    return [record for _, record in _lines(path)]


def read_expected(path: Path) -> list[Record]:
    """Expectations of a JSON Lines file, one a line, as `expectation` understands them."""
    found: list[Record] = []
    for number, record in _lines(path):
        try:
            found.append(expectation(record))
        except BadRecord as bad:
            raise InputError(f"{path}:{number}: {bad}") from bad
    return found


def expectation(record: Record) -> dict[str, Any]:
    """A record with its times in milliseconds. Raises BadRecord."""
    if record.get(PARTIAL, True) not in (True, None):
        raise BadRecord(f"'{PARTIAL}' stands for all other fields: its value is true")
    out = dict(record)
    if (time := out.get("time")) is not None:
        pair = isinstance(time, (list, tuple)) and len(time) == 2
        out["time"] = [_in_milliseconds(end) for end in time] if pair else _in_milliseconds(time)
    return out


def says_iso(record: Record) -> bool:
    """Does it spell its time as people read it?"""
    time = record.get("time")
    return isinstance(time, str) or (isinstance(time, (list, tuple)) and any(isinstance(end, str) for end in time))


def in_iso(record: Record) -> dict[str, Any]:
    """A detection with its time as people read it."""
    time = record["time"]
    return {**record, "time": [_iso(end) for end in time] if isinstance(time, list) else _iso(time)}


def _in_milliseconds(time: object) -> int | float:
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        return time
    return milliseconds(instant(time, DEFAULT, "time"))


def _iso(time: float) -> str:
    return format_instant(instant(time, DEFAULT, "time"))


def _lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                records.append((number, msgspec.json.decode(line, type=dict[str, Any])))
            except msgspec.DecodeError as error:
                raise InputError(f"{path}:{number}: {error}") from error
    return records
