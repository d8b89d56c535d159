"""The slot of each key: where its states are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import Keys
from coincide.detection.columns.known import KnownKeys
from coincide.detection.columns.tables import Numbers
from coincide.detection.keys import Key


class Slots:
    """Keys have slots from 1 on; the first is for events whose key is null. Keys of the first batch are looked at when there is a
    second one, or the state is written: a batch of Spark's has only one, of up to millions of keys."""

    def __init__(self) -> None:
        self._unread: Keys | None = None
        self._known = KnownKeys()
        self.used = 1

    def restore(self, size: int, keys: Sequence[Key], slots: Numbers) -> None:
        self._known.put(keys, slots)
        self.used = size

    def __len__(self) -> int:
        return len(self._known) if self._unread is None else len(self._unread)

    @property
    def known(self) -> KnownKeys:
        """Keys by slot."""
        if self._unread is not None:
            keys, self._unread = self._unread, None
            self._known.put(keys, np.arange(1, 1 + len(keys)))
        return self._known

    def of(self, keys: Sequence[Key]) -> npt.NDArray[np.uint32]:
        """The slots of these keys, made where there are none."""
        if self.used == 1 and isinstance(keys, Keys):
            self._unread, self.used = keys, 1 + len(keys)
            return np.arange(1, self.used, dtype=np.uint32)
        slots, _ = self.known.with_keys(keys, self._new)
        return slots.astype(np.uint32)

    def _new(self, count: int) -> Numbers:
        self.used += count
        return np.arange(self.used - count, self.used)

    def keep(self, some: Numbers) -> None:
        """Only these slots, numbered anew in this order."""
        self.used = 1 + len(some)
        if self._unread is not None:
            self._unread = self._unread.take(some - 1)
        else:
            self._known.keep(some, 1)
