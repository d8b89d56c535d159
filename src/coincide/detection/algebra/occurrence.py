"""Occurrences: what the operators of the algebra take and make (section 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from coincide.model.compound import Several, single
from coincide.model.event import Event, Value
from coincide.model.space import Space
from coincide.model.stamp import OrderKey

POINT, POINT_INTERVAL, INTERVAL = "P", "PI", "I"
SPACE_FIELDS = Space.__struct_fields__

SOURCE = "source"

Leaf = tuple[str, int]
"""A named detection: its name and its number."""

Order = tuple[int, int, tuple[OrderKey, ...]]


@dataclass(eq=False)  # never changed, but freezing it would double what each one costs
class Occurrence:
    """An event, a detection or a composite. It can stand for an event in expressions: it has type, id, source, space,
    attributes, lo and hi. `clash`: names on which its carriers disagree (5.7), for composing it further."""

    lo: int
    hi: int
    kind: str
    latest_start: int
    earliest_end: int
    origin: tuple[OrderKey, ...] = ()
    primitives: frozenset[OrderKey] = frozenset()  # leaves that are primitive events
    detections: frozenset[Leaf] = frozenset()  # leaves that are named detections
    attributes: dict[str, Value] = field(default_factory=dict)
    clash: frozenset[str] = frozenset()
    aliases: Mapping[str, Occurrence] = field(default_factory=dict)
    parts: tuple[Occurrence, ...] = ()  # what an aggregate may look for its sources in; none: it is its own source
    expires: int | None = None
    maybe: bool = False
    type: str | None = None
    id: str | None = None
    source: str | None = None
    space: Space | None = None
    mark: str = ""  # tells aggregates apart
    incomplete: bool = False  # a SUM or COUNT whose window began before the observation

    @property
    def is_point(self) -> bool:
        return self.kind != INTERVAL

    @property
    def near(self) -> int:
        """The least that it can have lasted."""
        return 0 if self.is_point else max(0, self.earliest_end - self.latest_start)

    @property
    def far(self) -> int:
        return 0 if self.is_point else self.hi - self.lo

    @cached_property
    def order(self) -> Order:
        return self.hi, self.lo, self.origin

    @cached_property
    def members(self) -> frozenset[OrderKey]:
        return frozenset(self.origin)

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """What makes two occurrences copies of each other, alias bindings apart (section 5)."""
        return self.lo, self.hi, self.origin, attribute_key(self.attributes)

    @cached_property
    def bindings(self) -> frozenset[tuple[str, tuple[Any, ...]]]:
        return frozenset((alias, occurrence.signature) for alias, occurrence in self.aliases.items())

    @cached_property
    def sources(self) -> tuple[Occurrence, ...]:
        """Itself if it is a primitive, a detection or an aggregate; else those of its parts, each once (5.5)."""
        if not self.parts:
            return (self,) if self.origin or self.detections or self.mark else ()
        found = {source.identity: source for part in self.parts for source in part.sources}
        return tuple(found.values())

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        return self.type, self.mark, self.signature

    def binding(self, alias: str) -> Occurrence:
        return self._with(aliases={**self.aliases, alias: self})

    def without_aliases(self) -> Occurrence:
        return self._with(aliases={}) if self.aliases else self

    def expiring(self, instant: int) -> Occurrence:
        return self._with(expires=instant)

    def _with(self, **changes: Any) -> Occurrence:
        """A copy with other aliases or another life: every event gets one, so it must be cheaper than `replace`."""
        copy = object.__new__(Occurrence)
        copy.__dict__.update(self.__dict__)
        copy.__dict__.pop("bindings", None)
        copy.__dict__.pop("sources", None)
        copy.__dict__.update(changes)
        return copy

    def alive(self, instant: int) -> bool:
        return self.expires is None or self.expires >= instant


def attribute_key(attributes: Mapping[str, Value]) -> frozenset[tuple[str, str, Value]]:
    """With types, because Python takes True for 1.0."""
    return frozenset((name, type(value).__name__, value) for name, value in attributes.items() if value is not None)


def conflict(a: Occurrence, b: Occurrence) -> bool:
    """One event fills one role: they share a leaf, or a primitive leaf of one is in the other's `from`."""
    return not (
        a.detections.isdisjoint(b.detections) and a.primitives.isdisjoint(b.members) and b.primitives.isdisjoint(a.members)
    )


def single_values(attributes: dict[str, Value]) -> dict[str, Value]:
    """Sets of several values, and ranges, are null here."""
    if not any(isinstance(value, Several) for value in attributes.values()):
        return attributes
    return {name: value for name, raw in attributes.items() if (value := single(raw)) is not None}


def of_event(event: Event) -> Occurrence:
    """A primitive event: its own leaf, source and carrier."""
    lo, hi = event.lo, event.hi
    return Occurrence(
        lo,
        hi,
        POINT if lo == hi else POINT_INTERVAL,
        hi,
        lo,
        event.origin,
        frozenset(event.origin),
        attributes=single_values(event.attributes),
        type=event.type,
        id=event.id,
        source=event.source,
        space=event.space,
    )


