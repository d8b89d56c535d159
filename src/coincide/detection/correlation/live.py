"""Live instances of a group: in order of creation, by the values that equalities compare, and by the times that bounds compare.

A message is offered only to instances that can take it. That skips what `try` would refuse, so it changes nothing but time."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from coincide.detection.correlation.values import only_value
from coincide.detection.correlation.view import ENVELOPE, Members, Message
from coincide.model.event import Value

PLACE, TRIGGER = "(place)", "(trigger)"
"""Not attributes: a message's own place, and of a time event the place of what set it."""

Link = tuple[str, int, str]
"""An attribute of a source equals, in every term, the attribute of another source: (own, other source, its attribute)."""

Links = Mapping[int, tuple[Link, ...]]

Apart = Mapping[tuple[int, int], int]
"""(a, b): every term demands that the time of source a is at most so many microseconds after that of source b."""


@dataclass(frozen=True)
class Rivals:
    """With which instances a preference may compare a new one: those that map the same sources, or have a value in common."""

    equivalent: bool = False
    key: tuple[int, str] | None = None


@dataclass(eq=False, slots=True)
class Instance:
    """Messages mapped to single sources, and the terms still possible. A complete one has its term's collections filled."""

    messages: tuple[Message | None, ...]
    terms: tuple[int, ...]
    complete: bool = False
    members: Members | None = None
    computed: dict[str, Value] = field(default_factory=dict)

    @property
    def mapped(self) -> Iterator[Message]:
        return (message for message in self.messages if message is not None)

    @property
    def sources(self) -> frozenset[int]:
        return frozenset(n for n, message in enumerate(self.messages) if message is not None)


def key_of(message: Message, name: str) -> Hashable:
    """What two values have in common exactly if they are surely equal; None: equal to nothing."""
    if name == PLACE:
        return message.place
    if name == TRIGGER:
        return message.trigger
    value = message.values[name] if name in message.values else ENVELOPE[name](message) if name in ENVELOPE else None
    single = only_value(value)
    return None if single is None else (type(single), single)


class Shelf:
    """Numbers of instances; for each of the timed sources, also by the time of its message."""

    def __init__(self, timed: Iterable[int]) -> None:
        self.numbers: dict[int, None] = {}
        self._by_time: dict[int, list[tuple[int, int]]] = {source: [] for source in timed}

    def add(self, number: int, instance: Instance) -> None:
        self.numbers[number] = None
        for source, found in self._by_time.items():
            insort(found, (_time(instance, source), number))

    def remove(self, number: int, instance: Instance) -> None:
        del self.numbers[number]
        for source, found in self._by_time.items():
            del found[bisect_left(found, (_time(instance, source), number))]

    def between(self, source: int, first: float, last: float) -> Iterator[int]:
        """Those with a message of the source in this time."""
        found = self._by_time[source]
        low, high = bisect_left(found, (first,)), bisect_right(found, (last, inf))
        return (number for _, number in found[low:high])


def _time(instance: Instance, source: int) -> int:
    message = instance.messages[source]
    assert message is not None
    return message.hi


class Bucket:
    """Instances that map the same sources."""

    def __init__(self, ends: list[tuple[int, str]], timed: list[int]) -> None:
        self._timed = timed
        self.all = Shelf(timed)
        self.by_value: dict[tuple[int, str], dict[Hashable, Shelf]] = {end: {} for end in ends}

    def add(self, number: int, instance: Instance) -> None:
        self.all.add(number, instance)
        for end, found in self.by_value.items():
            if (key := _end_key(instance, end)) is not None:
                if key not in found:
                    found[key] = Shelf(self._timed)
                found[key].add(number, instance)

    def remove(self, number: int, instance: Instance) -> None:
        self.all.remove(number, instance)
        for end, found in self.by_value.items():
            key = _end_key(instance, end)
            if key is not None:
                found[key].remove(number, instance)
                if not found[key].numbers:
                    del found[key]

    def shelf(self, end: tuple[int, str], key: Hashable) -> Shelf | None:
        """What has a value in common; None: nothing."""
        return None if key is None else self.by_value.get(end, {}).get(key)


def _end_key(instance: Instance, end: tuple[int, str]) -> Hashable:
    message = instance.messages[end[0]]
    return None if message is None else key_of(message, end[1])


class Live:
    """The instances of one group, by number in order of creation."""

    def __init__(self, links: Links, rivals: Iterable[Rivals] = (), apart: Apart | None = None) -> None:
        self.links = links
        self.apart = apart or {}
        self._timed = {source for pair in self.apart for source in pair}
        self.instances: dict[int, Instance] = {}
        ends = [(source, name) for some in links.values() for _, source, name in some]
        self._ends = list(dict.fromkeys([*ends, *(r.key for r in rivals if r.key is not None)]))
        self._buckets: dict[frozenset[int], Bucket] = {}
        self._expiries: list[tuple[int, int]] = []
        self._serial = 0

    def add(self, instance: Instance, expiry: int | None) -> int:
        """`expiry`: after this instant it is too old."""
        self._serial += 1
        self.instances[self._serial] = instance
        self._bucket(instance).add(self._serial, instance)
        if expiry is not None:
            heapq.heappush(self._expiries, (expiry, self._serial))
        return self._serial

    def drop(self, number: int) -> None:
        instance = self.instances.pop(number, None)
        if instance is not None:
            self._bucket(instance).remove(number, instance)

    def _bucket(self, instance: Instance) -> Bucket:
        sources = instance.sources
        if sources not in self._buckets:
            self._buckets[sources] = Bucket([end for end in self._ends if end[0] in sources], sorted(self._timed & sources))
        return self._buckets[sources]

    def forget(self, now: int) -> None:
        while self._expiries and self._expiries[0][0] < now:
            self.drop(heapq.heappop(self._expiries)[1])

    def partners(self, source: int, message: Message) -> Iterator[int]:
        """Numbers of the instances that lack the source and may take the message, in no particular order."""
        for sources, bucket in self._buckets.items():
            if source not in sources:
                link = next((link for link in self.links.get(source, ()) if link[1] in sources), None)
                shelf = bucket.all if link is None else bucket.shelf(link[1:], key_of(message, link[0]))
                if shelf is not None:
                    yield from self._near(shelf, source, message, sources)

    def _near(self, shelf: Shelf, source: int, message: Message, sources: frozenset[int]) -> Iterable[int]:
        """Those on the shelf that are not too far away in time, by the first of the sources that says so."""
        for other in sources & self._timed:
            after, before = self.apart.get((other, source)), self.apart.get((source, other))
            if after is not None or before is not None:
                first = -inf if before is None else message.hi - before
                return shelf.between(other, first, inf if after is None else message.hi + after)
        return shelf.numbers

    def rivals(self, which: Rivals, instance: Instance) -> Iterator[int]:
        """Numbers of the instances that a preference may compare a new one with, in no particular order."""
        buckets = [self._bucket(instance)] if which.equivalent else self._buckets.values()
        key = None if which.key is None else _end_key(instance, which.key)
        for bucket in buckets:
            if which.key is None:
                yield from bucket.all.numbers
            elif (shelf := bucket.shelf(which.key, key)) is not None:
                yield from shelf.numbers

    def mapping(self, source: int, place: Hashable) -> list[int]:
        """Numbers of the instances that map this message, by its place, to the source, which triggers a time event."""
        buckets = (b for sources, b in self._buckets.items() if source in sources)
        shelves = (bucket.shelf((source, PLACE), place) for bucket in buckets)
        return [number for shelf in shelves if shelf is not None for number in shelf.numbers]
