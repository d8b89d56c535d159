"""`limit` (Opera, OP-29): repeat notifications that no detector sees, of whatever language it is. Detections that are
limited are the matter of suppression.py.

A plan that reads events of a limited type gets its events through its limits. All plans see the same external events, so
all of them remember the same of a limit: it is written once, by its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import msgspec

from coincide.detection import snapshots
from coincide.detection.base import Clock, DetectorPlan, Inputs, Pending, State, Unfinished, compared
from coincide.detection.keys import key_part, key_value
from coincide.expr.scalar import event_field
from coincide.expr.tree import Compare, Expr, Literal, Or, Reference
from coincide.model.batch import EventBatch
from coincide.model.bounds import Instant
from coincide.model.event import ENVELOPE, Event, StoredValue

if TYPE_CHECKING:
    from coincide.lang.shared.eventsets import Limit

VERSION = 1

Table = dict[tuple[Any, ...], int]
"""hi of the last event that was not removed, by limit and key values."""


class Limits:
    """An event passes if every limit on its type lets it; only then do the limits remember it."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._by_type: dict[str, list[tuple[int, Limit]]] = {}
        for number, limit in enumerate(limits):
            self._by_type.setdefault(limit.type, []).append((number, limit))

    def passes(self, event: Event, table: Table) -> bool:
        limits = self._by_type.get(event.type)
        if limits is None or event.is_detection:
            return True
        keys = [(number, *(key_part(event_field(key)(event)) for key in limit.keys)) for number, limit in limits]
        for key, (_, limit) in zip(keys, limits, strict=True):
            last = table.get(key)
            if last is not None and (limit.every is None or limit.every.due(last) > event.hi):
                return False
        table.update(dict.fromkeys(keys, event.hi))
        return True


@dataclass
class LimitedState:
    inner: State
    table: Table = field(default_factory=dict)


def limited(plan: DetectorPlan, limits: Sequence[Limit]) -> DetectorPlan:
    """The plan behind the limits that concern it; itself if none does."""
    concerned = concerning(limits, plan.inputs)
    return LimitedPlan(plan, concerned) if concerned else plan


def concerning(limits: Sequence[Limit], inputs: Inputs) -> tuple[Limit, ...]:
    """Limits on external events that are read. One that `until` ends is for detections only."""
    plain = [limit for limit in limits if limit.until is None]
    return tuple(limit for limit in plain if inputs.external is None or limit.type in inputs.external)


def independent(keys: Sequence[str], limits: Sequence[Limit]) -> tuple[str, ...]:
    """The keys by which events can still be spread: a limit must not see fewer events than it would in one piece."""
    return tuple(key for key in keys if all(key in limit.keys for limit in limits))


@dataclass(frozen=True)
class Wrapped(DetectorPlan):
    """What a plan behind limits has of the plan itself. The limits have parts of their own in its state."""

    plan: DetectorPlan
    limits: tuple[Limit, ...]

    def tier_reasons(self) -> tuple[str, ...]:
        return self.plan.tier_reasons()

    def initial(self) -> State:
        return LimitedState(self.plan.initial())

    def pending(self, state: State) -> Pending | None:
        return self.plan.pending(state.inner)

    def beginnings(self) -> Iterator[str]:
        yield compared(self.definitions, "limits go by the last event that they let through")

    def essence(self, state: State) -> bytes:
        return msgspec.msgpack.encode((self.plan.essence(state.inner), sorted(map(repr, state.table.items()))))

    def statistics(self, state: State) -> Mapping[str, Any]:
        return self.plan.statistics(state.inner)

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        return self.plan.unfinished(state.inner)

    def sharing(self) -> str:
        return self.plan.sharing()

    def memory(self) -> str:
        return self.plan.memory()

    def outline(self) -> Iterator[str]:
        return self.plan.outline()

    def with_steps(self, steps: int) -> Self:
        return replace(self, plan=self.plan.with_steps(steps))


