"""A group of situations as tables of numbers for the compiled loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coincide.detect.situation import kernel_loop as loop
from coincide.detect.situation.kernel_pick import OPS, PER_OP
from coincide.detect.situation.program import Group, SituationProgram
from coincide.detect.situation.support import comparison, conjuncts
from coincide.expr.compiled import aliases_of, without_aliases
from coincide.expr.tree import Expr
from coincide.lang.amit.names import OPERAND

KINDS = {"all": 0, "sequence": 1, "atleast": 2, "atmost": 3, "nth": 4, "not": 5}
QUANTIFIERS = {"each": 0, "first": 1, "last": 2}
COMPARISONS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5, "holds": 6}


class Program:
    """The tables, and what the columns are that conditions across operands compare."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.events = list(group.readers)
        self.operands = [(s, number) for s in group.situations for number in range(len(s.operands))]
        self.leaves: dict[tuple[str, Expr], int] = {}  # (event type, tree about one event) → column
        self.record_width = OPS + PER_OP * max(len(s.operands) for s in group.situations)
        self.tables = self._tables()

    def _tables(self) -> loop.Tables:
        group, situations = self.group, self.group.situations
        lifespans = [x.definition for x in group.lifespans]
        starts, conjuncts = self._conjuncts()
        operands = [s.operands[number].definition for s, number in self.operands]
        readers = [group.readers[event] for event in self.events]
        return loop.Tables(
            _numbers(0 if x.expiration is None else x.expiration.interval for x in lifespans),
            _numbers(x.expiration is not None and x.expiration.termination == "discard" for x in lifespans),
            _matrix([[i.correlate == "add" for i in x.initiators] for x in lifespans]),
            _matrix([[QUANTIFIERS[t.quantifier] for t in x.terminators] for x in lifespans]),
            _matrix([[t.termination == "discard" for t in x.terminators] for x in lifespans]),
            *_ragged([[s.number for s in x.situations] for x in group.lifespans]),
            _numbers(KINDS[s.kind] for s in situations),
            _numbers(s.operator.mode == "deferred" for s in situations),
            _numbers(s.operator.repeat == "once" and s.kind in ("all", "sequence", "atleast", "nth") for s in situations),
            _numbers(s.operator.quantity for s in situations),
            _numbers(s.lifespan for s in situations),
            _starts([len(s.operands) for s in situations]),
            _numbers(s.local_key.size > 0 for s in situations),
            _numbers(s.operator.counting for s in situations),
            _numbers(QUANTIFIERS[o.quantifier] for o in operands),
            _numbers(o.strict for o in operands),
            _numbers(o.weight if o.counted else 0 for o in operands),
            starts,
            conjuncts,
            *_ragged([[x.number for x in r.lifespans] for r in readers]),
            *_ragged([[s.number for s in r.situations] for r in readers]),
        )

    def _conjuncts(self) -> tuple[Any, Any]:
        """By operand: what can be tested as soon as it is chosen."""
        found: list[list[tuple[int, ...]]] = [[] for _ in self.operands]
        first = 0
        for situation in self.group.situations:
            for part in conjuncts(situation):
                compared = comparison(part)
                assert compared is not None
                code, left, right = compared
                sides = [self._side(situation, left), self._side(situation, left if right is None else right)]
                last = max(operand for operand, _ in sides)
                found[first + last].append((COMPARISONS[code], *sides[0], *sides[1]))
            first += len(situation.operands)
        flat = [conjunct for some in found for conjunct in some]
        return _starts([len(some) for some in found]), np.array(flat, np.int64).reshape(-1, 5)

    def _side(self, situation: SituationProgram, tree: Expr) -> tuple[int, int]:
        """The operand that a side is about, and the column of its values."""
        (alias,) = aliases_of(tree)
        assert alias is not None
        operand = int(alias.removeprefix(OPERAND))
        leaf = situation.operands[operand].event, without_aliases(tree)
        return operand, self.leaves.setdefault(leaf, len(self.leaves))


def _numbers(values: Iterable[int]) -> Any:
    return np.array([int(v) for v in values], np.int64)


def _starts(sizes: Sequence[int]) -> Any:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _ragged(lists: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    return _starts([len(some) for some in lists]), _numbers(v for some in lists for v in some)


def _matrix(lists: Sequence[Sequence[int]]) -> Any:
    """Rows of one length, the longest; what is added is never asked for, as masks have no bit for it."""
    out = np.zeros((len(lists), max((len(some) for some in lists), default=0)), np.int64)
    for row, some in enumerate(lists):
        out[row, : len(some)] = some
    return out
