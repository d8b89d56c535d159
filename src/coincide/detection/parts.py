"""Parts of an encoded state that several definitions have together: tables (columns/codec.py), and for each one a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from coincide.detection.base import Changes, Detector, additions
from coincide.detection.snapshots import damaged, decoded
from coincide.model.bounds import Count

TABLES = 2
"""The version of references, and of what they refer to."""
LONGEST = 256
"""Bytes of a reference: what is longer is none, and need not be looked into."""


class Reference(msgspec.Struct, array_like=True):
    """A definition whose state is in tables with others': which ones, and its number there."""

    version: int
    name: str
    number: Count


class TablesPart(msgspec.Struct, array_like=True):
    """Tables of several definitions: what tells them from those of some of these, and the whole; parts of their own add to it."""

    version: int
    about: list[Count]
    base: bytes


class Unwritten(bytes):
    """A part whose tables were made just now, to be read at once: its bytes tell all but these (codec.Relations)."""

    tables: Any

    @staticmethod
    def of(version: int, about: Any, tables: Any) -> Unwritten:
        part = Unwritten(msgspec.msgpack.encode([version, about, b""]))
        part.tables = tables
        return part


def base_of(data: bytes, part: Any) -> bytes:
    """The tables of a part, as bytes that codec.decode reads."""
    base: bytes = data if isinstance(data, Unwritten) else part.base
    return base


def tables_name(kind: str, detectors: Sequence[Detector]) -> str:
    """Under which the tables of some definitions stand among the parts."""
    digests = "\n".join(detector.digest for detector in detectors)
    return f"{kind} {blake2b(digests.encode(), digest_size=16).hexdigest()}"


def with_references(kind: str, detectors: Sequence[Detector], about: list[int], base: bytes) -> dict[str, bytes]:
    """The parts of definitions whose state is in tables."""
    name = tables_name(kind, detectors)
    parts = {d.digest: msgspec.msgpack.encode(Reference(TABLES, name, number)) for number, d in enumerate(detectors)}
    return {**parts, name: msgspec.msgpack.encode(TablesPart(TABLES, about, base))}


def reference_of(data: bytes | None) -> Reference | None:
    """None: the state of a definition is kept otherwise."""
    if data is None or len(data) > LONGEST:
        return None
    version, *_ = msgspec.msgpack.decode(data, type=list[Any])
    return decoded(data, Reference, TABLES) if version == TABLES else None


def tables_named(parts: Mapping[str, bytes], name: str, version: int = TABLES) -> tuple[TablesPart, list[bytes]]:
    """Tables, and what was added to them."""
    if name not in parts:
        damaged("it refers to a part that is not there")
    tables = decoded(parts[name], TablesPart, version)
    tables.base = base_of(parts[name], tables)
    return tables, [parts[more] for more in additions(parts, name)]


def own_tables(
    kind: str, detectors: Sequence[Detector], about: list[int], parts: Mapping[str, bytes]
) -> tuple[bytes, list[bytes]] | None:
    """The tables of exactly these definitions and what was added to them, to which more can be added; None: their state is kept
    otherwise."""
    name = tables_name(kind, detectors)
    found = [reference_of(detector.part_of(parts)) for detector in detectors]
    if any(r is None or r.name != name or r.number != n for n, r in enumerate(found)):
        return None
    tables, later = tables_named(parts, name)
    return (tables.base, later) if tables.about == about else None


def with_tables(detector: Detector, base: bytes, version: int = TABLES) -> dict[str, bytes]:
    """The part of a definition whose state is in tables of its own."""
    return {detector.digest: tables_part(base, version)}


def tables_part(base: bytes, version: int = TABLES) -> bytes:
    return msgspec.msgpack.encode(TablesPart(version, [], base))


def changes_of(detector: Detector, data: bytes, is_whole: bool, version: int = TABLES) -> Changes:
    """What has changed in the tables of a definition, or all there is."""
    return Changes(with_tables(detector, data, version), {}) if is_whole else Changes({}, {detector.digest: data})


def changes_of_several(kind: str, detectors: Sequence[Detector], about: list[int], data: bytes, is_whole: bool) -> Changes:
    if is_whole:
        return Changes(with_references(kind, detectors, about, data), {})
    return Changes({}, {tables_name(kind, detectors): data})


def is_tables(data: bytes, version: int = TABLES) -> bool:
    """Is a part in tables of its own?"""
    return msgspec.msgpack.decode(data, type=list[Any])[:1] == [version]


def tables_of(detector: Detector, parts: Mapping[str, bytes], version: int = TABLES) -> tuple[bytes, list[bytes]] | None:
    """A definition's own tables and what was added to them; None: its state is not kept in tables."""
    name = detector.name_in(parts)
    if name is None or not is_tables(parts[name], version):
        return None
    tables, later = tables_named(parts, name, version)
    return tables.base, later


def by_tables(detectors: Sequence[Detector], parts: Mapping[str, bytes]) -> dict[str, dict[int, int]]:
    """For each name of tables that definitions refer to: by numbers there, the numbers of these definitions."""
    found: dict[str, dict[int, int]] = {}
    for number, detector in enumerate(detectors):
        reference = reference_of(detector.part_of(parts))
        if reference is not None:
            if reference.number in found.setdefault(reference.name, {}):
                damaged("two definitions have one state")
            found[reference.name][reference.number] = number
    return found