def of_detection(event: Event, number: int) -> Occurrence:
    """A detection of another language: it lasted."""
    lo, hi = event.lo, event.hi
    kind = POINT if lo == hi else INTERVAL
    leaf = frozenset({(event.type, number)})
    return Occurrence(
        lo,
        hi,
        kind,
        lo if kind == INTERVAL else hi,
        hi if kind == INTERVAL else lo,
        event.origin,
        detections=leaf,
        attributes=single_values(event.attributes),
        type=event.type,
        source=event.source,
        space=event.space,
    )


@dataclass(frozen=True)
class Composer:
    """Makes composites, and what stands for windows and silences. In point semantics (ECCO-25) they have only their end."""

    points: bool = False

    def hull(self, parts: Iterable[Occurrence]) -> Occurrence:
        """All parts as one: the hull of their stamps, the union of their leaves, the agreement of their attributes."""
        given = tuple(parts)
        ends = (min(p.lo for p in given), max(p.hi for p in given))
        inner = (min(p.latest_start for p in given), max(p.earliest_end for p in given))
        return self.stamped(given, ends, inner)

    def stamped(self, parts: tuple[Occurrence, ...], ends: tuple[int, int], inner: tuple[int, int] | None = None) -> Occurrence:
        """The parts as one, with a stamp of its own; `inner`: latest start and earliest end, if they are not the ends."""
        lo, hi = (ends[1], ends[1]) if self.points else ends
        start, end = (hi, hi) if self.points else inner or ends
        attributes, source, clash = agreement(parts)
        aliases: dict[str, Occurrence] = {}
        for part in parts:  # in cumulation, the most recent one is what an alias means
            aliases.update(part.aliases)
        return Occurrence(
            lo,
            hi,
            POINT if lo == hi else INTERVAL,
            start,
            end,
            tuple(sorted(frozenset().union(*(p.members for p in parts)))),
            frozenset().union(*(p.primitives for p in parts)),
            frozenset().union(*(p.detections for p in parts)),
            attributes,
            clash,
            aliases,
            parts,
            maybe=any(p.maybe for p in parts),
            source=source,
            space=common_space(parts),
        )

    def silence(self, lo: int, hi: int) -> Occurrence:
        """No leaves, no attributes; it lasted."""
        return self.stamped((), (lo, hi))

    def iteration(self, elements: tuple[Occurrence, ...], different: int | None = None) -> Occurrence:
        """A run or group: one carrier, with `count` (5.3), and `distinct` where different values are counted."""
        whole = self.hull(elements)
        attributes: dict[str, Value] = {**whole.attributes, "count": float(len(elements))}
        if different is not None:
            attributes["distinct"] = float(different)
        return replace(whole, attributes=attributes, clash=frozenset(), aliases={})


def agreement(parts: Iterable[Occurrence]) -> tuple[dict[str, Value], str | None, frozenset[str]]:
    """`n` has value v iff every carrier that has a non-null `n` has v; the same holds for the source, which is no attribute
    of any of them. With the names on which they do not agree."""
    values: dict[str, Value] = {}
    clash: set[str] = set()
    for part in parts:
        clash |= part.clash
        for name, value in (*part.attributes.items(), (SOURCE, part.source)):
            if value is None:
                continue
            if name in values and (type(values[name]) is not type(value) or values[name] != value):
                clash.add(name)
            values[name] = value
    agreed = {name: value for name, value in values.items() if name not in clash}
    source = agreed.pop(SOURCE, None)
    assert source is None or isinstance(source, str)
    return agreed, source, frozenset(clash)


def common_space(parts: Iterable[Occurrence]) -> Space | None:
    """The fields that all primitive events carry with equal values; what has no primitive events has no say."""
    stamps = [part.space for part in parts if part.origin]
    if not stamps or any(stamp is None for stamp in stamps):
        return None
    if all(stamp == stamps[0] for stamp in stamps):
        return stamps[0]
    common = {name: _one({getattr(stamp, name) for stamp in stamps}) for name in SPACE_FIELDS}
    return Space(**common)


def _one(values: set[Any]) -> Any:
    return values.pop() if len(values) == 1 else None


def distinct(occurrences: Iterable[Occurrence], with_aliases: bool = True) -> list[Occurrence]:
    """Without copies, in ascending order, ties as made."""
    occurrences = list(occurrences)
    if len(occurrences) < 2:
        return occurrences
    found: dict[tuple[Any, ...], Occurrence] = {}
    for occurrence in occurrences:
        found.setdefault((occurrence.signature, occurrence.bindings if with_aliases else None), occurrence)
    return sorted(found.values(), key=lambda occurrence: occurrence.order)


def shortest(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Subset policy: of those with equal hi only the one with the greatest lo; on a tie the greatest order."""
    best: dict[int, Occurrence] = {}
    for occurrence in occurrences:
        other = best.get(occurrence.hi)
        if other is None or (other.lo, other.order) <= (occurrence.lo, occurrence.order):
            best[occurrence.hi] = occurrence
    return sorted(best.values(), key=lambda occurrence: occurrence.order)
