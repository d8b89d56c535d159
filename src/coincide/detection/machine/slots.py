"""The slot of each key: where its states are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import Keys
from coincide.detection.keys import Key


class Slots:
    """Keys have slots from 1 on; the first is for events whose key is null. Keys of the first batch are looked at when there is a
    second one, or the state is written: a batch of Spark's has only one, of up to millions of keys."""

    def __init__(self) -> None:
        self._unread: Keys | None = None
        self._slots: dict[Key, int] = {}
        self._keys: list[Key] = [()]  # by slot
        self.used = 1

    def restore(self, size: int, keys: Sequence[Key], slots: Sequence[int]) -> None:
        self._unread, self.used = None, size
        self._slots = dict(zip(keys, slots, strict=True))
        self._keys = [()] * size
        for slot, key in zip(slots, keys, strict=True):
            self._keys[slot] = key

    def __len__(self) -> int:
        return len(self._slots) if self._unread is None else len(self._unread)

    @property
    def by_key(self) -> dict[Key, int]:
        self._read()
        return self._slots

    @property
    def keys(self) -> list[Key]:
        self._read()
        return self._keys

    def _read(self) -> None:
        if self._unread is not None:
            keys = self._unread.made
            self.restore(1 + len(keys), keys, range(1, 1 + len(keys)))

    def of(self, keys: Sequence[Key]) -> npt.NDArray[np.uint32]:
        """The slots of these keys, made where there are none."""
        if self.used == 1 and isinstance(keys, Keys):
            self._unread, self.used = keys, 1 + len(keys)
            return np.arange(1, self.used, dtype=np.uint32)
        slots = self.by_key
        before, gaps = self.used, self.used - len(slots)
        found = np.array([slots.setdefault(key, len(slots) + gaps) for key in keys], np.uint32)
        self.used = len(slots) + gaps
        self._keys += reversed(list(islice(reversed(slots), self.used - before)))
        return found

    def keep(self, some: npt.NDArray[np.int64]) -> None:
        """Only these slots, numbered anew in this order."""
        if self._unread is not None:
            self._unread, self.used = self._unread.take(some - 1), 1 + len(some)
        else:
            self.restore(1 + len(some), [self._keys[slot] for slot in some.tolist()], range(1, 1 + len(some)))
