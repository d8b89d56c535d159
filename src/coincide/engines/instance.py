"""Detectors behind the stage of one stability policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from coincide.compile import Compiled
from coincide.compile.graph import feeds
from coincide.detection.base import Detector, DetectorPlan, in_tier
from coincide.detection.snapshots import carried_key_of, damaged, external_event_of, key_of_order, stored_event, stored_key
from coincide.engines.graph import Graph, GraphState
from coincide.engines.stopping import up_to_a_stop
from coincide.errors import CoincideError, RunError
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event, Place
from coincide.ordering import POLICIES, stage, written_policies
from coincide.stages import NEVER, BestEffort, Guaranteed, Moment, Moments, StageState

if TYPE_CHECKING:
    from coincide.model.table import Instants

KEY = 5
"""Parts of a key of the total order."""


@dataclass(frozen=True)
class StabilityPolicy:
    """`best-effort`, `guaranteed` or `probabilistic p`."""

    kind: str
    threshold: float = 1.0
    delay: int = 0  # of no policy in a stream without end: how much later than later ones events may come

    @classmethod
    def parse(cls, text: str) -> StabilityPolicy:
        kind, *rest = text.split() or [""]
        try:
            threshold = float(rest[0]) if rest else 1.0
        except ValueError:
            threshold = 0.0
        if kind not in written_policies() or POLICIES[kind].has_threshold != len(rest) or not 0 < threshold <= 1:
            raise CoincideError(f"unknown policy '{text}': best-effort, guaranteed, or probabilistic P with 0 < P <= 1")
        return cls(kind, threshold)

    @property
    def is_one(self) -> bool:
        """Or is it the want of one?"""
        return POLICIES[self.kind].written

    def __str__(self) -> str:
        return f"{self.kind} {self.threshold:g}" if POLICIES[self.kind].has_threshold else self.kind


IN_ORDER = StabilityPolicy("in-order")
"""No policy: the whole input in total order."""


class Instance:
    """The detectors of one policy with all that feeds them, behind the policy's stage; only its own are reported."""

    tells_hidden = False

    def __init__(
        self,
        policy: StabilityPolicy,
        compiled: Compiled,
        own: Sequence[Detector],
        report: Callable[[Event, Moment, StabilityPolicy], None],
        tier: str = "interpreter",
    ) -> None:
        self.policy = policy
        self.report = report
        self.tier = tier
        self._new_stage = partial(stage, policy.kind, self, compiled.sources, policy.threshold, policy.delay)
        self.stage = self._new_stage()
        self.graph = Graph(())
        self.state = self.graph.initial()
        self.stopped = 0  # how many records had arrived when the run had to stop
        self.change(compiled, own)

    def change(self, compiled: Compiled, own: Sequence[Detector]) -> None:
        """Other detectors from the next event on; those whose text is unchanged keep their state."""
        self.reported = {detector.order for detector in own}
        self._plans = compiled.plans_for(_with_feeders(compiled.detectors, own))
        self.timed = any(plan.timed for plan in self._plans)
        self.use(self.tier)

    def use(self, tier: str, size: int = 0) -> None:
        """Go on in this tier, or in the one that suits batches of this size. Event by event, kernels are of no use."""
        self.tier = tier
        plans = in_tier(self._plans, tier, size)
        if not self._is_batched(plans):
            plans = self._plans
        self._by_columns = any(plan is not plain for plan, plain in zip(plans, self._plans, strict=True))
        data = None if self.state.start is None else self.graph.encode(self.state)
        self.graph = Graph(plans, self.tells_hidden)
        self.state = self.graph.initial() if data is None else self.graph.decode(data)

    def _is_batched(self, plans: Sequence[DetectorPlan]) -> bool:
        """Does the policy let events come together?"""
        if self._by_arrival:
            return all(plan.takes_arrivals(0) for plan in plans)
        return not (POLICIES[self.policy.kind].takes_timed_singly and self.timed)

    @property
    def names(self) -> set[str]:
        """Of all that it detects, reported or not."""
        return {name for plan in self.graph.plans for name in plan.definitions}

    def encode(self) -> bytes:
        return msgspec.msgpack.encode([stored_stage(self.stage.state()), self.graph.encode(self.state)])

    def decoded(self, data: bytes) -> tuple[StageState, GraphState]:
        stage, graph = msgspec.msgpack.decode(data, type=tuple[StageState, bytes])
        return self.checked(read_stage(stage), self.graph.decode(graph))

    def checked(self, read: StageState, state: GraphState) -> tuple[StageState, GraphState]:
        """They fit together. Raises ValueError. A timer has moved the clock past its instant, an event to it."""
        state.check_begun()
        tried = self._new_stage()
        tried.restore(read)
        if tried.has_left(read, self.graph.due(state) if self.timed else None):
            damaged("the clock has passed what still waits")
        if not self._by_arrival and state.hi > (read.last[0] + (len(read.last) != KEY) if read.last else NEVER):
            damaged("an event was consumed after the last one")
        return read, state

    def restore(self, stage: StageState, state: GraphState) -> None:
        self.state = state
        self.stage.restore(stage)

    def arrive(self, batch: EventBatch) -> None:
        if self._by_columns and batch.has_table and isinstance(self.stage, BestEffort):
            from coincide.engines.arrivals import arrive_unordered

            arrive_unordered(self.stage, self, batch.table)
        elif self._by_columns and batch.has_table and type(self.stage) is Guaranteed:
            from coincide.engines.arrivals import arrive

            arrive(self.stage, batch.table)
        else:
            for event in batch.events:
                self.stage.arrive(event)
            self.stage.settle()

    # What the stage has it do.

    def due(self) -> int | None:
        return self.graph.due(self.state)

    def finite(self) -> bool:
        return self.graph.waits(self.state)

    def cross(self, last: float, moment: Moment) -> None:
        try:
            self.graph.cross(self.state, last)
        except RunError:
            self.stopped = moment[1]
            raise

    def consume(self, batch: EventBatch, moments: Moments) -> None:
        arrival = moments(0)[0] if self._by_arrival else None
        self._advance(batch, NEVER if self._by_arrival else None, arrival, lambda place: moments(place[0]))

    def takes_arrivals(self, delay: int) -> bool:
        return all(plan.takes_arrivals(delay) for plan in self.graph.plans)

    def consume_arrivals(
        self, batch: EventBatch, clocks: Instants, bound: int, moment: Callable[[int | None, int], Moment]
    ) -> None:
        first = self.state.consumed
        self._advance(batch, bound, clocks, lambda place: moment(place[2] - first if place[1] == 0 else None, place[0]))

    def fire(self, due: int, moment: Moment) -> None:
        self._advance(EMPTY, due + 1, moment[0] if self._by_arrival else None, lambda place: moment)

    @property
    def _by_arrival(self) -> bool:
        return POLICIES[self.policy.kind].by_arrival

    def _advance(
        self, batch: EventBatch, bound: int | None, arrival: int | Instants | None, moment_of: Callable[[Place], Moment]
    ) -> None:
        """A place begins with the time of what brought it about, and ends with the definition that made it and a count."""
        try:
            for made in up_to_a_stop(partial(self.graph.advance, self.state, batch, bound, arrival)):
                for detection in made.events:
                    if detection.place[-2] in self.reported:
                        self.report(detection, moment_of(detection.place), self.policy)
        except RunError as error:
            self.stopped = moment_of(error.place or (NEVER, 1))[1]
            raise


