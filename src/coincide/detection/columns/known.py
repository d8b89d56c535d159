"""Keys by number, and the numbers of keys, without an object of Python's for each: a million keys take some fifty megabytes.

A key is kept as it is written, in MessagePack: equal keys are equal bytes. A table of hashes, half empty, tells the number that a
key has. Who looks at a key has it made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import Keys
from coincide.detection.columns.tables import Numbers, Table, longer
from coincide.detection.keys import Key
from coincide.model.numbers import number_of

Bytes = npt.NDArray[np.uint8]

LEAST = 64
"""Entries of the smallest table."""
LITTLE = 1 << 16
"""So many bytes of keys that are no more may be left."""

StoredKey = tuple[str | float | int | tuple[bool, ...] | None, ...]
_encode = msgspec.msgpack.Encoder().encode
_decode_all = msgspec.msgpack.Decoder(list[StoredKey]).decode


class KnownKeys:
    """No two of them are equal."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._data = np.zeros(0, np.uint8)  # keys, one after another
        self._filled = self._garbage = 0  # bytes
        self._starts, self._sizes = np.zeros(0, np.int64), np.zeros(0, np.int32)  # by number; 0 bytes: there is none
        self._entries = np.full(LEAST, -1, np.int64)
        self._used = self._live = 0  # entries, and keys

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[Key]:
        return iter(self.taken(self.numbers()))

    def numbers(self) -> Numbers:
        return np.flatnonzero(self._sizes)

    def __getitem__(self, number: int) -> Key:
        return self.taken(np.array([number]))[0]

    def taken(self, numbers: Numbers) -> list[Key]:
        """The keys with these numbers."""
        data = b"\xdd" + len(numbers).to_bytes(4, "big") + self._gathered(numbers).tobytes()
        return [*_decode_all(data)]

    def of(self, keys: Sequence[Key]) -> Numbers:
        """The numbers of keys, -1 where there is none."""
        return self._found(*_written(keys)) if self._live else np.full(len(keys), -1, np.int64)

    def with_keys(self, keys: Sequence[Key], new: Callable[[int], Numbers]) -> tuple[Numbers, Numbers]:
        """The numbers of keys, no two of which are equal; which of them are new: so many were asked for."""
        data, starts, sizes = _written(keys)
        found = self._found(data, starts, sizes) if self._live else np.full(len(keys), -1, np.int64)
        missing = np.flatnonzero(found < 0)
        found[missing] = numbers = new(len(missing)) if len(missing) else missing
        self._put(data, starts[missing], sizes[missing], numbers)
        return found, numbers

    def put(self, keys: Sequence[Key], numbers: Numbers) -> None:
        """Keys that are not known yet."""
        self._put(*_written(keys), numbers)

    def remove(self, numbers: Numbers) -> None:
        from coincide.detection.columns.probing import remove

        remove(self._entries, self._data, self._starts, self._sizes, numbers)
        self._garbage += int(self._sizes[numbers].sum())
        self._sizes[numbers] = 0
        self._live -= len(numbers)
        if 2 * self._garbage > self._filled + LITTLE:
            self._keep(self.numbers(), self.numbers())

    def keep(self, numbers: Numbers, first: int = 0) -> None:
        """Only these, numbered anew in this order."""
        self._keep(numbers, np.arange(first, first + len(numbers)))

    def clear(self) -> None:
        self._clear()

    def _keep(self, numbers: Numbers, named: Numbers) -> None:
        data, sizes = self._gathered(numbers), self._sizes[numbers]
        self._clear()
        self._put(data, _starts(sizes), sizes, named)

    def _gathered(self, numbers: Numbers) -> Bytes:
        from coincide.detection.columns.probing import gather

        sizes = self._sizes[numbers]
        data = np.empty(int(sizes.sum(dtype=np.int64)), np.uint8)
        gather(self._data, self._starts[numbers], sizes, data)
        return data

    def _found(self, data: Bytes, starts: Numbers, sizes: npt.NDArray[np.int32]) -> Numbers:
        from coincide.detection.columns.probing import find

        found = np.empty(len(sizes), np.int64)
        find(self._entries, self._data, self._starts, self._sizes, data, starts, sizes, found)
        return found

    def _put(self, data: Bytes, starts: Numbers, sizes: npt.NDArray[np.int32], numbers: Numbers) -> None:
        from coincide.detection.columns.probing import gather, put, refill

        if not len(numbers):
            return
        size, before = int(numbers.max()) + 1, self._filled
        self._starts, self._sizes = longer(self._starts, size), longer(self._sizes, size)
        self._filled += int(sizes.sum(dtype=np.int64))
        self._data = longer(self._data, self._filled)
        gather(data, starts, sizes, self._data[before:])
        self._starts[numbers], self._sizes[numbers] = before + _starts(sizes), sizes
        self._live += len(numbers)
        self._used += len(numbers)
        if 3 * self._used > 2 * len(self._entries):
            entries = np.full(1 << (2 * self._live).bit_length(), -1, np.int64)
            refill(self._entries, entries)
            self._entries, self._used = entries, self._live
        put(self._entries, data, starts, sizes, numbers)


@dataclass
class KeyedTable(Table):
    """A table with a row for each of some keys. Of `prefixed` ones the first part is told to nobody."""

    known: KnownKeys = field(default_factory=KnownKeys)
    prefixed: bool = False

    @property
    def _lists_values(self) -> bool:
        return False

    def with_keys(self, keys: Sequence[Key]) -> tuple[Numbers, Numbers]:
        """The rows of keys, no two of which are equal; which of them are new, and to be filled."""
        return self.known.with_keys(keys, self.add)

    def values_at(self, numbers: Numbers) -> list[Key]:
        keys = self.known.taken(numbers)
        return [key[1:] for key in keys] if self.prefixed else keys

    def free(self, numbers: Numbers) -> None:
        if len(numbers):
            self.known.remove(numbers)
        super().free(numbers)

    def keep(self, numbers: Numbers) -> None:
        self.known.keep(numbers)
        super().keep(numbers)

    def place(self, size: int, numbers: Numbers) -> None:
        self.known.clear()
        super().place(size, numbers)


def _starts(sizes: npt.NDArray[np.int32]) -> Numbers:
    return np.cumsum(sizes, dtype=np.int64) - sizes


def _written(keys: Sequence[Key]) -> tuple[Bytes, Numbers, npt.NDArray[np.int32]]:
    """Keys as bytes, where each begins, and how long it is."""
    made = keys.made if isinstance(keys, Keys) else _normal(keys)
    written = [*map(_encode, made)]
    sizes = np.fromiter(map(len, written), np.int32, len(written))
    return np.frombuffer(b"".join(written), np.uint8), _starts(sizes), sizes


def _normal(keys: Sequence[Key]) -> Sequence[Key]:
    """Numbers in one form, so that those that are equal are equal bytes."""
    if {*map(type, chain.from_iterable(keys))}.isdisjoint((float, int)):
        return keys
    return [tuple([part if type(part) is str else _normal_part(part) for part in key]) for key in keys]


def _normal_part(part: object) -> object:
    return part + 0.0 if type(part) is float else number_of(part) if type(part) is int else part  # -0.0 is 0.0
