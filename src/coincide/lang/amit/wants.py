"""What a situation waits for: what opens its lifespan, its operands, what ends the lifespan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coincide.expr.tree import Expr, Reference, transform
from coincide.lang.amit.names import OPERAND
from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.resolve import Resolved
from coincide.lang.shared.wants import Slot, Wants, present


def wants_of(situation: Resolved) -> Wants:
    operator, expiration = situation.operator, situation.lifespan.expiration
    bounds = [operator.interval, 0 if expiration is None else expiration.interval]
    named = [Slot(s.type, tuple(_as_written(t, situation) for t in s.tests), s.refused) for s in _slots(situation)]
    tests = tuple(_as_written(tree, situation) for tree in present(operator.where))
    return Wants(tuple(named), tests, tuple(b for b in bounds if b > 0), (max(1, abs(operator.quantity)),))


def _as_written(tree: Expr, situation: Resolved) -> Expr:
    """Operands by the names that the author gave them."""
    names = {f"{OPERAND}{number}": operand.label for number, operand in enumerate(situation.operator.operands)}

    def rewrite(node: Expr) -> Expr:
        return replace(node, alias=names[node.alias]) if isinstance(node, Reference) and node.alias in names else node

    return transform(tree, rewrite)


def _slots(situation: Resolved) -> Iterator[Slot]:
    """The ends of a lifespan are what stops it, but for operators that wait for them."""
    operator = situation.operator
    yield from (Slot(i.event, present(i.where)) for i in situation.lifespan.initiators)
    for number, operand in enumerate(operator.operands):
        yield Slot(operand.event, present(operand.threshold), OPERATORS[operator.kind].refuses(number))
    yield from (Slot(t.event, present(t.where), True) for t in situation.lifespan.terminators)
