"""A group of situations as tables of numbers for the compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.detection.base import Detector
from coincide.detection.columns import operations as ops
from coincide.detection.situation.conditions import Comparison, Computation, Leaf, Step, conjuncts, operand_of, tested
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.computing import COMPUTED
from coincide.detection.situation.operators import Behaviour
from coincide.detection.situation.program import Group, SituationProgram
from coincide.detection.situation.quantifiers import QUANTIFIERS, Quantifier
from coincide.expr.tree import Expr, Literal, without_aliases
from coincide.lang.amit.definition import Initiator, Terminator
from coincide.lang.amit.names import INITIATOR, OPERAND, TERMINATOR
from coincide.model.column import Column, column_of

MODES = {"immediate": at.IMMEDIATE, "deferred": at.DEFERRED, "delayed": at.DELAYED}
CORRELATIONS = {"add": at.ADD, "ignore": at.IGNORE, "replace": at.REPLACE}
COMPARISONS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5, "holds": 6}
COMBINATIONS = {"": 0, "+": 1, "-": 2}
OPERATIONS = {
    **ops.OF_TWO,
    "and": ops.OP_AND,
    "or": ops.OP_OR,
    "not": ops.OP_NOT,
    "negate": ops.OP_NEGATE,
    "abs": ops.OP_ABSOLUTE,
    "is null": ops.OP_IS_NULL,
    "is not null": ops.OP_IS_NOT_NULL,
    "now": at.CLOCK,
    "order": at.ORDER,
}


class Index(NamedTuple):
    """Candidates of an operand by a value, for events of another operand with theirs; values by columns."""

    operand: int
    column: int
    other: int
    other_column: int


class Told(NamedTuple):
    """What detections tell of their situations, by these: names, their orders and those of their lifespans, whether they are
    hidden."""

    names: pa.Array
    orders: Any
    lifespans: Any
    internal: Any


class Program:
    """The tables (kernel/layout.py), and what the columns are that conditions across operands compare."""

    def __init__(self, group: Group, detectors: Sequence[Detector] = ()) -> None:
        """`detectors` are those of one form that are stepped as one, in place of the only one in the group."""
        self.group = group
        self.shared = bool(detectors)
        self.detectors = detectors or group.detectors
        self.events = list(group.readers)
        self.operand_list = [(s, number) for s in group.situations for number in range(len(s.operands))]
        self.first_operand = _starts([len(s.operands) for s in group.situations]).tolist()
        self.leaves: dict[tuple[str, Expr, str], int] = {}  # event type, tree about one event, kind (conditions.py) → column
        self.ordered = False  # are values compared by what is less?
        self.instruction_list: list[tuple[int, int, int, int]] = []
        self.constant_list: list[float] = [np.nan]
        self.indexes: list[Index] = []
        self.most_operands, self.most_cells, self.among = group.most_operands, group.most_cells, group.among
        self.lifespans = self._lifespans()
        self.roles = self._roles()
        self.situations = self._situations()
        self.operands, self.conjuncts = self._operands()
        self.instructions = _matrix(self.instruction_list).reshape(-1, 4)
        self.constants = np.array(self.constant_list)
        readers = [group.readers[event] for event in self.events]
        lists = [[x.number for x in r.lifespans] for r in readers] + [[s.number for s in r.situations] for r in readers]
        lists += [[s.number for s in x.situations] for x in group.lifespans]
        self.lists = np.array([number for some in lists for number in some], np.int64)
        self.list_starts = _starts([len(some) for some in lists])

    @cached_property
    def told(self) -> Told:
        definitions = [detector.definition for detector in self.detectors]
        return Told(
            pa.array([definition.name for definition in definitions], pa.string()),
            np.array([detector.order for detector in self.detectors], np.int64),
            np.array([definition.lifespan_number for definition in definitions], np.int64),
            np.array([definition.situation.internal for definition in definitions]),
        )

    @cached_property
    def told_constants(self) -> dict[str, Column]:
        """Attributes that are constants in all situations of a form."""
        if not self.shared:
            return {}
        attributes = [detector.definition.situation.attributes for detector in self.detectors]
        constants = [{a.name: a.expression.value for a in some if isinstance(a.expression, Literal)} for some in attributes]
        return {name: column_of([some[name] for some in constants]) for name in constants[0]}

    def _lifespans(self) -> Any:
        found = [x.definition.expiration for x in self.group.lifespans]
        rows = [(0, 0) if e is None else (e.interval, e.termination == "discard") for e in found]
        return _matrix([(*row, -1, -1, x.order) for row, x in zip(rows, self.group.lifespans, strict=True)])

    def _roles(self) -> Any:
        lifespans = [x.definition for x in self.group.lifespans]
        width = max(max(len(x.initiators), len(x.terminators)) for x in lifespans)
        roles = np.zeros((len(lifespans), 3, width), np.int64)
        for d, x in enumerate(lifespans):
            roles[d, 0, : len(x.initiators)] = [i.correlate == "add" for i in x.initiators]
            roles[d, 1, : len(x.terminators)] = [_number(QUANTIFIERS[t.quantifier]) for t in x.terminators]
            roles[d, 2, : len(x.terminators)] = [t.termination == "discard" for t in x.terminators]
        return roles

    def _situations(self) -> Any:
        return _matrix([self._situation(s) for s in self.group.situations])

    def _situation(self, s: SituationProgram) -> tuple[int, ...]:
        operator, behaviour = s.operator, s.behaviour
        once = operator.repeat == "once" and behaviour.repeated
        return (
            _number(behaviour), MODES[operator.mode], once, operator.quantity, s.lifespan, s.local_key.size > 0, behaviour.counts,
            self.first_operand[s.number], len(s.operands), operator.interval, CORRELATIONS[operator.correlate], -1, -1, s.order,
            behaviour.repeated, self.among[s.number], operator.where is not None,
        )  # fmt: skip

    def _operands(self) -> tuple[Any, Any]:
        """The operands, and by operand what can be tested as soon as it is chosen."""
        found: list[list[tuple[int, ...]]] = [[] for _ in self.operand_list]
        for situation in self.group.situations:
            for part in conjuncts(situation.resolved):
                last, conjunct = self._conjunct(situation, part)
                found[self.first_operand[situation.number] + last].append(conjunct)
        ends = _starts([len(some) for some in found]).tolist()
        rows = []
        for o, (situation, number) in enumerate(self.operand_list):
            operand = situation.operands[number]
            d, quantifier = operand.definition, _number(operand.quantifier)
            flag = number in situation.flag_operands
            rows.append((quantifier, d.strict, d.weight if d.counted else 0, ends[o], ends[o + 1], flag))
        flat = [conjunct for some in found for conjunct in some]
        return _matrix(rows).reshape(-1, at.OPERAND.width), _matrix(flat).reshape(-1, at.CONJUNCT.width)

    def _conjunct(self, situation: SituationProgram, part: Expr) -> tuple[int, tuple[int, ...]]:
        test = tested(part)
        assert test is not None
        if isinstance(test, Computation):
            begin = len(self.instruction_list)
            self.instruction_list += [self._instruction(situation, step) for step in test.steps]
            self.ordered |= any(step in ("<", "<=", ">", ">=") for step in test.steps)
            return test.last, (COMPUTED, test.last, begin, test.last, len(self.instruction_list), 0, 0, -1, -1)
        return test.last, self._compared(situation, test)

    def _compared(self, situation: SituationProgram, test: Comparison) -> tuple[int, ...]:
        left, right = ((operand_of(leaf.slot), self._column(situation, leaf)) for leaf in (test.left, test.right))
        self.ordered |= test.op in ("<", "<=", ">", ">=")
        indexed = test.op == "=" and not test.combination and left[0] != right[0]
        indexes = (self._index(situation, left, right), self._index(situation, right, left)) if indexed else (-1, -1)
        constant = self._constant(test.constant)
        return COMPARISONS[test.op], *left, *right, COMBINATIONS[test.combination], constant, *indexes

    def _instruction(self, situation: SituationProgram, step: Step) -> tuple[int, int, int, int]:
        if isinstance(step, str):
            return OPERATIONS[step], 0, 0, 0
        if not isinstance(step, Leaf):
            return at.CONSTANT, self._constant(step), 0, 0
        column = self._column(situation, step)
        if step.slot.startswith(OPERAND):
            return at.CANDIDATE, operand_of(step.slot), column, 0
        mask = sum(1 << number for number, _ in _roles_of(situation, step.slot))
        kind = at.INITIATOR if step.slot.startswith(INITIATOR) else at.TERMINATOR
        return kind, mask, column, self._constant(step.absent)

    def _constant(self, value: float | None) -> int:
        if value is None:
            return 0
        self.constant_list.append(value)
        return len(self.constant_list) - 1

    def _index(self, situation: SituationProgram, own: tuple[int, int], other: tuple[int, int]) -> int:
        first = self.first_operand[situation.number]
        self.indexes.append(Index(first + own[0], own[1], first + other[0], other[1]))
        return len(self.indexes) - 1

    def _column(self, situation: SituationProgram, leaf: Leaf) -> int:
        if leaf.slot.startswith(OPERAND):
            event = situation.operands[operand_of(leaf.slot)].event
        else:
            event = _roles_of(situation, leaf.slot)[0][1]
        return self.leaves.setdefault((event, without_aliases(leaf.tree), leaf.kind), len(self.leaves))


def _roles_of(situation: SituationProgram, slot: str) -> list[tuple[int, str]]:
    """The initiators or terminators that a slot stands for: their numbers, and the types of their events."""
    lifespan, starts = situation.resolved.lifespan, slot.startswith(INITIATOR)
    roles: Sequence[Initiator | Terminator] = lifespan.initiators if starts else lifespan.terminators
    label = slot.removeprefix(INITIATOR if starts else TERMINATOR)
    return [(number, role.event) for number, role in enumerate(roles) if (role.alias or role.event) == label]


def _number(named: Behaviour | Quantifier) -> int:
    """What the loop calls it."""
    number: int = getattr(at, named.kernel)
    return number


def _starts(sizes: Sequence[int]) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _matrix(rows: Sequence[Sequence[int]]) -> Any:
    return np.array(rows, np.int64)
