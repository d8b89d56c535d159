"""Measures: expressions over the labels of a match."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from coincide.detection.rowpattern.aggregates import FOLDS
from coincide.detection.rowpattern.automaton import Automaton
from coincide.detection.rowpattern.conditions import Rows
from coincide.detection.rowpattern.expressions import FACTS, AtRow, Compiler, Folded, Lookup, RowCompiler, leaves_of, lookups
from coincide.expr.scalar import Evaluate
from coincide.expr.tree import Expr
from coincide.lang.matchrecognize.definition import Clause, MatchFact
from coincide.model.event import Value


class Match:
    """A match, an empty one or what there was of one when its time was out: `labels[i]` is the variable of row `start` + i."""

    def __init__(
        self, rows: Rows, start: int, states: Sequence[int], automaton: Automaton, number: int | None, timed_out: bool = False
    ) -> None:
        self.rows = rows
        self.start = start
        self.states = states
        self.labels = [automaton.states[state].variable for state in states]
        self.hidden = [automaton.states[state].hidden for state in states]
        self.number = number
        self.timed_out = timed_out
        self.current = len(states) - 1  # the row shown
        self._positions: dict[frozenset[int], list[int]] = {}
        self._folds: dict[int, tuple[list[Any], list[Value]]] = {}

    @property
    def end(self) -> int:
        """After its last row."""
        return self.start + len(self.labels)

    @property
    def rowtime(self) -> int | None:
        return self.rows.row(self.end - 1).hi if self.labels else None

    def positions(self, members: frozenset[int]) -> list[int]:
        """Which rows have one of these labels, counted from the start."""
        found = self._positions.get(members)
        if found is None:
            found = self._positions[members] = [n for n, label in enumerate(self.labels) if label in members]
        return found

    def visible(self, members: frozenset[int], final: bool) -> int:
        """How many of them are visible."""
        found = self.positions(members)
        return len(found) if final else bisect_right(found, self.current)

    def locate(self, node: Lookup) -> int | None:
        """The row that a lookup starts from, counted from the start."""
        count = self.visible(node.members, node.final)
        if node.back >= count:
            return None
        return self.positions(node.members)[node.back if node.first else count - 1 - node.back]

    def fold(self, key: int, node: Folded, operands: Sequence[Evaluate], names: Sequence[str]) -> Value:
        """An aggregate over the visible rows; each row is taken in once."""
        function = FOLDS[node.function]
        totals, results = self._folds.setdefault(key, ([function.start], [function.result(function.start)]))
        positions, count = self.positions(node.members), self.visible(node.members, node.final)
        while len(totals) <= count:
            position = positions[len(totals) - 1]
            at = AtRow(self.rows.row(self.start + position), names[self.labels[position]], self)
            totals.append(function.add(totals[-1], *(operand(at) for operand in operands)))
            results.append(function.result(totals[-1]))
        return results[count]


class Measures:
    """The measures of a clause, by name."""

    def __init__(self, clause: Clause) -> None:
        self.trees: dict[str, Expr] = {m.name: lookups(m.value, clause) for m in clause.measures}
        leaves = [leaf for tree in self.trees.values() for leaf in leaves_of(tree)]
        self._ahead = [leaf for leaf in leaves if isinstance(leaf, Lookup) and leaf.shift > 0]
        self.back = max((-leaf.shift for leaf in leaves if isinstance(leaf, Lookup)), default=0)
        compiler = _MeasureCompiler(clause.variables)
        self._evaluate: dict[str, Callable[[Match], Value]] = {name: compiler.compile(t) for name, t in self.trees.items()}

    def asks(self, match: Match) -> int:
        """The last row that NEXT asks for, of the row shown; -1: none."""
        wanted = -1
        for node in self._ahead:
            position = match.locate(node)
            if position is not None:
                wanted = max(wanted, match.start + position + node.shift)
        return wanted

    @property
    def look_ahead(self) -> int:
        return max((leaf.shift for leaf in self._ahead), default=0)

    def values(self, match: Match) -> dict[str, Value]:
        return {name: evaluate(match) for name, evaluate in self._evaluate.items()}


class _MeasureCompiler(Compiler):
    """The environment is a Match."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names

    def _lookup(self, node: Lookup) -> Evaluate:
        operand, names = RowCompiler().compile(node.operand), self.names

        def evaluate(match: Match) -> Value:
            found = match.locate(node)
            if found is None:
                return None
            position = found + node.shift
            row = match.start + position
            if not 0 <= row < match.rows.count:
                return None
            label = names[match.labels[position]] if 0 <= position < len(match.labels) else None
            return operand(AtRow(match.rows.row(row), label, match))

        return evaluate

    def _folded(self, node: Folded) -> Evaluate:
        operands, names, key = [RowCompiler().compile(o) for o in node.operands], self.names, id(node)
        return lambda match: match.fold(key, node, operands, names)

    def _matchfact(self, node: MatchFact) -> Evaluate:
        return FACTS[node.function]
