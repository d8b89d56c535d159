"""Which external events a group of situations can ignore for certain (section 7, "Per event alone")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.detection.situation.operators import BEHAVIOURS
from coincide.expr.functions import FUNCTIONS
from coincide.expr.tree import And, Call, Compare, Expr, IsNull, Literal, Or, Reference
from coincide.lang.amit.definition import Operand
from coincide.lang.amit.resolve import Resolved, trees
from coincide.syntax import walk

SPACE_FUNCTIONS = frozenset({"distance", "zone", "within_box", "within_radius"})
LENIENT = frozenset({"coalesce", "if", "concat", "min", "max"})
"""Functions that can take a value of an undeclared type for what it is, where Amit takes it for null."""


def relevance(situations: Sequence[Resolved]) -> Expr | None:
    """True for every event that may open or close a lifespan, become a candidate or make a partition. None where `source` or
    `space` is read: engines take the test as a sign of what else an event must bring along."""
    if any(_reads_envelope(tree) for s in situations for tree in trees(s.situation, s.lifespan)):
        return None
    tests: dict[str, list[Expr | None]] = {}
    for situation in situations:
        for event, test in _roles(situation):
            tests.setdefault(event, []).append(test)
    options = [_of_type(event, found) for event, found in sorted(tests.items())]
    return options[0] if len(options) == 1 else Or(tuple(options)) if options else Literal(False)


def _reads_envelope(tree: Expr) -> bool:
    return any(
        (isinstance(node, Reference) and node.name == "source") or (isinstance(node, Call) and node.name in SPACE_FUNCTIONS)
        for node in walk(tree)
    )


def _roles(situation: Resolved) -> Iterator[tuple[str, Expr | None]]:
    for role in situation.lifespan.roles:
        yield role.event, role.where
    for operand in situation.operator.operands:
        yield operand.event, _threshold(situation, operand)


def _threshold(situation: Resolved, operand: Operand) -> Expr | None:
    """A counting operator with a local key has a partition for key values whose events fail, too (decision 27)."""
    return None if BEHAVIOURS[situation.operator.kind].counts and situation.local_keys else operand.threshold


def _of_type(event: str, tests: Sequence[Expr | None]) -> Expr:
    kind = Compare("=", Reference("type"), Literal(event))
    distinct = tuple(dict.fromkeys(test for test in tests if test is not None))
    if None in tests or not all(_strict(test) for test in distinct):
        return kind
    return And((kind, distinct[0] if len(distinct) == 1 else Or(distinct)))


def _strict(tree: Expr) -> bool:
    """Is a null in it never true? Then a value of the wrong type, which counts as null, cannot make it true either."""
    return not any(
        isinstance(node, IsNull) or (isinstance(node, Call) and (node.name in LENIENT or node.name not in FUNCTIONS))
        for node in walk(tree)
    )
