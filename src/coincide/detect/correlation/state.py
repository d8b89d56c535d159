"""The state of a description (section 4.1)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coincide.detect.correlation.live import Live
from coincide.detect.correlation.program import Program, SourceProgram
from coincide.detect.correlation.view import Message
from coincide.detect.eventwise import Timers
from coincide.model.event import Place

Member = tuple[int, Place]
"""A collection and a message in it."""


class History:
    """Messages that a source has matched on its own, in order of arrival."""

    def __init__(self, source: SourceProgram) -> None:
        self._source = source
        self._messages: dict[Place, Message] = {}
        self._expiries: list[tuple[int, Place]] = []

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def add(self, message: Message) -> None:
        self._messages[message.place] = message
        expiry = self._source.remembered_until(message)
        if expiry is not None:
            heapq.heappush(self._expiries, (expiry, message.place))

    def remove(self, places: Iterable[Place]) -> None:
        for place in places:
            self._messages.pop(place, None)

    def forget(self, now: int) -> list[Place]:
        """Drops what is too old; returns the places."""
        gone = []
        while self._expiries and self._expiries[0][0] < now:
            gone.append(heapq.heappop(self._expiries)[1])
        self.remove(gone)
        return gone


@dataclass(eq=False)
class State:
    live: list[Live]
    history: list[History]
    consumed: list[set[Member]]  # by group
    last: list[dict[str | None, Any]]  # by source: content of the last message accepted from a publisher
    seen: list[dict[Any, int]]  # by source: content and time of what was accepted, with its lo
    timers: Timers = field(default_factory=Timers)  # payload: (time event, trigger message)
    pending: set[tuple[int, Place]] = field(default_factory=set)  # (time event, place of the trigger message)


def fresh(program: Program) -> State:
    return State(
        [Live(group.links, (p.rivals for p in program.preferences)) for group in program.groups],
        [History(source) for source in program.sources],
        [set() for _ in program.groups],
        [{} for _ in program.sources],
        [{} for _ in program.sources],
    )
