"""Live instances of a group: in order of creation, and by the values that equalities compare.

A message is offered only to instances that can take it. That skips what `try` would refuse, so it changes nothing but time."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from coincide.detection.correlation.values import only_value
from coincide.detection.correlation.view import ENVELOPE, Members, Message
from coincide.model.event import Value

PLACE, TRIGGER = "(place)", "(trigger)"
"""Not attributes: a message's own place, and of a time event the place of what set it."""

Link = tuple[str, int, str]
"""An attribute of a source equals, in every term, the attribute of another source: (own, other source, its attribute)."""

Links = Mapping[int, tuple[Link, ...]]


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


class Bucket:
    """Instances that map the same sources."""

    def __init__(self, ends: list[tuple[int, str]]) -> None:
        self.numbers: dict[int, None] = {}
        self.by_value: dict[tuple[int, str], dict[Hashable, dict[int, None]]] = {end: {} for end in ends}

    def add(self, number: int, instance: Instance) -> None:
        self.numbers[number] = None
        for end, found in self.by_value.items():
            if (key := _end_key(instance, end)) is not None:
                found.setdefault(key, {})[number] = None

    def remove(self, number: int, instance: Instance) -> None:
        del self.numbers[number]
        for end, found in self.by_value.items():
            key = _end_key(instance, end)
            if key is not None:
                del found[key][number]
                if not found[key]:
                    del found[key]


def _end_key(instance: Instance, end: tuple[int, str]) -> Hashable:
    message = instance.messages[end[0]]
    return None if message is None else key_of(message, end[1])


class Live:
    """The instances of one group, by number in order of creation."""

    def __init__(self, links: Links, rivals: Iterable[Rivals] = ()) -> None:
        self.links = links
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
            self._buckets[sources] = Bucket([end for end in self._ends if end[0] in sources])
        return self._buckets[sources]

    def forget(self, now: int) -> None:
        while self._expiries and self._expiries[0][0] < now:
            self.drop(heapq.heappop(self._expiries)[1])

    def partners(self, source: int, message: Message) -> Iterator[int]:
        """Numbers of the instances that lack the source and may take the message, in no particular order."""
        for sources, bucket in self._buckets.items():
            if source not in sources:
                link = next((link for link in self.links.get(source, ()) if link[1] in sources), None)
                yield from bucket.numbers if link is None else self._linked(bucket, link, message)

    def _linked(self, bucket: Bucket, link: Link, message: Message) -> Mapping[int, None]:
        own, source, name = link
        key = key_of(message, own)
        return {} if key is None else bucket.by_value[source, name].get(key, {})

    def rivals(self, which: Rivals, instance: Instance) -> Iterator[int]:
        """Numbers of the instances that a preference may compare a new one with, in no particular order."""
        buckets = [self._bucket(instance)] if which.equivalent else self._buckets.values()
        key = None if which.key is None else _end_key(instance, which.key)
        for bucket in buckets:
            if which.key is None:
                yield from bucket.numbers
            elif key is not None:
                yield from bucket.by_value.get(which.key, {}).get(key, {})

    def mapping(self, source: int, place: Hashable) -> list[int]:
        """Numbers of the instances that map this message, by its place, to the source, which triggers a time event."""
        buckets = (b for sources, b in self._buckets.items() if source in sources)
        return [number for bucket in buckets for number in bucket.by_value[source, PLACE].get(place, {})]
