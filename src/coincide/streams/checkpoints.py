"""What a live run needs to go on after anything: state, positions and keys, written together or not at all.

A generation is a file: a checkpoint with the whole state, and behind it others that tell what has changed since the one before.
When these have become as large as the whole, the next generation begins; the one before it stays."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from coincide.detection.snapshots import damaged, decoded, opened, reading_state, sealed
from coincide.errors import CoincideError, InputError
from coincide.model.bounds import Count
from coincide.streams.base import Position

VERSION = 3
GENERATIONS = 2
HEAD = b"coincide checkpoints\n"
LENGTH = 8
"""Bytes of the number that tells how long a checkpoint is."""
ROOM = 1 << 20
"""Bytes of changes that are no reason to begin anew, however small the whole is."""
LONGEST = 256
"""Checkpoints of a generation: each has to be read when the run goes on."""

Positions = Mapping[str, tuple[Position, int]]
"""Of sources, by their URLs, with the number of records read."""


class Written(msgspec.Struct, array_like=True):
    """One checkpoint. The first of a generation (number 0) has the whole `state` and all `keys`; others what has changed, and
    what is to be added to the keys, unless these are `all_keys`."""

    version: int
    generation: Count
    number: Count
    state: bytes
    sources: dict[str, tuple[Position, int]]
    sinks: dict[str, Position]
    keys: bytes
    all_keys: bool


@dataclass(frozen=True)
class Checkpoint:
    """What a run goes on from: a state and what has changed in it since, in order; positions; keys."""

    generation: int
    state: bytes
    changes: tuple[bytes, ...]
    sources: Positions
    sinks: Mapping[str, Position]
    keys: bytes


class Checkpoints:
    """A folder with the last two generations. Each is begun beside the older one, made safe, and then put in its place; what is
    added to it is made safe before anybody relies on it. So whatever happens, one is whole up to some checkpoint. Only one run at
    a time may use the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CoincideError(f"'{folder}' is in use: another run keeps its checkpoints there") from error
        self._generation = self._number = 0
        self._file: IO[bytes] | None = None
        self._base = self._added = 0

    def last(self) -> Checkpoint | None:
        """The newest that is whole. Raises InputError if there are some and none is."""
        newest = last_checkpoint(self.folder)
        self._generation = 0 if newest is None else newest.generation
        return newest

    @property
    def wants_whole(self) -> bool:
        """Is the next one to have the whole state, as a generation begins?"""
        return self._file is None or self._added > self._base + ROOM or self._number + 1 >= LONGEST

    @property
    def size(self) -> int:
        """Bytes of the present generation."""
        return self._base + self._added

    def keep(
        self,
        state: bytes,
        sources: Positions,
        sinks: Mapping[str, Position],
        keys: bytes = b"",
        *,
        whole: bool = True,
        all_keys: bool = True,
    ) -> None:
        """It is safe when this returns. `whole`: the state is; `all_keys`: and so are the keys."""
        number = 0 if whole else self._number + 1
        generation = self._generation + 1 if whole else self._generation
        written = Written(VERSION, generation, number, state, dict(sources), dict(sinks), keys, all_keys)
        data = sealed(msgspec.msgpack.encode(written))
        data = len(data).to_bytes(LENGTH, "big") + data
        try:
            self._begin(generation, data) if whole else self._add(data)
        except BaseException:
            self._end()  # nobody knows how much of it is there: what comes next begins anew
            raise
        self._generation, self._number = generation, number

    def close(self) -> None:
        self._end()
        self._lock.close()

    def _begin(self, generation: int, data: bytes) -> None:
        self._end()
        path = _paths(self.folder)[generation % GENERATIONS]
        part = path.with_suffix(".part")
        self._file = part.open("wb", buffering=0)
        self._base, self._added = len(data), 0
        self._write(HEAD + data)
        os.replace(part, path)
        self._make_safe()

    def _add(self, data: bytes) -> None:
        self._added += len(data)
        self._write(data)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _make_safe(self) -> None:
        """The new name, too, has to reach the disk."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def last_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest of a folder that is whole, also while a run goes on there. Raises InputError if there are some and none is."""
    found: list[Checkpoint] = []
    wrong: list[InputError] = []
    for path in _paths(folder):
        try:
            found.append(_read(path))
        except InputError as error:
            wrong.append(error)
        except FileNotFoundError:
            continue
    if wrong and not found:
        raise wrong[0]
    return max(found, key=lambda checkpoint: checkpoint.generation, default=None)


def _paths(folder: Path) -> list[Path]:
    return [folder / f"checkpoint-{number}" for number in range(GENERATIONS)]


def _read(path: Path) -> Checkpoint:
    data = path.read_bytes()
    with reading_state(f"'{path}' is not a checkpoint"):
        if not data.startswith(HEAD):
            damaged("it does not begin as one does, or is of an earlier release")
        found = list(_whole_ones(data))
        if not found:
            damaged("it is not complete, or was changed after it was written")
        return _joined(found)


def _whole_ones(data: bytes) -> Iterator[Written]:
    """Checkpoints up to the first that is not whole: the last may have been cut off, and what follows another is of no use."""
    at = len(HEAD)
    while 0 < (length := int.from_bytes(data[at : at + LENGTH], "big")) <= len(data) - at - LENGTH:
        at += LENGTH
        try:
            content = opened(data[at : at + length])
        except ValueError:
            return
        at += length
        yield decoded(content, Written, VERSION)


def _joined(found: list[Written]) -> Checkpoint:
    """The last, with all that it is made of."""
    first, last = found[0], found[-1]
    if any(each.number != number or each.generation != first.generation for number, each in enumerate(found)):
        damaged("checkpoints are missing in it")
    begin = max(number for number, each in enumerate(found) if each.all_keys or not number)
    keys = b"".join(each.keys for each in found[begin:])
    changes = tuple(each.state for each in found[1:])
    return Checkpoint(first.generation, first.state, changes, last.sources, last.sinks, keys)
