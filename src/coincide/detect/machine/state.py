"""The state of a group of monitors, and its encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detect.machine.program import Key, MonitorGroup, key_part, key_value

VERSION = 1

Configurations = dict[Key, Any]
"""Configuration by key; a key that is at the start is not kept."""


@dataclass
class Column:
    """One running machine: monitors that run the same machine and have come the same way share it."""

    program: int
    monitors: list[int]
    configurations: Configurations = field(default_factory=dict)


def fresh(group: MonitorGroup) -> list[Column]:
    return shared(group, {})


def encode(group: MonitorGroup, columns: Iterable[Column]) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    for column in columns:
        entries = [[[key_value(part) for part in key], configuration] for key, configuration in column.configurations.items()]
        data = msgspec.msgpack.encode([VERSION, entries])
        out.update((group.detectors[m].digest, data) for m in column.monitors)
    return out


def shared(group: MonitorGroup, parts: Mapping[str, bytes]) -> list[Column]:
    """Columns from encoded parts. Monitors share one where machine and state are equal."""
    columns: dict[tuple[int, bytes], Column] = {}
    for number, detector in enumerate(group.detectors):
        data = parts.get(detector.digest, b"")
        column = columns.setdefault((group.program_of[number], data), Column(group.program_of[number], []))
        if data and not column.monitors:
            column.configurations = _decode(data)
        column.monitors.append(number)
    return list(columns.values())


def _decode(data: bytes) -> Configurations:
    version, entries = msgspec.msgpack.decode(data)
    if version != VERSION:
        raise ValueError(f"state of version {version}; this release reads version {VERSION}")
    return {tuple(key_part(v) for v in key): _frozen(configuration) for key, configuration in entries}


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value
