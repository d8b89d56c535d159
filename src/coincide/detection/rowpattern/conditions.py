"""Conditions of DEFINE, and the registers that they read.

A condition sees the row under test already mapped. What it can read of the rows before is kept in *registers*, one tuple for a
path: the last or first rows of some variables, what an aggregate has taken in, or all labels. Two paths that have come to the
same state with equal registers are the same to every condition that may still be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from coincide.detection.rowpattern.aggregates import FOLDS
from coincide.detection.rowpattern.expressions import (
    FACTS,
    AtRow,
    Compiler,
    Folded,
    Lookup,
    RowCompiler,
    leaves_of,
    lookups,
    reads_labels,
)
from coincide.expr.scalar import Evaluate
from coincide.expr.tree import Expr
from coincide.lang.matchrecognize.definition import Clause, MatchFact
from coincide.model.event import Event, Value
from coincide.syntax import walk

Registers = tuple[Any, ...]
Locate = Callable[["Trial"], tuple[int, int | None] | None]
"""The row that a lookup comes to, and the variable that it is mapped to; None: there is none."""


class Rows(Protocol):
    """The rows of a partition that are there, by their numbers."""

    @property
    def count(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def row(self, number: int) -> Event: ...


class Trial:
    """A variable tried on a row."""

    __slots__ = ("number", "position", "registers", "rows", "rowtime", "variable")
    timed_out = None

    def __init__(self, rows: Rows, number: int) -> None:
        self.rows = rows
        self.number = number
        self.position = 0
        self.variable = 0
        self.registers: Registers = ()
        self.rowtime = 0


@dataclass(frozen=True)
class RowRegister:
    """The first or last rows of some variables, each with its label where that is read."""

    members: frozenset[int]
    first: bool
    back: int
    labelled: bool

    start: Any = ()

    def taken(self, stored: Any, trial: Trial, event: Event) -> Any:
        if trial.variable not in self.members or (self.first and len(stored) > self.back):
            return stored
        added = (*stored, (trial.position, trial.variable if self.labelled else None))
        return added if self.first else added[-1 - self.back :]

    def locate(self, stored: Any, back: int) -> tuple[int, int | None] | None:
        if len(stored) <= back:
            return None
        found: tuple[int, int | None] = stored[back] if self.first else stored[-1 - back]
        return found


@dataclass(frozen=True)
class FoldRegister:
    """What an aggregate has taken in."""

    node: Folded
    names: tuple[str, ...]

    @property
    def start(self) -> Any:
        return FOLDS[self.node.function].start

    @cached_property
    def _operands(self) -> list[Evaluate]:
        return [RowCompiler().compile(o) for o in self.node.operands]

    def taken(self, stored: Any, trial: Trial, event: Event) -> Any:
        if trial.variable not in self.node.members:
            return stored
        at = AtRow(event, self.names[trial.variable], trial)
        return FOLDS[self.node.function].add(stored, *(operand(at) for operand in self._operands))


@dataclass(frozen=True)
class TraceRegister:
    """All labels, for conditions that read the label of a neighbour of a row."""

    start: Any = ()

    def taken(self, stored: Any, trial: Trial, event: Event) -> Any:
        return (*stored, trial.variable)


Register = RowRegister | FoldRegister | TraceRegister


class Conditions:
    """The conditions of a clause by number of variable, and all their registers."""

    def __init__(self, clause: Clause) -> None:
        self.names = clause.variables
        self.registers: list[Register] = []
        self._numbers: dict[Register, int] = {}
        self.tests: list[Condition | None] = [None] * len(self.names)
        for condition in clause.conditions:
            variable = self.names.index(condition.variable)
            self.tests[variable] = Condition(self, variable, lookups(condition.test, clause))
        self.start: Registers = tuple(register.start for register in self.registers)

    @cached_property
    def uses_number(self) -> bool:
        return any(test is not None and test.uses_number for test in self.tests)

    @cached_property
    def back(self) -> int:
        """So many rows before the first of a match may be read."""
        return max((test.back for test in self.tests if test is not None), default=0)

    def register(self, register: Register) -> int:
        if register not in self._numbers:
            self._numbers[register] = len(self.registers)
            self.registers.append(register)
        return self._numbers[register]

    def taken(self, registers: Registers, trial: Trial, event: Event) -> Registers:
        return tuple(r.taken(stored, trial, event) for r, stored in zip(self.registers, registers, strict=True))

    def read_by(self, variables: frozenset[int]) -> tuple[int, ...]:
        """The registers that the conditions of these variables read."""
        read = (self.tests[v] for v in variables)
        return tuple(sorted({number for test in read if test is not None for number in test.registers}))


class Condition:
    """The condition of one variable."""

    def __init__(self, conditions: Conditions, variable: int, tree: Expr) -> None:
        self.tree = tree
        self.variable = variable
        self.registers: set[int] = set()
        self._conditions = conditions
        self.leaves = list(leaves_of(tree))
        self._asks = [(self._locate(leaf), leaf.shift) for leaf in self.leaves if isinstance(leaf, Lookup) and leaf.shift > 0]
        self._test = _ConditionCompiler(self).compile(tree)
        facts = [node for node in walk(tree) if isinstance(node, MatchFact)]
        self.uses_number = any(fact.function == "MATCH_NUMBER" for fact in facts)
        self.back = max((-leaf.shift for leaf in self.leaves if isinstance(leaf, Lookup)), default=0)

    @property
    def is_path_free(self) -> bool:
        return not self.registers

    def is_local(self, leaf: Lookup) -> bool:
        """Does it start from the row under test?"""
        return not leaf.first and leaf.back == 0 and self.variable in leaf.members

    def is_decidable(self, trial: Trial) -> bool:
        """Are all rows there that NEXT asks for?"""
        if trial.rows.closed:
            return True
        for locate, shift in self._asks:
            found = locate(trial)
            if found is not None and found[0] + shift >= trial.rows.count:
                return False
        return True

    def holds(self, trial: Trial) -> bool:
        return self._test(trial) is True

    def _locate(self, leaf: Lookup) -> Locate:
        if self.is_local(leaf):
            return lambda trial: (trial.position, trial.variable)
        labelled = reads_labels(leaf.operand) and leaf.shift == 0
        register = RowRegister(leaf.members, leaf.first, leaf.back, labelled)
        number, back = self._use(register), leaf.back
        return lambda trial: register.locate(trial.registers[number], back)

    def _use(self, register: Register) -> int:
        number = self._conditions.register(register)
        self.registers.add(number)
        return number

    def lookup(self, leaf: Lookup) -> Evaluate:
        locate, operand, shift = self._locate(leaf), RowCompiler().compile(leaf.operand), leaf.shift
        label = self._label_of(leaf)

        def evaluate(trial: Trial) -> Value:
            found = locate(trial)
            if found is None:
                return None
            position = found[0] + shift
            if not 0 <= position < trial.rows.count:
                return None
            return operand(AtRow(trial.rows.row(position), label(trial, position, found[1]), trial))

        return evaluate

    def _label_of(self, leaf: Lookup) -> Callable[[Trial, int, int | None], str | None]:
        names = self._conditions.names
        if not reads_labels(leaf.operand):
            return lambda trial, position, variable: None
        if leaf.shift == 0:
            return lambda trial, position, variable: None if variable is None else names[variable]
        number = self._use(TraceRegister())

        def neighbour(trial: Trial, position: int, variable: int | None) -> str | None:
            """Labels beyond the current row are unknown while matching."""
            trace = trial.registers[number]
            back = trial.position - position
            return names[trace[-1 - back]] if 0 <= back < len(trace) else None

        return neighbour

    def folded(self, leaf: Folded) -> Evaluate:
        number = self._use(FoldRegister(leaf, self._conditions.names))
        result = FOLDS[leaf.function].result
        return lambda trial: result(trial.registers[number])


class _ConditionCompiler(Compiler):
    """The environment is a Trial."""

    def __init__(self, condition: Condition) -> None:
        super().__init__()
        self.condition = condition

    def _lookup(self, node: Lookup) -> Evaluate:
        return self.condition.lookup(node)

    def _folded(self, node: Folded) -> Evaluate:
        return self.condition.folded(node)

    def _matchfact(self, node: MatchFact) -> Evaluate:
        return FACTS[node.function]
