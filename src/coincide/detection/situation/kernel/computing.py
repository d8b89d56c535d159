"""Parts of `where` that are programs (conditions.py), in the compiled loop. NaN is null."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

from coincide.detection.columns.operations import OP_AND, OP_NOT, of_one, of_two
from coincide.detection.columns.worlds import inner
from coincide.detection.situation.kernel import layout as at

COMPUTED = 7
"""What stands in place of a comparison."""
EXACT = 2**53


@inner
def computed(world: at.World, record: int, first: int, end: int) -> Any:
    """What the instructions leave on the stack."""
    stack, top = world.stack, 0
    for number in range(first, end):
        op = world.instructions[number, 0]
        if op >= OP_AND:
            top -= 1
            stack[top - 1] = of_two(op, stack[top - 1], stack[top])
        elif op >= OP_NOT:
            stack[top - 1] = of_one(op, stack[top - 1])
        elif op == at.ORDER:
            top -= 2
            stack[top - 1] = order(stack[top - 1], stack[top], stack[top + 1])
        else:
            stack[top] = read(world, record, number)
            top += 1
    return stack[0]


@inner
def read(world: at.World, record: int, number: int) -> Any:
    op, which, column = world.instructions[number, 0], world.instructions[number, 1], world.instructions[number, 2]
    if op == at.CONSTANT:
        return world.constants[which]
    if op == at.CLOCK:
        return milliseconds(world.counts[at.COUNT.clock])
    if op == at.CANDIDATE:
        return world.values[column, world.scratch[at.SCRATCH.refs, which]]
    span = world.records[record, at.RECORD.span]
    role, ref = world.spans[span, at.SPAN.initiator], world.spans[span, at.SPAN.opened]
    if op == at.TERMINATOR:
        role, ref = world.spans[span, at.SPAN.terminator], world.counts[at.COUNT.caused_by]
    if role >= 0 and (which >> role) & 1:
        return world.values[column, ref]
    return world.constants[world.instructions[number, 3]]


@inner
def milliseconds(instant: float) -> Any:
    """The double nearest to the quotient."""
    if -EXACT <= instant <= EXACT:
        return instant / 1000.0
    return float(instant // 1000) + (instant % 1000) / 1000.0


@inner
def order(left: float, right: float, more: float) -> Any:
    """-1, 0 or 1, as a double is less than a number, equal or greater: one that is more than its double by so much."""
    if isnan(left) or isnan(right):
        return nan
    difference = (left > right) * 1.0 - (left < right) * 1.0
    return difference if difference != 0.0 else (more < 0.0) * 1.0 - (more > 0.0) * 1.0