def stored_stage(state: StageState) -> StageState:
    buffer = [(number, stored_event(event)) for number, event in state.buffer]
    last = (*stored_key(state.last[:KEY]), *state.last[KEY:]) if len(state.last) >= KEY else state.last
    return msgspec.structs.replace(state, buffer=buffer, last=last)


def read_stage(state: StageState) -> StageState:
    """What waits is external events with a place in the total order; `last` is such a place, or the beginning of one."""
    buffer = [(number, external_event_of(event)) for number, event in state.buffer]
    if tuple(map(type, state.last[:KEY])) not in ((), (int, float), (int, int, int, int, str)):
        damaged("what was consumed last has no place in the total order")
    last = carried_key_of(state.last) if len(state.last) > KEY else state.last
    last = key_of_order(last) if len(last) == KEY else last
    return msgspec.structs.replace(state, buffer=buffer, last=last)


def _with_feeders(detectors: Sequence[Detector], own: Sequence[Detector]) -> list[Detector]:
    edges = feeds(detectors)
    orders = {detector.order for detector in own}
    wanted = {number for number, detector in enumerate(detectors) if detector.order in orders}
    while more := {number for number, readers in edges.items() if wanted & set(readers)} - wanted:
        wanted |= more
    return [detectors[number] for number in sorted(wanted)]
