"""The state of a group of monitors, and the reader of what releases before tables wrote (relations.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detection.keys import Key
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.transducer import Transducer
from coincide.detection.parts import by_tables, tables_named
from coincide.detection.snapshots import damaged, decoded, key_of
from coincide.model.event import StoredValue

VERSION = 1


class Written(msgspec.Struct, array_like=True):
    """A monitor: for each key that has left the start, the configurations of its parts."""

    version: int
    entries: list[tuple[list[StoredValue], list[Any]]]


Configurations = dict[Key, Any]
"""Configuration by key; a key that is at the start is not kept."""


@dataclass
class Column:
    """One running machine. Parts (monitor, number of the part) that run the same machine and have come the same way share
    it."""

    program: int
    parts: list[tuple[int, int]]
    configurations: Configurations = field(default_factory=dict)


def decode(group: MonitorGroup, parts: Mapping[str, bytes]) -> list[Column]:
    """Columns from encoded states."""
    running: dict[tuple[int, int], Configurations] = {}
    for name, numbers in by_tables(group.detectors, parts).items():
        from coincide.detection.machine.relations import as_objects

        tables, later = tables_named(parts, name)
        for monitor, own in as_objects(group, numbers, tables.base, later).items():
            running |= {(monitor, number): configurations for number, configurations in enumerate(own)}
    for monitor, detector in enumerate(group.detectors):
        data = detector.part_of(parts)
        if data is not None and (monitor, 0) not in running:
            own = _decode(group, data, machines_of(group, monitor))
            running |= {(monitor, number): configurations for number, configurations in enumerate(own)}
    return shared(group, running)


def shared(group: MonitorGroup, running: Mapping[tuple[int, int], Configurations]) -> list[Column]:
    """Columns for all parts of monitors. They share one where machine and state are equal."""
    columns: list[list[Column]] = [[] for _ in group.programs]
    for part, program in group.programs_of_parts.items():
        own = running.get(part, {})
        column = next((column for column in columns[program] if column.configurations == own), None)
        if column is None:
            columns[program].append(column := Column(program, [], own))
        column.parts.append(part)
    return [column for some in columns for column in some]


def machines_of(group: MonitorGroup, monitor: int) -> list[Transducer]:
    return [group.programs[part.program].transducer for part in group.parts[monitor]]


def _decode(group: MonitorGroup, data: bytes, machines: list[Transducer]) -> list[Configurations]:
    parts: list[Configurations] = [{} for _ in machines]
    for values, configurations in decoded(data, Written, VERSION).entries:
        key = key_of(values, len(group.keys))
        for part, machine, raw in zip(parts, machines, configurations, strict=True):
            configuration = frozen(raw)
            if not machine.accepts(configuration):
                damaged("a machine is in no state of its own")
            if configuration != machine.start:
                part[key] = configuration
    return parts


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, list) else value
