"""A query of EQL as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from coincide.detection.base import COMPILED, LARGE, Attributes, Changes, Detector, DetectorPlan, PlanOfOne, State, Unfinished
from coincide.detection.parts import changes_of, tables_of, with_tables
from coincide.detection.sequence import state as states
from coincide.detection.sequence.interpreter import Interpreter
from coincide.detection.sequence.program import Program, reasons
from coincide.detection.sequence.relevance import relevance
from coincide.expr.quantities import counted
from coincide.expr.tree import Expr, Literal, Reference
from coincide.lang.eql.definition import FILTER, HIDDEN, TIMESTAMP

SOME = 5_000
"""From so many events on, tests over columns pay: they take some tenths of a second to import."""

ANY_TYPE: tuple[Expr, ...] = (Literal(0.0), Literal(""))
"""Of values that may be numbers or texts."""


@dataclass(frozen=True)
class SequencePlan(PlanOfOne):
    """One query."""

    LOOP: ClassVar[str] = "coincide.detection.sequence.loop"
    reads_sets: ClassVar[bool] = True
    stores_due: ClassVar[bool] = True
    shared: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What plans that read the same batch have in common."""

    @cached_property
    def program(self) -> Program:
        return Program(self.detector)

    @cached_property
    def columns(self) -> frozenset[str]:
        return self.program.columns

    @cached_property
    def envelope(self) -> frozenset[str]:
        return frozenset({"source"})

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        made = {name: (Reference("time" if name == TIMESTAMP else name),) for name in self.program.fields}
        for position, name in enumerate(self.program.key_names, 1):
            if name not in HIDDEN:
                made[name] = ANY_TYPE if name == f"key{position}" else (Reference(name),)  # type: ignore[assignment]
        return {self.name: made}

    @cached_property
    def relevant(self) -> Expr | None:
        return relevance(self.program.items)

    @cached_property
    def timed(self) -> bool:
        return bool(self.program.trailing)

    @property
    def manner(self) -> str:
        query = self.program.query
        if why := reasons(query):
            return f"tests over columns, then event by event, because {'; '.join(why)}"
        return "over columns" if query.kind == FILTER else COMPILED

    @property
    def pays_from(self) -> int:
        return LARGE if self.manner == COMPILED else SOME

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.program)

    @cached_property
    def _kernel(self) -> Any:
        from coincide.detection.sequence.kernel import Kernel
        from coincide.detection.sequence.rowset import SharedRows

        if "rows" not in self.shared:
            self.shared["rows"] = SharedRows(self.shared.get("queries", [self.program.query]))
        return Kernel(self.program, self._interpreter, self.shared["rows"])

    def initial(self) -> State:
        if self._interpreted or not self._kernel.compiled:
            return states.fresh(self.program)
        from coincide.detection.sequence.memory import fresh

        return fresh(self.program)

    def encode(self, state: State) -> dict[str, bytes]:
        from coincide.detection.sequence.relations import whole

        return with_tables(self.detector, whole(self._tables(state)))

    def _tables(self, state: State) -> Any:
        from coincide.detection.sequence.conversion import compiled_state

        return compiled_state(self.program, state) if isinstance(state, states.State) else state

    def tells_changes(self, state: State) -> bool:
        return not isinstance(state, states.State)

    def changes(self, state: State, everything: bool = False) -> Changes:
        from coincide.detection.sequence.relations import changes

        return changes_of(self.detector, *changes(state, everything))

    def decode(self, parts: Mapping[str, bytes]) -> State:
        tables, data = tables_of(self.detector, parts), self.detector.part_of(parts)
        if data is None:
            return self.initial()
        if tables is None:
            return states.decode(self.program, data)
        from coincide.detection.sequence.conversion import interpreted
        from coincide.detection.sequence.relations import read

        memory = read(self.program, *tables)
        return interpreted(self.program, memory) if self._interpreted or not self._kernel.compiled else memory

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for key, own in state.keys.items():
            for stage, pending in enumerate(own.slots, 1):
                if pending is not None:
                    matched = f"{counted(stage, 'event')} matched"
                    yield Unfinished(self.name, key, matched, pending.first, origin=pending.trace.origin)
            for waiting in own.waiting:
                pending, due = waiting.pending, waiting.timer.due
                what = "complete but for what must not come"
                yield Unfinished(self.name, key, what, pending.first, due, pending.trace.origin)
            if traces := [trace for taken in own.taken for _, trace in taken]:
                since, origin = min(trace.lo for trace in traces), {each for trace in traces for each in trace.origin}
                yield Unfinished(self.name, key, f"{counted(len(traces), 'event')} kept", since, origin=tuple(sorted(origin)))


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    shared: dict[str, Any] = {"queries": [detector.definition for detector in detectors]}
    return [SequencePlan(detector, shared=shared) for detector in detectors]
