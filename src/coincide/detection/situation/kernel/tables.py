"""A group of situations as tables of numbers for the compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.operators import Behaviour
from coincide.detection.situation.program import Group, SituationProgram
from coincide.detection.situation.quantifiers import QUANTIFIERS, Quantifier
from coincide.detection.situation.support import comparison, conjuncts
from coincide.expr.tree import Expr, aliases_of, without_aliases
from coincide.lang.amit.names import OPERAND

MODES = {"immediate": at.IMMEDIATE, "deferred": at.DEFERRED, "delayed": at.DELAYED}
CORRELATIONS = {"add": at.ADD, "ignore": at.IGNORE, "replace": at.REPLACE}
COMPARISONS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5, "holds": 6}
COMBINATIONS = {"": 0, "+": 1, "-": 2}


class Index(NamedTuple):
    """Candidates of an operand by a value, for events of another operand with theirs; values by columns."""

    operand: int
    column: int
    other: int
    other_column: int


class Program:
    """The tables (kernel/layout.py), and what the columns are that conditions across operands compare."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.events = list(group.readers)
        self.operand_list = [(s, number) for s in group.situations for number in range(len(s.operands))]
        self.first_operand = _starts([len(s.operands) for s in group.situations]).tolist()
        self.leaves: dict[tuple[str, Expr], int] = {}  # (event type, tree about one event) → column
        self.indexes: list[Index] = []
        self.most_operands = max(len(s.operands) for s in group.situations)
        self.among = _among(group)
        self.most_cells = 1 + max(self.among)
        self.lifespans = self._lifespans()
        self.roles = self._roles()
        self.situations = self._situations()
        self.operands, self.conjuncts = self._operands()
        readers = [group.readers[event] for event in self.events]
        lists = [[x.number for x in r.lifespans] for r in readers] + [[s.number for s in r.situations] for r in readers]
        lists += [[s.number for s in x.situations] for x in group.lifespans]
        self.lists = np.array([number for some in lists for number in some], np.int64)
        self.list_starts = _starts([len(some) for some in lists])

    @property
    def ordered(self) -> bool:
        """Are values compared by what is less?"""
        return bool((self.conjuncts[:, at.CONJUNCT.comparison] >= COMPARISONS["<"]).any())

    def _lifespans(self) -> Any:
        """What a state counts is 0 here."""
        found = [x.definition.expiration for x in self.group.lifespans]
        rows = [(0, 0) if e is None else (e.interval, e.termination == "discard") for e in found]
        return _matrix([(*row, -1, -1, 0, 0, x.order) for row, x in zip(rows, self.group.lifespans, strict=True)])

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
            self.first_operand[s.number], len(s.operands), 0, 0,
            operator.interval, CORRELATIONS[operator.correlate], -1, -1, s.order, behaviour.repeated, self.among[s.number],
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
        compared = comparison(part)
        assert compared is not None
        left, right = self._side(situation, compared.left), self._side(situation, compared.right)
        last = max(left[0], right[0])
        constant = self._column(situation, last, compared.constant) if compared.constant is not None else 0
        indexed = compared.op == "=" and not compared.combination and left[0] != right[0]
        indexes = (self._index(situation, left, right), self._index(situation, right, left)) if indexed else (-1, -1)
        return last, (COMPARISONS[compared.op], *left, *right, COMBINATIONS[compared.combination], constant, *indexes)

    def _index(self, situation: SituationProgram, own: tuple[int, int], other: tuple[int, int]) -> int:
        first = self.first_operand[situation.number]
        self.indexes.append(Index(first + own[0], own[1], first + other[0], other[1]))
        return len(self.indexes) - 1

    def _side(self, situation: SituationProgram, tree: Expr) -> tuple[int, int]:
        """The operand that a side is about, and the column of its values."""
        (alias,) = aliases_of(tree)
        assert alias is not None
        operand = int(alias.removeprefix(OPERAND))
        return operand, self._column(situation, operand, without_aliases(tree))

    def _column(self, situation: SituationProgram, operand: int, tree: Expr) -> int:
        return self.leaves.setdefault((situation.operands[operand].event, tree), len(self.leaves))


def _among(group: Group) -> list[int]:
    """The number of each situation among those of its lifespan that have no local key; -1: it has one."""
    found = []
    for situation in group.situations:
        others = [s.number for s in group.lifespans[situation.lifespan].situations if not s.local_key.size]
        found.append(others.index(situation.number) if situation.number in others else -1)
    return found


def _number(named: Behaviour | Quantifier) -> int:
    """What the loop calls it."""
    number: int = getattr(at, named.kernel)
    return number


def _starts(sizes: Sequence[int]) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _matrix(rows: Sequence[Sequence[int]]) -> Any:
    return np.array(rows, np.int64)
