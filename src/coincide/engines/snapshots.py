"""States as they are written, and what is said of bytes that are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from coincide.detection.base import Changes
from coincide.detection.snapshots import check_version, opened
from coincide.errors import Diagnostic, InputError
from coincide.model.bounds import Began, Count, Instant

VERSION = 1


class GraphSnapshot(msgspec.Struct, array_like=True):
    """A graph's state: plans' parts by the digests of their definitions."""

    version: int
    consumed: Count
    start: Instant | None
    hi: Began
    parts: dict[str, bytes]


class GraphChanges(msgspec.Struct, array_like=True):
    """What has changed in a graph's state since it was written before: parts that are others, what is added to some, and those
    that there are no more."""

    version: int
    consumed: Count
    start: Instant | None
    hi: Began
    replaced: dict[str, bytes]
    added: dict[str, bytes]
    gone: list[str] = []


class PolicySnapshot(msgspec.Struct, array_like=True, tag="policies"):
    """The state of a run under policies: instances by their policies."""

    version: int
    instances: dict[str, bytes]


S = TypeVar("S", GraphSnapshot, PolicySnapshot)

TAKEN: dict[type[msgspec.Struct], str] = {GraphSnapshot: "without a policy", PolicySnapshot: "under a policy"}


def read_snapshot(data: bytes, kind: type[S]) -> S:
    """A snapshot of a kind from its bytes. Raises InputError."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InputError(f"a snapshot is bytes, not {type(data).__name__}")
    try:
        snapshot = msgspec.msgpack.decode(opened(bytes(data)), type=kind)
    except (ValueError, msgspec.DecodeError) as error:
        raise _no_snapshot(data, kind, error) from error
    if snapshot.version != VERSION:
        raise InputError(f"not a snapshot of version {VERSION}, which this release reads, but of version {snapshot.version}")
    return snapshot


def with_changes(data: bytes, changes: Sequence[bytes]) -> GraphSnapshot:
    """A snapshot and what has changed after it, as one."""
    snapshot = read_snapshot(data, GraphSnapshot)
    for more in changes:
        told = msgspec.msgpack.decode(opened(more), type=GraphChanges)
        check_version(told.version, VERSION)
        Changes(told.replaced, told.added, told.gone).apply(snapshot.parts)
        snapshot.consumed, snapshot.start, snapshot.hi = told.consumed, told.start, told.hi
    return snapshot


def _no_snapshot(data: bytes, kind: type[S], error: Exception) -> InputError:
    """The usual reason: it was taken with a policy or without one, and the run goes on the other way."""
    for other, taken in TAKEN.items():
        if other is not kind and is_snapshot(data, other):
            return InputError(f"not a snapshot that this run can go on from: it was taken {taken}")
    hint = "give what `Engine.snapshot()` has made, or `coincide run --snapshot` has written"
    return InputError(Diagnostic(f"not a snapshot: {error}", hint=hint))


def is_snapshot(data: bytes, kind: type[msgspec.Struct]) -> bool:
    """Are these bytes a snapshot of this kind?"""
    try:
        msgspec.msgpack.decode(opened(bytes(data)), type=kind)
    except (ValueError, msgspec.DecodeError):
        return False
    return True
