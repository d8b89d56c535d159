"""A storm of detections is one alert: the first of a group is told at once, what follows in a while as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from coincide.streams.base import Position

GROUPS = 10_000
"""So many are told apart; of more, those that have waited longest are told at once."""
COUNT, SINCE = "_count", "_since"


class Notice(NamedTuple):
    """What is told: a detection, the last of those that it stands for; then it also says how many they are, and since when."""

    key: str
    record: dict[str, Any]


@dataclass
class Held:
    """A group that was told of; until `ends` what comes is held back."""

    ends: float
    count: int = 0
    since: Any = None
    key: str = ""
    record: dict[str, Any] | None = None

    def add(self, key: str, record: dict[str, Any]) -> None:
        self.since = record["time"] if not self.count else self.since
        self.count += 1
        self.key, self.record = key, record

    def notice(self) -> Notice | None:
        if self.record is None:
            return None
        more = {COUNT: self.count, SINCE: self.since} if self.count > 1 else {}
        return Notice(self.key, {**self.record, **more})


class Grouping:
    """Detections of one type, and of equal values of the attributes `by`, are a group; after one was told, the next is `every`
    seconds later. Time is an argument."""

    def __init__(self, every: float = 0.0, by: Sequence[str] = ()) -> None:
        self.every, self.by = every, tuple(by)
        self._held: dict[str, Held] = {}  # in the order in which they end

    def add(self, key: str, record: dict[str, Any], now: float) -> list[Notice]:
        """What is to be told now."""
        if not self.every:
            return [Notice(key, record)]
        notices = self.due(now)
        group = self._group(record)
        if (held := self._held.get(group)) is not None:
            held.add(key, record)
            return notices
        self._held[group] = Held(now + self.every)
        return [*notices, Notice(key, record), *self._too_many()]

    def due(self, now: float) -> list[Notice]:
        """What was held back long enough."""
        notices: list[Notice] = []
        while (wakes := self.wakes_at()) is not None and wakes <= now:
            group = next(iter(self._held))
            held = self._held.pop(group)
            if (notice := held.notice()) is not None:
                notices.append(notice)
                self._held[group] = Held(now + self.every)
        return notices

    def all(self) -> list[Notice]:
        """What is held back, at the end."""
        notices = [notice for held in self._held.values() if (notice := held.notice()) is not None]
        self._held.clear()
        return notices

    def wakes_at(self) -> float | None:
        """When something may be due."""
        return next((held.ends for held in self._held.values()), None)

    def state(self, now: float) -> Position:
        return [[group, held.ends - now, held.count, held.since, held.key, held.record] for group, held in self._held.items()]

    def restore(self, state: Position, now: float) -> None:
        self._held = {group: Held(now + min(left, self.every), *rest) for group, left, *rest in state}

    def _too_many(self) -> list[Notice]:
        if len(self._held) <= GROUPS:
            return []
        notice = self._held.pop(next(iter(self._held))).notice()
        return [] if notice is None else [notice]

    def _group(self, record: Mapping[str, Any]) -> str:
        return msgspec.json.encode([record["type"], *(record.get(name) for name in self.by)]).decode()
