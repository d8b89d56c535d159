"""States as they are written, and what is said of bytes that are not states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from coincide.detection.base import Changes, additions
from coincide.detection.parts import Unwritten
from coincide.detection.snapshots import check_version, opened, seal_size
from coincide.errors import Diagnostic, InputError
from coincide.model.bounds import Began, Count, Instant

if TYPE_CHECKING:
    from coincide.detection.columns.hashes import Hashes
    from coincide.detection.columns.portion import Divided

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
    progress = add_changes(changes, snapshot.parts)
    if progress is not None:
        snapshot.consumed, snapshot.start, snapshot.hi = progress
    return snapshot


def add_changes(changes: Sequence[bytes], parts: dict[str, bytes]) -> tuple[int, int | None, int] | None:
    """What has changed, to the parts of a state. Returns how far it has come then."""
    found = None
    for more in changes:
        changed = msgspec.msgpack.decode(opened(more), type=GraphChanges)
        check_version(changed.version, VERSION)
        Changes(changed.replaced, changed.added, changed.gone).apply(parts)
        found = changed.consumed, changed.start, changed.hi
    return found


class _Snapshot(msgspec.Struct, array_like=True):
    """A graph's state, of which not all is looked at."""

    version: int
    consumed: Count
    start: Instant | None
    hi: Began
    parts: dict[str, memoryview]


class _Part(msgspec.Struct, array_like=True):
    """One that is tables, with what they are about."""

    version: int
    about: Any
    base: memoryview


@dataclass(frozen=True)
class DividedPart:
    """One that portions can be read of."""

    part: _Part
    tables: Divided

    def portion(self, hashes: Hashes) -> bytes | None:
        found = self.tables.portion(hashes)
        return None if found is None else Unwritten.of(self.part.version, self.part.about, found)


@dataclass(frozen=True)
class DividedSnapshot:
    """A graph's state, to read portions of: `parts` of which that is possible, and the others whole."""

    whole: GraphSnapshot
    parts: Mapping[str, DividedPart]

    def due(self, instant: int) -> tuple[list[Hashes], int]:
        """The keys with timers that are due before, and when the next ones are, of the parts that tell that."""
        found = [part.tables.due(instant) for part in self.parts.values()]
        return [hashes for hashes, _ in found], min(following for _, following in found)

    def portion(self, hashes: Hashes) -> GraphSnapshot | None:
        """What belongs to the keys with these hashes. None: keys cannot be told from one another."""
        found = {name: part.portion(hashes) for name, part in self.parts.items()}
        parts = {name: data for name, data in found.items() if data is not None}
        if len(parts) < len(found):
            return None
        return GraphSnapshot(VERSION, self.whole.consumed, self.whole.start, self.whole.hi, self.whole.parts | parts)


def divided_snapshot(data: bytes, changes: Sequence[bytes], width: int) -> DividedSnapshot | None:
    """A state as `with_changes` has it, by keys of so many parts. The seal around the whole is not looked at: whatever is read
    is checked, and the store has its own. None: nothing can be told from the rest."""
    from coincide.detection.columns.portion import divided

    snapshot = msgspec.msgpack.decode(memoryview(data)[seal_size(data) :], type=_Snapshot)
    check_version(snapshot.version, VERSION)
    parts: dict[str, Any] = dict(snapshot.parts)
    consumed, start, hi = add_changes(changes, parts) or (snapshot.consumed, snapshot.start, snapshot.hi)
    found = dict[str, DividedPart]()
    for name in [name for name in parts if " +" not in name]:
        part, later = _tables(parts[name]), additions(parts, name)
        tables = None if part is None else divided(part.base, [bytes(parts[more]) for more in later], width)
        if part is not None and tables is not None:
            found[name] = DividedPart(part, tables)
            for more in (name, *later):
                del parts[more]
    whole = GraphSnapshot(VERSION, consumed, start, hi, {name: bytes(part) for name, part in parts.items()})
    return DividedSnapshot(whole, found) if found else None


def _tables(data: bytes | memoryview) -> _Part | None:
    try:
        return msgspec.msgpack.decode(data, type=_Part)
    except (ValueError, msgspec.DecodeError):
        return None


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
