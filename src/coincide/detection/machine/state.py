"""The state of a group of monitors, and its encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coincide.detection.keys import Key, key_value
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


def encode(group: MonitorGroup, columns: Iterable[Column]) -> dict[str, bytes]:
    running = {part: column.configurations for column in columns for part in column.parts}
    return {
        detector.digest: _encode(group, monitor, [running[monitor, n] for n in range(len(group.parts[monitor]))])
        for monitor, detector in enumerate(group.detectors)
    }


def _encode(group: MonitorGroup, monitor: int, parts: list[Configurations]) -> bytes:
    """A key's configurations, part by part, for each key that any part of the monitor has left the start with."""
    starts = [machine.start for machine in machines_of(group, monitor)]
    keys = dict.fromkeys(key for configurations in parts for key in configurations)
    entries = [[[key_value(v) for v in key], [c.get(key, start) for c, start in zip(parts, starts, strict=True)]] for key in keys]
    return msgspec.msgpack.encode([VERSION, entries])


def shared(group: MonitorGroup, encoded: Mapping[str, bytes]) -> list[Column]:
    """Columns from encoded states. Parts share one where machine and state are equal."""
    columns: dict[tuple[int, bytes, int], Column] = {}
    encoded = _without_tables(group, encoded)
    for monitor, detector in enumerate(group.detectors):
        data = encoded.get(detector.digest, b"")
        found = _decode(group, data, machines_of(group, monitor)) if data else None
        for number, part in enumerate(group.parts[monitor]):
            identity = (part.program, data, number if data else 0)
            column = columns.setdefault(identity, Column(part.program, []))
            if found is not None and not column.parts:
                column.configurations = found[number]
            column.parts.append((monitor, number))
    return list(columns.values())


def _without_tables(group: MonitorGroup, encoded: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The parts with entries instead of references to tables."""
    found = dict(encoded)
    for name, numbers in by_tables(group.detectors, encoded).items():
        from coincide.detection.machine.relations import as_objects

        tables, later = tables_named(encoded, name)
        for monitor, parts in as_objects(group, numbers, tables.base, later).items():
            found[group.detectors[monitor].digest] = _encode(group, monitor, parts)
    return found


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
