"""The groups of a correlation by key, and which of them have changed since somebody was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from coincide.detection.selection.units import Part
from coincide.detection.selection.windows import Group

Key = tuple[Part, ...]
MANY = 1024
"""So many groups may be there before anybody looks for those that are over."""


class Source(Protocol):
    """Groups as they were written."""

    def group(self, row: int) -> Group: ...


class Groups:
    """All that a correlation knows. `epoch` is how often its state was told: 0 as long as nobody has asked for changes. Numbers
    of groups are not used again, so a number that is gone says all about a group that is over."""

    def __init__(self, fresh: Callable[[], Group]) -> None:
        self._fresh = fresh
        self._many = MANY
        self._known: dict[Key, Group] = {}
        self._stored: dict[Key, int] = {}  # where they are read, if they are asked for
        self.source: Source | None = None
        self.following = 0
        self.epoch = 0
        self.touched: dict[int, Key] = {}
        self.over: list[int] = []

    def __len__(self) -> int:
        return len(self._known) + len(self._stored)

    @property
    def by_key(self) -> dict[Key, Group]:
        """All of them."""
        for key in [*self._stored]:
            self.known(key)
        return self._known

    @property
    def read(self) -> dict[Key, Group]:
        """Those that were asked for, or are new."""
        return self._known

    @property
    def unread(self) -> list[int]:
        """Where the others are in their source, in order."""
        return sorted(self._stored.values())

    def known(self, key: Key) -> Group | None:
        """The group of a key, if it has one."""
        if (place := self._stored.pop(key, None)) is not None:
            assert self.source is not None
            self._known[key] = self.source.group(place)
        return self._known.get(key)

    def at(self, key: Key) -> Group:
        """The group of a key, which is about to be changed."""
        group = self.known(key)
        if group is None:
            group = self._known[key] = self._fresh()
            group.number = self.following
            self.following += 1
        if self.epoch:
            self.touched[group.number] = key
        return group

    def sweep(self, oldest: int) -> None:
        """Forgets groups without a unit since then, if there are many: nothing can come of them any more."""
        if len(self) <= self._many:
            return
        for key in [key for key, group in self.by_key.items() if group.last < oldest]:
            number = self.by_key.pop(key).number
            if self.epoch:
                self.touched.pop(number, None)
                self.over.append(number)
        self._many = max(MANY, 2 * len(self.by_key))
        if len(self.over) > 4 * self._many:  # nobody has asked for long: who does will be told all
            self.epoch, self.touched, self.over = 0, {}, []

    def mark_written(self, touched: Mapping[int, Key]) -> None:
        """The state of these groups, and all else that has changed, is known."""
        for key in touched.values():
            self._known[key].mark_written()
        self.epoch += 1
        self.touched, self.over = {}, []

    def restored(self, groups: dict[Key, int], source: Source, following: int, epoch: int) -> None:
        """To a state that was told. What nobody asks for is never read."""
        self._stored, self.source = groups, source
        self.following, self.epoch = following, epoch
        self._many = max(MANY, 2 * len(groups))

    def count_anew(self) -> None:
        """As if nothing had ever been told or forgotten."""
        for number, group in enumerate(self.by_key.values()):
            group.number = number
            group.count_anew()
        self.following, self.epoch = len(self.by_key), 0
