"""Plans joined to one graph, and how a batch flows through it.

A batch of external events goes through the plans stage by stage, not event by event. A detection carries its place, so a
later plan reads its inputs merged in exactly the order that event-by-event processing would show them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from coincide.detect.base import Clock, DetectorPlan, State
from coincide.model.batch import EMPTY, EventBatch, merged

VERSION = 1


@dataclass
class GraphState:
    """All that a run remembers. `hi` is that of the last external event consumed."""

    states: list[State]
    consumed: int = 0
    start: int | None = None
    hi: int = -(2**63)


class Snapshot(msgspec.Struct, array_like=True):
    """The state as it is written: plans' parts by the digests of their definitions."""

    version: int
    consumed: int
    start: int | None
    hi: int
    parts: dict[str, bytes]


class Graph:
    """Plans in an order in which none feeds an earlier one."""

    def __init__(self, plans: Sequence[DetectorPlan]) -> None:
        self.plans = tuple(plans)

    def initial(self) -> GraphState:
        return GraphState([plan.initial() for plan in self.plans])

    def advance(self, state: GraphState, batch: EventBatch, bound: int | None = None) -> EventBatch:
        """Consume external events that stand in total order and follow all consumed before; then let time come to `bound`
        (microseconds, exclusive; by default to the last event). Returns the detections by place."""
        if len(batch):
            first, last = _first_and_last(batch)
            state.start = first if state.start is None else state.start
            state.hi = max(state.hi, last)
        external = batch.numbered(state.consumed)
        state.consumed += len(batch)
        clock = Clock(state.hi if bound is None else bound, state.start)
        made: list[EventBatch] = []
        for number, plan in enumerate(self.plans):
            state.states[number], detections = plan.step(state.states[number], self._inputs(plan, external, made), clock)
            made.append(detections)
        return merged(made)

    def finish(self, state: GraphState, until: float | None = None) -> EventBatch:
        """The end of input: timers due by the last event, or by `until` (microseconds or inf) if that is later, fire."""
        if state.start is None:
            return EMPTY
        if until != inf:
            end = state.hi if until is None else max(state.hi, int(until))
            return self.advance(state, EMPTY, end + 1)
        made = [self.advance(state, EMPTY, state.hi + 1)]
        while (due := self._next_finite(state)) is not None:
            made.append(self.advance(state, EMPTY, due + 1))
        return merged(made)

    def encode(self, state: GraphState) -> bytes:
        parts: dict[str, bytes] = {}
        for plan, own in zip(self.plans, state.states, strict=True):
            parts.update(plan.encode(own))
        return msgspec.msgpack.encode(Snapshot(VERSION, state.consumed, state.start, state.hi, parts))

    def decode(self, data: bytes) -> GraphState:
        """The state from a snapshot, of these rules or of others: what is unchanged goes on, the rest starts afresh."""
        snapshot = msgspec.msgpack.decode(data, type=Snapshot)
        if snapshot.version != VERSION:
            raise ValueError(f"snapshot of version {snapshot.version}; this release reads version {VERSION}")
        states = [plan.decode(snapshot.parts) for plan in self.plans]
        return GraphState(states, snapshot.consumed, snapshot.start, snapshot.hi)

    def _inputs(self, plan: DetectorPlan, external: EventBatch, made: Sequence[EventBatch]) -> EventBatch:
        wanted = plan.inputs.detections
        fed = [
            detections.of_types(wanted)
            for other, detections in zip(self.plans, made, strict=False)
            if len(detections) and not wanted.isdisjoint(other.outputs)
        ]
        return merged([external, *fed])

    def due(self, state: GraphState) -> int | None:
        """When the next timer is due."""
        pending = [p.due for plan, own in zip(self.plans, state.states, strict=True) if (p := plan.pending(own)) is not None]
        return min(pending, default=None)

    def _next_finite(self, state: GraphState) -> int | None:
        pending = [p for plan, own in zip(self.plans, state.states, strict=True) if (p := plan.pending(own)) is not None]
        return min(p.due for p in pending) if any(p.finite for p in pending) else None


def _first_and_last(batch: EventBatch) -> tuple[int, int]:
    if batch.has_table:
        hi = batch.table.hi
        return int(hi[0]), int(hi[-1])
    return batch.events[0].hi, batch.events[-1].hi
