"""The state of a description (section 4.1)."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coincide.detection.correlation.live import Live, key_of
from coincide.detection.correlation.program import Program, SourceProgram
from coincide.detection.correlation.view import Message, View
from coincide.detection.eventwise import Timers
from coincide.model.event import Place

Member = tuple[int, Place]
"""A collection and a message in it."""


class History:
    """Messages that a source has matched on its own, in order of arrival; also by the value that a join filter compares."""

    def __init__(self, source: SourceProgram) -> None:
        self._source = source
        self._messages: dict[Place, Message] = {}
        self._by_value: dict[Hashable, dict[Place, Message]] = {}
        self._expiries: list[tuple[int, Place]] = []

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def add(self, message: Message) -> None:
        self._messages[message.place] = message
        if (key := self._key(message)) is not None:
            self._by_value.setdefault(key, {})[message.place] = message
        expiry = self._source.remembered_until(message)
        if expiry is not None:
            heapq.heappush(self._expiries, (expiry, message.place))

    def remove(self, places: Iterable[Place]) -> None:
        for place in places:
            message = self._messages.pop(place, None)
            key = None if message is None else self._key(message)
            if key is not None:
                del self._by_value[key][place]
                if not self._by_value[key]:
                    del self._by_value[key]

    def _key(self, message: Message) -> Hashable:
        return None if self._source.join_key is None else key_of(message, self._source.join_key[0])

    def candidates(self, view: View) -> Iterable[Message]:
        """Those that the join filters may let pass, in order of arrival."""
        if self._source.join_key is None:
            return self._messages.values()
        _, source, name = self._source.join_key
        partner = view.messages[source]
        key = None if partner is None else key_of(partner, name)
        return () if key is None else self._by_value.get(key, {}).values()

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


def expiry_of(program: Program, messages: Sequence[Message | None]) -> int | None:
    """The instant after which one of the messages is too old, and the instance goes (4.2, forget)."""
    pairs = zip(program.sources, messages, strict=True)
    return min((m.lo + source.within for source, m in pairs if m is not None and source.within is not None), default=None)


def fresh(program: Program) -> State:
    return State(
        [Live(group.links, (p.rivals for p in program.preferences), group.apart) for group in program.groups],
        [History(source) for source in program.sources],
        [set() for _ in program.groups],
        [{} for _ in program.sources],
        [{} for _ in program.sources],
    )
