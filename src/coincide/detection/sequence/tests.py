"""The tests of all rules, each once and known by its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from coincide.detection.sequence.patterns import Patterns
from coincide.detection.sequence.values import Holds, condition, patterns_of
from coincide.expr.tree import And, Compare, Expr, Not, Or, Reference
from coincide.lang.eql.definition import Among, Filter, Matching, Query
from coincide.syntax import walk


@dataclass(frozen=True, eq=False)
class Test:
    """A condition; what `and`, `or`, `not` join are its members."""

    number: int
    tree: Expr
    members: tuple[Test, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The fields that it reads."""
        return tuple(sorted({node.name for node in walk(self.tree) if isinstance(node, Reference)}))

    @cached_property
    def holds(self) -> Holds:
        return condition(self.tree)


@dataclass(frozen=True, eq=False)
class Kind:
    """Events of a category (None: any primitive ones) that pass a test."""

    number: int
    category: str | None
    test: Test


class Tests:
    """Of these queries."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = queries
        self._tests: dict[Expr, Test] = {}
        self._kinds: dict[Filter, Kind] = {}

    def kind(self, found: Filter) -> Kind:
        if found not in self._kinds:
            self._kinds[found] = Kind(len(self._kinds), found.category, self.test(found.condition))
        return self._kinds[found]

    def test(self, tree: Expr) -> Test:
        made = self._tests.get(tree)
        if made is None:
            members = tuple(self.test(member) for member in _members(tree))
            made = self._tests[tree] = Test(len(self._tests), tree, members)
        return made

    @cached_property
    def patterns(self) -> dict[tuple[str, bool], Patterns]:
        """All that are held against a field, by its name and whether case does not matter."""
        found: dict[tuple[str, bool], dict[str, None]] = {}
        for tree in (tree for query in self._queries for tree in query.trees()):
            for node in walk(tree):
                if isinstance(node, Matching) and isinstance(node.operand, Reference) and not node.is_regular:
                    found.setdefault((node.operand.name, node.any_case), {}).update(dict.fromkeys(patterns_of(node)))
        return {key: Patterns(patterns) for key, patterns in found.items()}


def _members(tree: Expr) -> tuple[Expr, ...]:
    match tree:
        case And(operands=operands) | Or(operands=operands):
            return operands
        case Not(operand=operand):
            return (operand,)
        case Compare(op="!="):
            return (replace(tree, op="="),)
        case Among(negated=True):
            return (replace(tree, negated=False),)
    return ()
