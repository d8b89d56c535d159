"""`limit` on detections: of those that say the same again, whatever their language, all but the first are as if never made.

A limit goes by what is made: it stands behind the plan that makes it. "Again" means with the same values of the keys, less than
`every` after the last one let through, or before an event of `until` has come for these values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coincide.detection.base import Clock, Detector, DetectorPlan, Inputs, State
from coincide.detection.eventsets import FREE, Leaves
from coincide.detection.keys import key_part
from coincide.detection.limits import LimitedState, Table, Wrapped, decoded, encoded
from coincide.expr.scalar import event_field
from coincide.expr.tree import Expr, Or, Reference
from coincide.lang.shared.eventsets import EventSet, Limit, types
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.event import ENVELOPE, Event, Place
from coincide.syntax import walk


def awaiting(detector: Detector, limits: Sequence[Limit]) -> Detector:
    """The detector with the types of events that end limits on what it makes."""
    awaited = frozenset(name for limit in limits if limit.type in detector.outputs for name in awaited_types(limit))
    return replace(detector, awaited=awaited) if awaited else detector


def awaited_types(limit: Limit) -> list[str]:
    return [] if limit.until is None else types(limit.until)


def suppressed(plan: DetectorPlan, limits: Sequence[Limit], made_by_all: Collection[str]) -> DetectorPlan:
    """The plan before the limits on what it makes; itself if there is none."""
    concerned = tuple(limit for limit in limits if limit.type in plan.outputs)
    return SuppressedPlan(plan, concerned, frozenset(made_by_all)) if concerned else plan


def kept_keys(keys: Sequence[str], limits: Sequence[Limit], produces: Mapping[str, tuple[Expr, ...]]) -> tuple[str, ...]:
    """The keys by which what is limited can still be spread: those that a limit has too, with the value that events have."""
    if not limits:
        return tuple(keys)
    return tuple(k for k in keys if produces.get(k) == (Reference(k),) and all(k in limit.keys for limit in limits))


class _Ends:
    """The events that end a limit."""

    def __init__(self, number: int, limit: Limit, until: EventSet) -> None:
        self.number = number
        self.keys = [event_field(key) for key in limit.keys]
        self.leaves = Leaves()
        self._holds = self.leaves.holds(until, {})

    def holds(self, event: Event) -> bool:
        return self._holds(self.leaves.read(event).held, FREE) is not None


@dataclass(frozen=True)
class SuppressedPlan(Wrapped):
    """A plan whose detections pass its limits."""

    made_by_all: frozenset[str]

    @cached_property
    def inputs(self) -> Inputs:
        own = self.plan.inputs
        external = None if own.external is None else own.external | self._awaited
        return Inputs(external, own.detections | self._awaited)

    @property
    def columns(self) -> frozenset[str] | None:
        own = self.plan.columns
        return None if own is None else own | (self._read - ENVELOPE)

    @property
    def envelope(self) -> frozenset[str] | None:
        own = self.plan.envelope
        return None if own is None else own | (self._read & ENVELOPE)

    @property
    def relevant(self) -> Expr | None:
        own = self.plan.relevant
        if own is None or not self._ends:
            return own
        tests = [leaf.test for end in self._ends for leaf in end.leaves.leaves]
        distinct = tuple(dict.fromkeys((*(own.operands if isinstance(own, Or) else (own,)), *tests)))
        return Or(distinct) if len(distinct) > 1 else distinct[0]

    @property
    def partition(self) -> tuple[str, ...] | None:
        return kept_keys(self.plan.partition or (), self.limits, self.plan.produces) or None

    def kernel(self) -> DetectorPlan:
        return SuppressedPlan(self.plan.kernel(), self.limits, self.made_by_all)

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        state.inner, made = self.plan.step(state.inner, self._without_awaited(batch), clock)
        return state, self._passing(made, self._ending(batch), state.table)

    def encode(self, state: State) -> dict[str, bytes]:
        return {**self.plan.encode(state.inner), **encoded(self.limits, state.table, "limit made")}

    def decode(self, parts: Mapping[str, bytes]) -> State:
        return LimitedState(self.plan.decode(parts), decoded(self.limits, parts, "limit made"))

    # How it is done.

    @cached_property
    def _ends(self) -> list[_Ends]:
        return [_Ends(n, limit, limit.until) for n, limit in enumerate(self.limits) if limit.until is not None]

    @cached_property
    def _awaited(self) -> frozenset[str]:
        return frozenset(name for limit in self.limits for name in awaited_types(limit))

    @cached_property
    def _read(self) -> frozenset[str]:
        """What is read of the events that end a limit."""
        tests = [test for end in self._ends for leaf in end.leaves.leaves for test in leaf.tests]
        names = {node.name for test in tests for node in walk(test) if isinstance(node, Reference)}
        return frozenset(names) | {key for end in self._ends for key in self.limits[end.number].keys}

    def _without_awaited(self, batch: EventBatch) -> EventBatch:
        """The plan sees no detections but those that it reads."""
        strange = (self._awaited & self.made_by_all) - self.plan.inputs.detections
        if not strange or not len(batch.of_types(strange)):
            return batch
        return EventBatch([event for event in batch.events if not (event.is_detection and event.type in strange)])

    def _ending(self, batch: EventBatch) -> EventBatch:
        return batch.of_types(self._awaited) if self._awaited else EMPTY

    def _passing(self, made: EventBatch, ending: EventBatch, table: Table) -> EventBatch:
        limited = made.of_types(frozenset(limit.type for limit in self.limits))
        if not len(limited) and not len(ending):
            return made
        places = {event.place for event in limited.events}
        removed: set[Place] = set()
        for event in merged([ending, limited]).events:
            if event.place not in places:
                self._end(event, table)
            elif not self._passes(event, table):
                removed.add(event.place)
        return _without(made, removed) if removed else made

    def _end(self, event: Event, table: Table) -> None:
        for end in self._ends:
            if end.holds(event):
                table.pop((end.number, *(key_part(read(event)) for read in end.keys)), None)

    def _passes(self, event: Event, table: Table) -> bool:
        """Every limit on its type must let it pass; only then do the limits remember it."""
        keys = []
        for number, limit in enumerate(self.limits):
            if limit.type != event.type:
                continue
            key = (number, *(key_part(event_field(name)(event)) for name in limit.keys))
            last = table.get(key)
            if last is not None and (limit.every is None or limit.every.due(last) > event.hi):
                return False
            keys.append(key)
        table.update(dict.fromkeys(keys, event.hi))
        return True


def _without(made: EventBatch, removed: set[Place]) -> EventBatch:
    if not made.has_table:
        return EventBatch([event for event in made.events if event.place not in removed])
    import numpy as np

    passing = np.array([event.place not in removed for event in made.events], bool)
    return EventBatch(table=made.table.take(np.flatnonzero(passing)))
