"""Plans joined to one graph, and how a batch flows through it.

A batch of external events goes through the plans stage by stage, not event by event. A detection carries its place, so a
later plan reads its inputs merged in exactly the order that event-by-event processing would show them in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from coincide.collecting import without_collecting
from coincide.detection.base import Changes, Clock, DetectorPlan, Pending, State, Unfinished
from coincide.detection.snapshots import NEVER, damaged, reading_state, sealed
from coincide.engines.gaps import Gaps
from coincide.engines.routing import Dues, Router, Routes
from coincide.engines.snapshots import (
    VERSION,
    DividedSnapshot,
    GraphChanges,
    GraphSnapshot,
    divided_snapshot,
    read_snapshot,
    with_changes,
)
from coincide.engines.stopping import Stop
from coincide.engines.together import Groups
from coincide.errors import RunError
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.event import HEARTBEAT, order_of

if TYPE_CHECKING:
    from coincide.detection.columns.hashes import Hashes
    from coincide.model.table import Instants


@dataclass
class GraphState:
    """All that a run remembers. `hi` is that of the last external event consumed. `stepped` are the numbers of the plans that
    have begun: a plan may have something to do at the first step whatever comes (Amit's lifespans open at the start). `touched`
    are those that were stepped since changes were told last, `digests` those of what was told of plans that do not know. `dues`
    are when plans are due next, but for those that were stepped since somebody looked, which are `unsure`. `together` are the
    states of groups of plans, by the first one; these have none of their own then."""

    states: list[State]
    consumed: int = 0
    start: int | None = None
    hi: int = NEVER
    stepped: set[int] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    digests: dict[int, dict[str, bytes]] = field(default_factory=dict)
    dues: Dues = field(default_factory=Dues)
    unsure: set[int] = field(default_factory=set)
    together: dict[int, State] = field(default_factory=dict)

    def check_begun(self) -> None:
        """The clock of a run stands at its first event or behind it."""
        if self.hi != NEVER if self.start is None else self.hi < self.start:
            damaged("its clock does not fit its first event")


@dataclass
class Border:
    """What crosses the border of a graph that is a part of a larger one: the detections that other parts have made of the same
    events, with places among them, and all that this part makes, also what is not given out."""

    given: EventBatch = EMPTY
    made: list[EventBatch] = field(default_factory=list)

    def inputs_of(self, plan: DetectorPlan) -> list[EventBatch]:
        wanted = self.given.of_types(plan.inputs.detections) if len(self.given) and plan.inputs.detections else EMPTY
        return [wanted] if len(wanted) else []


class Graph:
    """Plans in an order in which none feeds an earlier one. `tells_hidden`: detections that only other detectors see are given
    out, too, as some of these are elsewhere."""

    @without_collecting()
    def __init__(self, plans: Sequence[DetectorPlan], tells_hidden: bool = False, together: bool = True) -> None:
        self.plans = tuple(plans)
        self._tells_hidden = tells_hidden
        self._feeders = _feeders(self.plans)
        self._readers = _readers(self._feeders)
        self._gaps = Gaps(self.plans)
        self._router = Router(self.plans)
        self._groups = Groups([(number, plan) for number, plan in enumerate(plans) if together and not self._feeders[number]])
        self._all = frozenset(range(len(self.plans)))
        self._restless = frozenset(number for number, plan in enumerate(self.plans) if not plan.rests)
        self._timed = frozenset(number for number, plan in enumerate(self.plans) if plan.rests and plan.timed)

    def initial(self) -> GraphState:
        with without_collecting():
            groups = self._groups.by_first
            grouped = {number for group in groups.values() for number in group.numbers}
            states = [None if number in grouped else plan.initial() for number, plan in enumerate(self.plans)]
            return GraphState(states, together={first: group.family.fresh() for first, group in groups.items()})

    def advance(
        self,
        state: GraphState,
        batch: EventBatch,
        bound: int | None = None,
        arrival: int | Instants | None = None,
        until: float | None = None,
        closing: bool = False,
        border: Border | None = None,
    ) -> EventBatch:
        """Consume external events that stand in total order and follow all consumed before; then let time come to `bound`
        (microseconds, exclusive; by default to the last event). Returns the detections by place. With a clock of `arrival`,
        one event is consumed at that clock whatever its time; with one for each row, a batch as it came.
        `until` is given when the input has ended, `closing` when it
        is over with this step. With a `border`, events have their places already."""
        if border is not None or (far := self._gaps.find(state.hi, batch)) is None:
            return self._step(state, batch, bound, arrival, until, closing, border)
        before, behind = batch.split(far)
        first, rest = behind.split(1)
        made = [self._step(state, before)] if far else []
        try:
            self._gaps.check(state.states, state.hi, _first(first))
            made.append(self._step(state, first, arrival=arrival))
            made.append(self.advance(state, rest, bound, arrival, until, closing))
        except RunError as error:
            error.detections = merged([*made, error.detections or EMPTY])
            raise
        return merged(made)

    def _step(
        self,
        state: GraphState,
        batch: EventBatch,
        bound: int | None = None,
        arrival: int | Instants | None = None,
        until: float | None = None,
        closing: bool = False,
        border: Border | None = None,
    ) -> EventBatch:
        placed = batch.numbered(state.consumed, arrival) if border is None else batch
        external = placed.without_type(HEARTBEAT)
        if rows := len(batch):
            state.consumed += rows
            if state.start is None and not len(external):  # a heartbeat begins nothing, and nothing waits yet
                return EMPTY
            state.start = _first(external) if state.start is None else state.start
            state.hi = max(state.hi, _last(batch) if arrival is None else _latest(batch))
        end = None if until is None else state.hi
        at = arrival if isinstance(arrival, int) else None
        routes = Routes(external, self._router)
        now, unordered = state.hi if bound is None else bound, arrival is not None and at is None
        clock = Clock(now, state.start, at, end, until == inf, closing, routes.latest, unordered)
        if border is None:
            self._part(state, external, clock)
        else:  # others may feed any plan
            self._part(state)
        made: dict[int, EventBatch] = {}
        stop = Stop()
        agenda = self._agenda(state, None if until is not None or border is not None else routes.concerned(), now)
        waiting = {*agenda}
        while agenda:
            number = heappop(agenda)
            try:
                if number in state.together:
                    detections = self._step_group(state, number, stop.cut(external), clock)
                else:
                    detections = self._step_plan(state, number, stop.cut(self._inputs(number, routes, made, border)), clock)
            except RunError as error:
                detections = stop.take(error)
            if len(detections):
                made[number] = detections
                for reader in self._readers_of(state, number) - waiting:
                    waiting.add(reader)
                    heappush(agenda, reader)
        state.unsure |= waiting & self._timed
        shown = [found if self._tells_hidden else found.given_out() for found in made.values()]
        if border is not None:
            border.made += made.values()
        stop.raise_with(shown)
        return merged(shown)

    def _inputs(self, number: int, routes: Routes, made: Mapping[int, EventBatch], border: Border | None) -> EventBatch:
        """What a plan reads of a batch."""
        given = self._detections_for(number, made)
        given += border.inputs_of(self.plans[number]) if border is not None else []
        own = routes.to(number)
        return merged([own, *given]) if given else own

    def _step_plan(self, state: GraphState, number: int, inputs: EventBatch, clock: Clock) -> EventBatch:
        state.stepped.add(number)
        state.touched.add(number)
        state.states[number], detections = self.plans[number].step(state.states[number], inputs, clock)
        return detections

    def _step_group(self, state: GraphState, first: int, inputs: EventBatch, clock: Clock) -> EventBatch:
        group = self._groups.by_first[first]
        state.stepped.update(group.numbers)
        state.together[first], detections = group.family.step(state.together[first], inputs, clock)
        return detections

    def _readers_of(self, state: GraphState, number: int) -> frozenset[int]:
        if number not in state.together:
            return self._readers.get(number, frozenset())
        makers = self._readers.keys() & self._groups.by_first[number].numbers
        return frozenset().union(*(self._readers[maker] for maker in makers))

    def _part(self, state: GraphState, batch: EventBatch | None = None, clock: Clock | None = None) -> None:
        """From now on plans are stepped one by one: all, or those of groups that cannot take a batch."""
        for first in [*state.together]:
            group = self._groups.by_first[first]
            if batch is not None and clock is not None and group.family.takes(batch, clock):
                continue
            for number, own in zip(group.numbers, group.family.apart(state.together.pop(first)), strict=True):
                state.states[number] = own
            state.touched.update(group.numbers)
            state.unsure |= self._timed.intersection(group.numbers)

    def _own(self, state: GraphState) -> list[State]:
        """The state of each plan."""
        states = [*state.states]
        for first, own in state.together.items():
            group = self._groups.by_first[first]
            for number, each in zip(group.numbers, group.family.apart(own), strict=True):
                states[number] = each
        return states

    def _pending(self, state: GraphState, number: int) -> Pending | None:
        if number in state.together:
            return self._groups.by_first[number].family.pending(state.together[number])
        return self.plans[number].pending(state.states[number])

    def _all_pending(self, state: GraphState) -> list[Pending]:
        numbers = self._together(state, range(len(self.plans)))
        return [pending for number in numbers if (pending := self._pending(state, number)) is not None]

    def _together(self, state: GraphState, numbers: Collection[int]) -> Collection[int]:
        """Numbers of plans, where the first of a group stands for all of them."""
        return self._groups.firsts(numbers) if state.together else numbers

    def _agenda(self, state: GraphState, concerned: set[int] | None, now: int) -> list[int]:
        """The numbers of the plans to step, in order: those that the events concern, and those that may have to do something all
        the same."""
        if concerned is None:
            return sorted(self._together(state, range(len(self.plans))))
        concerned |= self._restless
        if len(state.stepped) < len(self.plans):
            concerned |= self._all - state.stepped
        concerned = {*self._together(state, concerned)}
        for number in state.unsure - concerned:
            pending = self._pending(state, number)
            state.dues.note(number, None if pending is None else pending.due)
        state.unsure &= concerned
        concerned.update(state.dues.before(now))
        return sorted(concerned)

    def cross(self, state: GraphState, last: float) -> None:
        """Timers are to fire one after another until `last`. Raises RunError if a definition would act too often before."""
        if last != inf and self._gaps.are_watched and (due := self.due(state)) is not None:
            self._gaps.check(state.states, due, int(last))

    def finish(
        self, state: GraphState, until: float | None = None, closed: bool = True, border: Border | None = None
    ) -> EventBatch:
        """The end of input: timers due by the last event, or by `until` (microseconds or inf) if that is later, fire; then
        tables end. If it is not `closed`, more is to come later, and the clock only goes on to `until`. A part of a larger graph
        cannot tell when nothing is waited for any more, so its `until` is not an infinite one."""
        if state.start is None:
            return EMPTY
        if until is None and not closed:  # the clock has come to the last event of the whole input, not past it
            return self.advance(state, EMPTY, state.hi, border=border)
        if until != inf:
            end = state.hi if until is None else max(state.hi, int(until))
            self._gaps.check(state.states, state.hi, end)
            return self.advance(state, EMPTY, end + 1, until=end, closing=closed, border=border)
        made = [self.advance(state, EMPTY, bound := state.hi + 1, until=inf)]
        try:
            while (due := self._next_finite(state)) is not None:
                made.append(self.advance(state, EMPTY, bound := due + 1, until=inf))
            if closed:
                made.append(self.advance(state, EMPTY, bound, until=inf, closing=True))
        except RunError as error:
            error.detections = merged([*made, error.detections or EMPTY])
            raise
        return merged(made)

    def encode(self, state: GraphState) -> bytes:
        parts: dict[str, bytes] = {}
        for plan, own in zip(self.plans, self._own(state), strict=True):
            parts.update(plan.encode(own))
        return sealed(msgspec.msgpack.encode(GraphSnapshot(VERSION, state.consumed, state.start, state.hi, parts)))

    def tells_changes(self, state: GraphState) -> bool:
        numbers = self._together(state, range(len(self.plans)))
        return all(self.plans[number].tells_changes(state.states[number]) for number in numbers if number not in state.together)

    def changes(self, state: GraphState, everything: bool = False) -> bytes:
        """What has changed since this was asked last, or since the state was decoded; of plans that can tell, at the cost of what
        was touched. If all is wanted, it is a snapshot, which what is told later can be added to."""
        self._part(state)
        numbers = range(len(self.plans)) if everything else sorted(state.touched)
        found = [self._changes(state, number, everything) for number in numbers]
        state.touched.clear()
        replaced = {name: data for changes in found for name, data in changes.replaced.items()}
        if everything:
            return sealed(msgspec.msgpack.encode(GraphSnapshot(VERSION, state.consumed, state.start, state.hi, replaced)))
        added = {name: data for changes in found for name, data in changes.added.items()}
        gone = [name for changes in found for name in changes.gone]
        delta = GraphChanges(VERSION, state.consumed, state.start, state.hi, replaced, added, gone)
        return sealed(msgspec.msgpack.encode(delta))

    def _changes(self, state: GraphState, number: int, everything: bool) -> Changes:
        """Of one plan. If it cannot tell, its parts are looked at: those that are others than before."""
        plan, own = self.plans[number], state.states[number]
        if plan.tells_changes(own):
            state.digests.pop(number, None)
            return plan.changes(own, everything)
        before = {} if everything else state.digests.get(number, {})
        parts = plan.encode(own)
        state.digests[number] = now = {name: blake2b(data, digest_size=16).digest() for name, data in parts.items()}
        replaced = {name: data for name, data in parts.items() if now[name] != before.get(name)}
        return Changes(replaced, {}, sorted(before.keys() - now.keys()))

    def with_changes(self, data: bytes, changes: Sequence[bytes]) -> GraphState:
        """The state from a snapshot and what has changed after it, in order. Raises InputError."""
        with reading_state():
            snapshot = with_changes(data, changes)
        return self.restored(snapshot)

    def is_divided_by(self, key: Sequence[str]) -> bool:
        """Do all plans look at events with each value of the key by themselves, and at no other key?"""
        return bool(key) and all(sorted(plan.partition or ()) == sorted(key) for plan in self.plans)

    def divided(self, data: bytes, changes: Sequence[bytes], width: int) -> DividedSnapshot | None:
        """As `with_changes`, to read portions of, by keys of so many parts. None: they cannot be told from one another."""
        with reading_state():
            return divided_snapshot(data, changes, width)

    def stores_due(self, stored: DividedSnapshot) -> bool:
        """Can it be told of what is stored which keys have timers that are due?"""
        return not stored.whole.parts and all(plan.stores_due for plan in self.plans if plan.timed)

    def portion(self, stored: DividedSnapshot, hashes: Hashes) -> GraphState | None:
        """The state of only the keys with these hashes. None: they cannot be told from others."""
        with reading_state():
            snapshot = stored.portion(hashes)
        return None if snapshot is None else self.restored(snapshot)

    def decode(self, data: bytes) -> GraphState:
        """The state from a snapshot, of these rules or of others: what is unchanged goes on, the rest starts afresh."""
        return self.restored(read_snapshot(data, GraphSnapshot))

    def restored(self, snapshot: GraphSnapshot) -> GraphState:
        """Raises InputError, whatever is wrong with it."""
        with reading_state():
            states = [plan.decode(snapshot.parts) for plan in self.plans]
        return GraphState(states, snapshot.consumed, snapshot.start, snapshot.hi)

    def _detections_for(self, number: int, made: Mapping[int, EventBatch]) -> list[EventBatch]:
        """The detections of earlier plans that a plan reads."""
        wanted, feeders = self.plans[number].inputs.detections, self._feeders[number]
        makers = [other for other in sorted({*feeders, *self._groups.firsts(feeders)}) if other in made]
        return [made[other].of_types(wanted) for other in makers]

    def due(self, state: GraphState) -> int | None:
        """When the next timer is due."""
        return min((pending.due for pending in self._all_pending(state)), default=None)

    def unfinished(self, state: GraphState) -> Iterator[Unfinished]:
        """What rules have begun and not ended, in the interpreter tier."""
        for plan, own in zip(self.plans, self._own(state), strict=True):
            yield from plan.unfinished(own)

    def statistics(self, state: GraphState) -> dict[str, Any]:
        """What `--stats` writes (AMIT-63): sums over the plans that count, and the external events read."""
        total: dict[str, Any] = {"events": state.consumed}
        for plan, own in zip(self.plans, self._own(state), strict=True):
            add_statistics(total, plan.statistics(own))
        return total

    def waits(self, state: GraphState) -> bool:
        """Is any pending timer not a recurring one?"""
        return any(pending.finite for pending in self._all_pending(state))

    def _next_finite(self, state: GraphState) -> int | None:
        return self.due(state) if self.waits(state) else None


def _feeders(plans: Sequence[DetectorPlan]) -> list[list[int]]:
    """For each plan, the numbers of the earlier ones whose detections it reads."""
    makers: dict[str, list[int]] = {}
    feeders = []
    for number, plan in enumerate(plans):
        feeders.append(sorted({maker for wanted in plan.inputs.detections for maker in makers.get(wanted, ())}))
        for output in plan.outputs:
            makers.setdefault(output, []).append(number)
    return feeders


def _readers(feeders: Sequence[Sequence[int]]) -> dict[int, frozenset[int]]:
    """For each plan that feeds others, their numbers."""
    found: dict[int, set[int]] = {}
    for number, makers in enumerate(feeders):
        for maker in makers:
            found.setdefault(maker, set()).add(number)
    return {maker: frozenset(numbers) for maker, numbers in found.items()}


def add_statistics(total: dict[str, Any], part: Mapping[str, Any]) -> None:
    for name, value in part.items():
        if isinstance(value, Mapping):
            add_statistics(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value


def _first(batch: EventBatch) -> int:
    return int(batch.table.hi[0]) if batch.has_table else order_of(batch.events[0])[0]


def _last(batch: EventBatch) -> int:
    return int(batch.table.hi[-1]) if batch.has_table else order_of(batch.events[-1])[0]


def _latest(batch: EventBatch) -> int:
    """Of events as they came."""
    return int(batch.table.hi.max()) if batch.has_table else max(order_of(event)[0] for event in batch.events)
