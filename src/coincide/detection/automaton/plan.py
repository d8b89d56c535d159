"""A detector of Opera as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from coincide.detection.automaton import encoding
from coincide.detection.automaton.interpreter import Interpreter
from coincide.detection.automaton.partition import partition
from coincide.detection.automaton.produces import produced
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import DetectorState
from coincide.detection.automaton.support import reasons
from coincide.detection.base import Attributes, Changes, Clock, Detector, DetectorPlan, PlanOfOne, State, Unfinished
from coincide.detection.eventwise import step_eventwise
from coincide.detection.parts import changes_of, tables_of, with_tables
from coincide.expr.quantities import counted
from coincide.expr.tree import Expr, Literal, Or, Reference
from coincide.lang.shared.times import Duration
from coincide.model.batch import EventBatch
from coincide.model.event import ENVELOPE, united_origin
from coincide.syntax import walk

if TYPE_CHECKING:
    from coincide.detection.automaton.families import Family


@dataclass(frozen=True)
class AutomatonPlan(PlanOfOne):
    """One detector. `sides` are types that sides of its `||` make elsewhere: then each batch is one item, with what they have
    made of it."""

    LOOP: ClassVar[str] = "coincide.detection.automaton.loop"
    stores_due: ClassVar[bool] = True
    sides: frozenset[str] = frozenset()

    @cached_property
    def program(self) -> Program:
        return Program(self.detector.definition, self.detector.order, self.sides)

    @cached_property
    def columns(self) -> frozenset[str]:
        leaves = self.program.leaves.leaves
        names = {node.name for leaf in leaves for test in leaf.tests for node in walk(test) if isinstance(node, Reference)}
        names |= {attribute for leaf in leaves for attribute, _ in leaf.bindings}
        return frozenset(names | self.program.read_later) - ENVELOPE

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        return {self.name: produced(self.program.definition, self.program.leaves.leaves)}

    @cached_property
    def relevant(self) -> Expr | None:
        """An event that no leaf can hold changes nothing."""
        distinct = tuple(dict.fromkeys(leaf.test for leaf in self.program.leaves.leaves))
        if Literal(True) in distinct:
            return None
        return Or(distinct) if len(distinct) > 1 else distinct[0] if distinct else Literal(False)

    @cached_property
    def partition(self) -> tuple[str, ...] | None:
        return partition(self.program.definition)

    @property
    def timed(self) -> bool:
        return bool(self.program.timings)

    @property
    def rests(self) -> bool:
        return not self.sides

    def takes_arrivals(self, delay: int) -> bool:
        """No timer may be due already when it is set."""
        timings = self.program.timings
        return not self._interpreted and all(isinstance(t.time, Duration) and t.time.microseconds > delay for t in timings)

    @cached_property
    def _reasons(self) -> tuple[str, ...]:
        return tuple(reasons(self.program))

    @cached_property
    def _kernel(self) -> Any:
        from coincide.detection.automaton.kernel import Kernel

        return Kernel(self.program)

    @property
    def form(self) -> object | None:
        from coincide.detection.automaton.forms import form_of

        return None if self._interpreted or self.tier_reasons() else form_of(self.program)

    @staticmethod
    def together(plans: Sequence[AutomatonPlan]) -> Family:
        from coincide.detection.automaton.families import Family

        return Family(plans)

    def initial(self) -> State:
        return DetectorState.fresh(len(self.program.automata)) if self._interpreted else self._kernel.fresh()

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        if not self._interpreted:
            result: tuple[State, EventBatch] = self._kernel.step(state, batch, clock)
            return result
        interpreter = Interpreter(self.program, state)
        if self.sides and len(batch):
            first, on_item = EventBatch(batch.events[:1]), interpreter.on_item
            return state, step_eventwise(
                first, clock, state.timers, lambda _, cause: on_item(batch.events, cause), interpreter.on_timer
            )
        return state, step_eventwise(batch, clock, state.timers, interpreter.on_event, interpreter.on_timer)

    def encode(self, state: State) -> dict[str, bytes]:
        from coincide.detection.automaton.objects import relations_of
        from coincide.detection.columns.codec import encode

        relations = relations_of(self.program, state) if self._interpreted else self._kernel.relations(state)
        return with_tables(self.detector, encode(relations))

    def decode(self, parts: Mapping[str, bytes]) -> State:
        data, tables = self.detector.part_of(parts), tables_of(self.detector, parts)
        if data is None:
            return self.initial()
        if tables is None:
            objects = encoding.decode(self.program, data)
            return objects if self._interpreted else self._kernel.taken_up(objects)
        from coincide.detection.automaton.objects import objects_of
        from coincide.detection.automaton.relations import read

        relations = read(self.program, *tables)
        return objects_of(self.program, relations) if self._interpreted else self._kernel.loaded(relations)

    def tells_changes(self, state: State) -> bool:
        return not isinstance(state, DetectorState)

    def changes(self, state: State, everything: bool = False) -> Changes:
        from coincide.detection.automaton.storage import changes

        return changes_of(self.detector, *changes(state, everything))

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for assignment, instance in state.instances.items():
            key = tuple(value for _, value in sorted(assignment, key=itemgetter(0)))
            for run in (run for runs in instance.runs for some in runs.values() for run in some.values()):
                events, dues = run.match.events, [timer.due for timer in run.timers]
                since = min((event.lo for event in events), default=None)
                what = f"{counted(len(events), 'event')} matched"
                yield Unfinished(self.name, key, what, since, min(dues, default=None), united_origin(events))


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    return [AutomatonPlan(detector) for detector in detectors]
