"""What a situation waits for: what opens its lifespan, its operands, what ends the lifespan."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.resolve import Resolved
from coincide.lang.shared.wants import Slot, Wants, present


def wants_of(situation: Resolved) -> Wants:
    operator, expiration = situation.operator, situation.lifespan.expiration
    bounds = (operator.interval, 0 if expiration is None else expiration.interval)
    return Wants(
        tuple(_slots(situation)), present(operator.where), tuple(b for b in bounds if b > 0), (max(1, abs(operator.quantity)),)
    )


def _slots(situation: Resolved) -> Iterator[Slot]:
    """The ends of a lifespan are what stops it, but for operators that wait for them."""
    operator = situation.operator
    yield from (Slot(i.event, present(i.where)) for i in situation.lifespan.initiators)
    for number, operand in enumerate(operator.operands):
        yield Slot(operand.event, present(operand.threshold), OPERATORS[operator.kind].refuses(number))
    yield from (Slot(t.event, present(t.where), True) for t in situation.lifespan.terminators)