AS_THE_PLAN = (
    *("name", "definitions", "inputs", "outputs", "makes", "produces", "passes_on"),
    *("timed", "rests", "reads_sets", "counts_tests", "ticking", "pays_from", "manner", "loop"),
)
for _name in AS_THE_PLAN:
    setattr(Wrapped, _name, property(attrgetter(f"plan.{_name}")))


@dataclass(frozen=True)
class LimitedPlan(Wrapped):
    """A plan that does not see what its limits remove."""

    @property
    def columns(self) -> frozenset[str] | None:
        own = self.plan.columns
        return None if own is None else own | (self._keys - ENVELOPE)

    @property
    def envelope(self) -> frozenset[str] | None:
        own = self.plan.envelope
        return None if own is None else own | (self._keys & ENVELOPE)

    @property
    def relevant(self) -> Expr | None:
        """An event that the plan ignores may still be the one that a limit goes by."""
        own = self.plan.relevant
        if own is None:
            return None
        counted = [Compare("=", Reference("type"), Literal(name)) for name in sorted(self._types)]
        tests = tuple(dict.fromkeys((*(own.operands if isinstance(own, Or) else (own,)), *counted)))
        return Or(tests) if len(tests) > 1 else tests[0]

    @property
    def partition(self) -> tuple[str, ...] | None:
        return independent(self.plan.partition or (), self.limits) or None

    def kernel(self) -> DetectorPlan:
        return LimitedPlan(self.plan.kernel(), self.limits)

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        state.inner, made = self.plan.step(state.inner, self._passing(batch, state.table), clock)
        return state, made

    def encode(self, state: State) -> dict[str, bytes]:
        return {**self.plan.encode(state.inner), **encoded(self.limits, state.table, "limit")}

    def decode(self, parts: Mapping[str, bytes]) -> State:
        return LimitedState(self.plan.decode(parts), decoded(self.limits, parts, "limit"))

    # How it is done.

    @cached_property
    def _types(self) -> frozenset[str]:
        return frozenset(limit.type for limit in self.limits)

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for limit in self.limits for key in limit.keys)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self.limits)

    def _passing(self, batch: EventBatch, table: Table) -> EventBatch:
        if batch.has_table and batch.table.sortable:
            return self._passing_rows(batch, table)
        passing = [event for event in batch.events if self._limits.passes(event, table)]
        return batch if len(passing) == len(batch) else EventBatch(passing)

    def _passing_rows(self, batch: EventBatch, table: Table) -> EventBatch:
        """Columns stay columns: only rows of limited types are looked at one by one."""
        import numpy as np

        rows = batch.table.rows_of_types(self._types)
        passing = np.ones(len(batch), bool)
        passing[rows] = [self._limits.passes(event, table) for event in batch.table.take(rows).events()]
        return batch if passing.all() else EventBatch(table=batch.table.take(np.flatnonzero(passing)))


NOTHING = msgspec.msgpack.encode([VERSION, []])


class Written(msgspec.Struct, array_like=True):
    """What one limit remembers. A key may be null here."""

    version: int
    table: list[tuple[list[StoredValue], Instant]]


def encoded(limits: Sequence[Limit], table: Table, word: str) -> dict[str, bytes]:
    """What limits remember, each by its text, wherever it stands."""
    tables: list[list[Any]] = [[] for _ in limits]
    for (number, *values), hi in table.items():
        tables[number].append([[key_value(value) for value in values], hi])
    return {_part(limit, word): msgspec.msgpack.encode([VERSION, t]) for limit, t in zip(limits, tables, strict=True)}


def decoded(limits: Sequence[Limit], parts: Mapping[str, bytes], word: str) -> Table:
    found: Table = {}
    for number, limit in enumerate(limits):
        for values, hi in snapshots.decoded(parts.get(_part(limit, word), NOTHING), Written, VERSION).table:
            if len(values) != len(limit.keys):
                snapshots.damaged("a limit has another key")
            found[number, *map(key_part, values)] = hi
    return found


def _part(limit: Limit, word: str) -> str:
    until = "" if limit.until is None else f" until {limit.until!r}"
    return f"{word} {limit!r}{until}"
