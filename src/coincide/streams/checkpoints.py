"""What a live run needs to go on after anything: state, positions and keys, written together or not at all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from coincide.detection.snapshots import opened, reading_state, sealed
from coincide.errors import CoincideError, InputError
from coincide.streams.base import Position

VERSION = 2
GENERATIONS = 2


class Checkpoint(msgspec.Struct, array_like=True):
    """`sources` are the positions of the sources by their URLs, with the number of records read; `sinks` those of the sinks."""

    version: int
    generation: int
    state: bytes
    sources: dict[str, tuple[Position, int]]
    sinks: dict[str, Position]
    keys: bytes


class Checkpoints:
    """A folder with the last two checkpoints. Each is written beside the older one, made safe, and then put in its place, so
    whatever happens one is whole. Only one run at a time may use the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CoincideError(f"'{folder}' is in use: another run keeps its checkpoints there") from error
        self._generation = 0

    def last(self) -> Checkpoint | None:
        """The newest that is whole. Raises InputError if there are some and none is."""
        found: list[Checkpoint] = []
        wrong: list[InputError] = []
        for path in self._paths():
            try:
                found.append(_read(path))
            except InputError as error:
                wrong.append(error)
            except FileNotFoundError:
                continue
        if wrong and not found:
            raise wrong[0]
        newest = max(found, key=lambda checkpoint: checkpoint.generation, default=None)
        self._generation = 0 if newest is None else newest.generation
        return newest

    def keep(
        self,
        state: bytes,
        sources: dict[str, tuple[Position, int]],
        sinks: dict[str, Position],
        keys: bytes = b"",
    ) -> None:
        self._generation += 1
        path = self._paths()[self._generation % GENERATIONS]
        part = path.with_suffix(".part")
        data = sealed(msgspec.msgpack.encode(Checkpoint(VERSION, self._generation, state, sources, sinks, keys)))
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        self._make_safe()

    def close(self) -> None:
        self._lock.close()

    def _paths(self) -> list[Path]:
        return [self.folder / f"checkpoint-{number}" for number in range(GENERATIONS)]

    def _make_safe(self) -> None:
        """The new name, too, has to reach the disk."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(path: Path) -> Checkpoint:
    data = path.read_bytes()
    with reading_state(f"'{path}' is not a checkpoint"):
        checkpoint = msgspec.msgpack.decode(opened(data), type=Checkpoint)
    if checkpoint.version != VERSION:
        raise InputError(f"'{path}' is a checkpoint of version {checkpoint.version}; this release reads {VERSION}")
    return checkpoint
