"""Decisions in the compiled loop: `detect` of section 4, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import ONE, ZERO, inner
from coincide.detection.situation.kernel.consumption import alive, consume, remove
from coincide.detection.situation.kernel.lists import grown
from coincide.detection.situation.kernel.pick import pick
from coincide.detection.situation.kernel.waiting import deactivate


@inner
def decide(world: Any, record: Any, mask: Any) -> Any:
    """`detect` of section 4: was anything found? A mask says which operands the arriving event has entered; none: a deferred
    decision."""
    if world.records[record, at.DONE]:
        return False
    s = world.records[record, at.SITUATION]
    kind = world.situations[s, at.KIND]
    if kind <= at.SEQUENCE:
        detected = join(world, s, record, mask)
    elif kind == at.UNLESS:
        detected = unless(world, s, record)
    else:
        detected = count(world, s, record)
    if detected and world.situations[s, at.ONCE]:
        world.records[record, at.DONE] = 1
        if mask:
            deactivate(world, record)
    return detected


@inner
def join(world: Any, s: Any, record: Any, mask: Any) -> Any:
    first, cell, operands = (
        world.situations[s, at.FIRST_OPERAND],
        world.records[record, at.CELL],
        world.situations[s, at.OPERANDS],
    )
    for operand in range(operands):
        if candidates(world, record, first + operand, operand, cell) == 0:
            return False
    several = pick(world, record, mask, world.counts[at.CAUSED_BY])
    if several and world.situations[s, at.ONCE]:
        several = 1
    for number in range(several):
        report(world, s, world.records[record, at.SPAN], cell)
        for operand in range(operands):
            stream = world.streams[world.operands[first + operand, at.STREAM_BASE] + cell, at.FROM]
            select(world, operand, world.stream[stream + world.found[number, operand]])
    consume(world, record, several)
    if several and mask == 0:
        world.counts[at.RESUMED] = world.found[0, 0]
    return several > 0


@inner
def unless(world: Any, s: Any, record: Any) -> Any:
    """Each candidate of the first operand (or the first, the last one), if there is none of the second."""
    first, cell = world.situations[s, at.FIRST_OPERAND], world.records[record, at.CELL]
    if candidates(world, record, first + 1, ONE, cell) or not candidates(world, record, first, ZERO, cell):
        return False
    place = world.operands[first, at.STREAM_BASE] + cell
    start, end = world.records[record, at.OPS + at.START], world.streams[place, at.FILLED]
    quantifier = world.operands[first, at.QUANTIFIER]
    for position in range(end - 1 if quantifier == at.LAST else start, start + 1 if quantifier == at.FIRST else end):
        report(world, s, world.records[record, at.SPAN], cell)
        select(world, ZERO, world.stream[world.streams[place, at.FROM] + position])
    return True


@inner
def count(world: Any, s: Any, record: Any) -> Any:
    """atleast, atmost, nth, and `not`, which counts all candidates."""
    first, cell, operands = (
        world.situations[s, at.FIRST_OPERAND],
        world.records[record, at.CELL],
        world.situations[s, at.OPERANDS],
    )
    total, none = np.int64(0), world.situations[s, at.KIND] == at.NOT
    for operand in range(operands):
        have = candidates(world, record, first + operand, operand, cell)
        total += have if none else weight(world, record, first + operand, operand, cell)
    if not satisfied(world.situations[s, at.KIND], total, world.situations[s, at.QUANTITY]):
        return False
    report(world, s, world.records[record, at.SPAN], cell)
    for operand in range(0 if none else operands):
        take(world, record, first + operand, operand, cell)
    return True


@inner
def take(world: Any, record: Any, o: Any, operand: Any, cell: Any) -> Any:
    """Select and consume all candidates of an operand, or the first or last one, as its quantifier says."""
    place, column = world.operands[o, at.STREAM_BASE] + cell, at.OPS + at.PER_OP * operand
    start, end = world.records[record, column + at.START], world.streams[place, at.FILLED]
    if world.operands[o, at.QUANTIFIER] == at.EACH:
        for position in range(start, end):
            select(world, operand, world.stream[world.streams[place, at.FROM] + position])
        world.records[record, column + at.START] = end
    elif start < end:
        position = start if world.operands[o, at.QUANTIFIER] == at.FIRST else end - 1
        while not alive(world, record, column, position):
            position -= 1
        select(world, operand, world.stream[world.streams[place, at.FROM] + position])
        remove(world, record, column, position)


@inner
def candidates(world: Any, record: Any, o: Any, operand: Any, cell: Any) -> Any:
    """How many there are of an operand, those consumed after the first one included."""
    start = world.records[record, at.OPS + at.PER_OP * operand + at.START]
    return world.streams[world.operands[o, at.STREAM_BASE] + cell, at.FILLED] - start


@inner
def weight(world: Any, record: Any, o: Any, operand: Any, cell: Any) -> Any:
    have = candidates(world, record, o, operand, cell)
    return world.operands[o, at.WEIGHT] * (have if world.operands[o, at.QUANTIFIER] == at.EACH else min(have, 1))


@inner
def satisfied(kind: Any, total: Any, quantity: Any) -> Any:
    if kind == at.ATLEAST:
        return total >= quantity
    if kind == at.ATMOST:
        return total < quantity
    return total == (0 if kind == at.NOT else quantity)


@inner
def report(world: Any, s: Any, span: Any, cell: Any) -> Any:
    number = world.counts[at.MADE]
    if number == len(world.made):
        world.made = grown(world.made)
    made = world.made[number]
    made[at.BY_TIMER] = world.counts[at.TIMER]
    made[at.CAUSE_NUMBER] = world.counts[at.CAUSE]
    made[at.CAUSE_REF] = world.counts[at.CAUSED_BY]
    made[at.NOW] = world.counts[at.CLOCK]
    made[at.OF_SITUATION] = s
    made[at.OF_CELL] = cell
    made[at.OPENED_BY] = world.spans[span, at.OPENED]
    made[at.OF_INITIATOR] = world.spans[span, at.INITIATOR]
    made[at.OF_TERMINATOR] = world.spans[span, at.TERMINATOR]
    made[at.ENDED_BY] = world.counts[at.CAUSED_BY] if world.spans[span, at.TERMINATOR] >= 0 else -1
    made[at.CHOSEN] = world.counts[at.SELECTED]
    made[at.TIMER_NUMBER] = world.counts[at.NUMBER]
    made[at.OF_SPAN_NUMBER] = span
    world.counts[at.MADE] += 1
    world.situations[s, at.DETECTIONS] += 1


@inner
def select(world: Any, operand: Any, ref: Any) -> Any:
    number = world.counts[at.SELECTED]
    if number == len(world.selected):
        world.selected = grown(world.selected)
    world.selected[number, 0] = operand
    world.selected[number, 1] = ref
    world.counts[at.SELECTED] += 1
