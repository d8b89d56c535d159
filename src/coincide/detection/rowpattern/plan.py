"""A row pattern query as a plan: the contract that engines know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from coincide.detection.base import Attributes, Changes, Detector, DetectorPlan, PlanOfOne, State, Unfinished
from coincide.detection.keys import key_part
from coincide.detection.parts import changes_of, tables_of, with_tables
from coincide.detection.rowpattern import state as states
from coincide.detection.rowpattern.interpreter import Interpreter
from coincide.detection.rowpattern.partition import Program
from coincide.detection.rowpattern.produces import example
from coincide.detection.rowpattern.search import STEPS
from coincide.expr.guards import guards
from coincide.expr.quantities import counted
from coincide.expr.tree import Compare, Expr, In, Literal, Reference
from coincide.lang.matchrecognize.definition import Clause, Query
from coincide.lang.matchrecognize.functions import lowered
from coincide.model.event import ENVELOPE, united_origin
from coincide.syntax import walk


@dataclass(frozen=True)
class RowPatternPlan(PlanOfOne):
    """One query."""

    LOOP: ClassVar[str] = "coincide.detection.rowpattern.loop"
    stores_due: ClassVar[bool] = True
    steps: int = STEPS

    @property
    def _query(self) -> Query:
        query: Query = self.detector.definition
        return query

    @property
    def _clause(self) -> Clause:
        return self._query.clause

    @cached_property
    def columns(self) -> frozenset[str] | None:
        """ALL ROWS with `*` gives all columns of its rows out."""
        if self._clause.all_rows and self._query.items is None:
            return None
        trees: list[Expr] = [*self.program.measures.trees.values()]
        trees += [test.tree for test in self.program.conditions.tests if test is not None]
        trees += [] if self._query.source.where is None else [self._query.source.where]
        names = _names(trees)
        if self._clause.all_rows:
            outer = [item.value for item in self._query.items or ()] + ([self._query.where] if self._query.where else [])
            names |= _names(outer) - set(self.program.measures.trees)
        names |= {c.name for c in self._clause.partition} | {k.name for k in self._clause.order}
        return frozenset(names) - ENVELOPE

    @cached_property
    def envelope(self) -> frozenset[str]:
        return frozenset({"source"})

    @cached_property
    def makes(self) -> dict[str, Attributes]:
        made: dict[str, Expr] = {column.name: Reference(column.name) for column in self._clause.partition}
        made |= {name: example(tree) for name, tree in self.program.measures.trees.items()}
        if self._query.items is not None:
            made = {item.name: example(lowered(item.value), made) for item in self._query.items}
        return {self.name: {name: (tree,) for name, tree in made.items()}}

    @property
    def passes_on(self) -> frozenset[str]:
        return self.outputs if self.columns is None else frozenset()

    @cached_property
    def relevant(self) -> Expr | None:
        """Of all events, those types that WHERE asks for."""
        source, kind = self._query.source, Reference("type")
        if source.table != "events":
            return Compare("=", kind, Literal(source.table))
        types = None if source.where is None else guards(lowered(source.where)).get("type")
        return None if types is None else In(kind, tuple(map(Literal, sorted(types))))

    @cached_property
    def timed(self) -> bool:
        return self._clause.within is not None or self._interpreter.known == "after its instant"

    @property
    def rests(self) -> bool:
        """A row that is taken at once tells the time by itself."""
        return not self.timed or self._interpreter.known == "at once"

    @cached_property
    def program(self) -> Program:
        return Program(self.detector, self.steps)

    def with_steps(self, steps: int) -> Self:
        return replace(self, steps=steps)

    @cached_property
    def _interpreter(self) -> Interpreter:
        return Interpreter(self.program)

    @cached_property
    def _kernel(self) -> Any:
        from coincide.detection.rowpattern.kernel import Kernel

        return Kernel(self.program, self._interpreter, self.columns)

    @cached_property
    def _reasons(self) -> tuple[str, ...]:
        if self._query.feeders:
            return ("its table has detections among its rows",)
        if self._query.is_read:
            return ("another query reads its matches, and must be told what it holds back",)
        if self._interpreter.known != "at once":
            return (f"a row is taken {self._interpreter.known}",)
        from coincide.detection.rowpattern.columnar import reasons

        return reasons(self.program)

    def initial(self) -> State:
        return states.State() if self._interpreted else self._kernel.memory(states.State())

    def encode(self, state: State) -> dict[str, bytes]:
        from coincide.detection.rowpattern.memory import from_objects
        from coincide.detection.rowpattern.relations import whole

        if self._interpreted:
            state = from_objects(state, self.columns, self._clause.within, self.program.back)
        return with_tables(self.detector, whole(self._without_clock(state)))

    def _without_clock(self, state: State) -> State:
        """It may be told the time with rows only, and need it for none."""
        needs_time = self.timed or self._interpreter.known != "at once"
        return state if needs_time else replace(state, passed=states.NEVER)

    def tells_changes(self, state: State) -> bool:
        return not self._interpreted

    def changes(self, state: State, everything: bool = False) -> Changes:
        from coincide.detection.rowpattern.relations import changes

        return changes_of(self.detector, *changes(state, everything))

    def decode(self, parts: Mapping[str, bytes]) -> State:
        tables, data = tables_of(self.detector, parts), self.detector.part_of(parts)
        if data is None:
            return self.initial()
        if tables is None:
            state = self._interpreter.restored(states.decode(data, self.program))
            return state if self._interpreted else self._kernel.checked(self._kernel.memory(state))
        from coincide.detection.rowpattern.memory import to_objects
        from coincide.detection.rowpattern.relations import read

        memory = read(self.program, self.columns, *tables)
        return to_objects(memory, self._interpreter) if self._interpreted else self._kernel.checked(memory)

    def unfinished(self, state: State) -> Iterator[Unfinished]:
        for key, partition in state.partitions.items():
            if partition.rows:
                rows, own = partition.rows, tuple(key_part(value) for _, value in key)
                yield Unfinished(self.name, own, f"{counted(len(rows), 'row')} kept", rows[0].lo, origin=united_origin(rows))


def _names(trees: Sequence[Expr]) -> set[str]:
    return {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}


def plans(detectors: Sequence[Detector]) -> list[DetectorPlan]:
    return [RowPatternPlan(detector) for detector in detectors]
