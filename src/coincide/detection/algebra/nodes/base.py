"""Nodes: an expression as operators that are evaluated bottom-up, each once an instant (section 5). All that changes is in
the nodes' states. Here: the node itself, references, disjunction and wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import msgspec

from coincide.detection.algebra.nodes.precision import Counters, Thinning
from coincide.detection.algebra.nodes.relations import MAYBE, Period
from coincide.detection.algebra.occurrence import Occurrence, distinct, shortest
from coincide.detection.algebra.scope import Conjunct, environment
from coincide.detection.algebra.space.places import place_test
from coincide.detection.snapshots import damaged
from coincide.lang.ecco.definition import Place
from coincide.model.stamp import OrderKey

Keys = frozenset[OrderKey]
State = Any
"""A node's own: a msgspec.Struct, or None if it has none."""


@dataclass(eq=False)
class Instant:
    """One evaluation of one definition (and key): what has arrived, and where the nodes' states are."""

    now: int
    states: list[State]
    arrivals: Mapping[str, Sequence[Occurrence]]
    primitives: Sequence[Occurrence]  # in their order; what `any` sees
    wake: Callable[[int], None]  # evaluate again at that time
    start: int  # of the observation
    observed: bool = True  # has any event come that the definition refers to?
    keyed: bool = False
    end: int | None = None  # under an endless clock: the hi of the last event


@dataclass(eq=False)
class Node:
    """An operator. `tests` are the conjuncts on what it makes; `reduces`: the subset policy holds here."""

    number: int
    children: tuple[Node, ...] = ()
    tests: tuple[Conjunct, ...] = field(default=(), kw_only=True)
    reduces: bool = field(default=False, kw_only=True)

    state_type: ClassVar[type | None] = None

    def fresh(self) -> State:
        return None if self.state_type is None else self.state_type()

    def begin(self, instant: Instant) -> None:
        """The observation starts."""

    def advance(self, instant: Instant) -> list[Occurrence]:
        """What it makes now, in ascending order, without copies."""
        made = self.made(instant)
        if not made:
            return []
        found = distinct([o for o in made if passes(self.tests, o)] if self.tests else made)
        return shortest(found) if self.reduces else found

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        raise NotImplementedError

    def discard(self, state: State, keys: Keys) -> None:
        """Forget what is built on older copies of an instance (duplicates last)."""

    def forget(self, state: State, now: int) -> None:
        """All that makes no difference any more to what comes now or later. Nodes see to that themselves, but not at once."""

    def check(self, state: State) -> None:
        """Of a state that was stored: Damaged, if it cannot be one of this node. Its types are right."""

    def awaited(self, state: State) -> Iterable[int]:
        """Times at which it has asked to be evaluated, as far as they follow from the state."""
        return ()

    def waits(self, state: State, last: int) -> bool:
        """Does it wait for a time at which, with no further event after `last`, it would make something?"""
        return False

    def state(self, instant: Instant) -> State:
        return instant.states[self.number]


def passes(tests: Iterable[Conjunct], occurrence: Occurrence) -> bool:
    return all(test(environment(occurrence)) for test in tests)


Member = TypeVar("Member", bound=Any)


def without(stored: Iterable[Member], keys: Keys) -> list[Member]:
    """What is not built on any of these events. Members are occurrences or have one."""
    return [m for m in stored if keys.isdisjoint(getattr(m, "occurrence", m).members)]


class PrecisionState(msgspec.Struct, array_like=True):
    counters: list[Counters]


@dataclass(eq=False)
class Reference(Node):
    """Events of a type; no type: primitive events of every type."""

    kind: str | None = None
    alias: bool = False
    places: tuple[Place, ...] = ()
    thinning: Thinning = field(default_factory=Thinning)

    state_type: ClassVar[type | None] = PrecisionState

    def check(self, state: State) -> None:
        if len(state.counters) != len(self.thinning.aspects):
            damaged("what is left out is counted otherwise")

    def __post_init__(self) -> None:
        self.tests_of_place = [place_test(place) for place in self.places]

    def fresh(self) -> State:
        return PrecisionState(self.thinning.fresh())

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        arrived = instant.primitives if self.kind is None else instant.arrivals.get(self.kind, ())
        if not arrived:
            return ()
        if self.thinning.aspects or self.tests_of_place:
            counters = self.state(instant).counters
            arrived = [o for o in arrived if self.thinning.keeps(o, counters) and self._is_there(o)]
        return [o.binding(self.kind) for o in arrived] if self.alias and self.kind else arrived

    def _is_there(self, occurrence: Occurrence) -> bool:
        return all(accepts(occurrence) for accepts in self.tests_of_place)


@dataclass(eq=False)
class Disjunction(Node):
    def made(self, instant: Instant) -> Iterable[Occurrence]:
        for child in self.children:
            yield from child.advance(instant)


@dataclass(eq=False)
class Binding(Node):
    """`E as x`."""

    alias: str = ""

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        return [occurrence.binding(self.alias) for occurrence in self.children[0].advance(instant)]


@dataclass(eq=False)
class Life(Node):
    """`E valid T`."""

    length: int = 0

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        return [o.expiring(o.hi + self.length) for o in self.children[0].advance(instant)]


@dataclass(eq=False)
class LengthBound(Node):
    """`E within T` on what lasts and is neither chain, iteration nor negation: a filter."""

    period: Period = field(default_factory=lambda: Period(0))

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        for occurrence in self.children[0].advance(instant):
            verdict = self.period.holds(occurrence.near, occurrence.far)
            if verdict is not None:
                yield maybe_so(occurrence, verdict)


def maybe_so(occurrence: Occurrence, verdict: str) -> Occurrence:
    return replace(occurrence, maybe=True) if verdict == MAYBE and not occurrence.maybe else occurrence
