"""Decisions in the compiled loop: `detect` of section 4, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import grown, touch
from coincide.detection.columns.worlds import NONE, ONE, ZERO, inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.consumption import alive, consume, remove
from coincide.detection.situation.kernel.parts import op_at, stream_at
from coincide.detection.situation.kernel.pick import choose, enter, hold, pick
from coincide.detection.situation.kernel.waiting import deactivate


@inner
def decide(world: at.World, record: Any, mask: int) -> Any:
    """`detect` of section 4: was anything found? A mask says which operands the arriving event has entered; none: a deferred
    decision."""
    if world.records[record, at.RECORD.done]:
        return False
    s = world.records[record, at.RECORD.situation]
    kind = world.situations[s, at.SITUATION.kind]
    if kind <= at.SEQUENCE:
        detected = join(world, s, record, mask)
    elif kind == at.UNLESS:
        detected = unless(world, s, record)
    elif world.situations[s, at.SITUATION.joined]:
        detected = count_joined(world, s, record)
    else:
        detected = count(world, s, record)
    if detected and world.situations[s, at.SITUATION.once]:
        world.records[record, at.RECORD.done] = 1
        touch(world.records, world.heads[at.OF.records], record)
        if mask:
            deactivate(world, record)
    return detected


@inner
def join(world: at.World, s: int, record: int, mask: int) -> Any:
    cell, operands = world.records[record, at.RECORD.cell], world.situations[s, at.SITUATION.operands]
    for operand in range(operands):
        if candidates(world, record, operand, cell) == 0:
            return False
    several = pick(world, record, mask, world.counts[at.COUNT.caused_by])
    if several and world.situations[s, at.SITUATION.once]:
        several = 1
    for number in range(several):
        report(world, s, world.records[record, at.RECORD.span], cell)
        for operand in range(operands):
            origin = world.cells[cell, stream_at(operand) + at.STREAM.origin]
            select(world, operand, world.stream[origin + world.found[number, operand]])
    consume(world, record, several)
    if several and mask == 0 and not any_strict(world, s):
        world.counts[at.COUNT.resumed] = world.found[0, 0]
    return several > 0


@inner
def any_strict(world: at.World, s: int) -> Any:
    """Then what is consumed makes another candidate the first or last of its operand, and what led to nothing may lead on."""
    first, strict = world.situations[s, at.SITUATION.first_operand], False
    for operand in range(first, first + world.situations[s, at.SITUATION.operands]):
        strict |= world.operands[operand, at.OPERAND.strict] != 0
    return strict


@inner
def unless(world: at.World, s: int, record: int) -> Any:
    """Each candidate of the first operand that is free (or the first, the last one). Strict: all of them, or none."""
    first, cell = world.situations[s, at.SITUATION.first_operand], world.records[record, at.RECORD.cell]
    place, quantifier = stream_at(ZERO), world.operands[first, at.OPERAND.quantifier]
    start, end = world.records[record, op_at(ZERO) + at.TAKEN.start], world.cells[cell, place + at.STREAM.filled]
    step = -1 if quantifier == at.LAST else 1
    position, stop = (end - 1, start - 1) if quantifier == at.LAST else (start, end)
    if world.operands[first, at.OPERAND.strict] and start < end:
        stop = stop if quantifier == at.EACH else position + step
        for each in range(position, stop, step):
            if not is_free(world, s, record, each):
                return False
    found = False
    while position != stop and not (found and quantifier != at.EACH):
        if is_free(world, s, record, position):
            found = True
            report(world, s, world.records[record, at.RECORD.span], cell)
            select(world, ZERO, world.stream[world.cells[cell, place + at.STREAM.origin] + position])
        position += step
    return found


@inner
def is_free(world: at.World, s: int, record: int, position: int) -> Any:
    """Is there no candidate of the second operand, or none with which `where` is true?"""
    base, cell = world.situations[s, at.SITUATION.first_operand], world.records[record, at.RECORD.cell]
    if not world.situations[s, at.SITUATION.joined]:
        return candidates(world, record, ONE, cell) == 0
    world.scratch[at.SCRATCH.refs, 0] = world.stream[world.cells[cell, stream_at(ZERO) + at.STREAM.origin] + position]
    if not hold(world, record, base, NONE):
        return True
    enter(world, record, base, ONE, ZERO, NONE, NONE, NONE)
    return not choose(world, record, base, ONE, NONE, NONE)


@inner
def count_joined(world: at.World, s: int, record: int) -> Any:
    """atleast, atmost and nth with `where`: what is counted is all that stands in some selection of `pick`."""
    first, cell = world.situations[s, at.SITUATION.first_operand], world.records[record, at.RECORD.cell]
    operands, complete, total = world.situations[s, at.SITUATION.operands], True, ZERO
    for operand in range(operands):
        complete &= candidates(world, record, operand, cell) > 0
    world.counts[at.COUNT.resumed] = -1
    several = pick(world, record, ZERO, NONE) if complete else ZERO
    for operand in range(operands):
        total += world.operands[first + operand, at.OPERAND.weight] * len(used(world, several, operand))
    if not satisfied(world.situations[s, at.SITUATION.kind], total, world.situations[s, at.SITUATION.quantity]):
        return False
    report(world, s, world.records[record, at.RECORD.span], cell)
    for operand in range(operands):
        origin = world.cells[cell, stream_at(operand) + at.STREAM.origin]
        for position in used(world, several, operand):
            select(world, operand, world.stream[origin + position])
            remove(world, record, op_at(operand), position)
    return True


@inner
def used(world: at.World, several: int, operand: int) -> Any:
    """The positions of an operand's candidates in the first so many selections, each once, oldest first."""
    positions, size = np.sort(world.found[:several, operand]), ZERO
    for number in range(several):
        if number == 0 or positions[number] != positions[number - 1]:
            positions[size] = positions[number]
            size += 1
    return positions[:size]


@inner
def count(world: at.World, s: int, record: int) -> Any:
    """atleast, atmost, nth, and `not`, which counts all candidates."""
    first, cell, operands = (
        world.situations[s, at.SITUATION.first_operand],
        world.records[record, at.RECORD.cell],
        world.situations[s, at.SITUATION.operands],
    )
    total, none = np.int64(0), world.situations[s, at.SITUATION.kind] == at.NOT
    for operand in range(operands):
        have = candidates(world, record, operand, cell)
        total += have if none else weight(world, record, first + operand, operand, cell)
    if not satisfied(world.situations[s, at.SITUATION.kind], total, world.situations[s, at.SITUATION.quantity]):
        return False
    report(world, s, world.records[record, at.RECORD.span], cell)
    for operand in range(0 if none else operands):
        take(world, record, first + operand, operand, cell)
    return True


@inner
def take(world: at.World, record: int, o: int, operand: int, cell: int) -> None:
    """Select and consume all candidates of an operand, or the first or last one, as its quantifier says."""
    place, column = stream_at(operand), op_at(operand)
    start, end = world.records[record, column + at.TAKEN.start], world.cells[cell, place + at.STREAM.filled]
    if world.operands[o, at.OPERAND.quantifier] == at.EACH:
        for position in range(start, end):
            select(world, operand, world.stream[world.cells[cell, place + at.STREAM.origin] + position])
        world.records[record, column + at.TAKEN.start] = end
        touch(world.records, world.heads[at.OF.records], record)
    elif start < end:
        position = start if world.operands[o, at.OPERAND.quantifier] == at.FIRST else end - 1
        while not alive(world, record, column, position):
            position -= 1
        select(world, operand, world.stream[world.cells[cell, place + at.STREAM.origin] + position])
        remove(world, record, column, position)


@inner
def candidates(world: at.World, record: int, operand: int, cell: int) -> Any:
    """How many there are of an operand, those consumed after the first one included."""
    start = world.records[record, op_at(operand) + at.TAKEN.start]
    return world.cells[cell, stream_at(operand) + at.STREAM.filled] - start


@inner
def weight(world: at.World, record: int, o: int, operand: int, cell: int) -> Any:
    have = candidates(world, record, operand, cell)
    return world.operands[o, at.OPERAND.weight] * (have if world.operands[o, at.OPERAND.quantifier] == at.EACH else min(have, 1))


@inner
def satisfied(kind: int, total: np.int64, quantity: int) -> Any:
    if kind == at.ATLEAST:
        return total >= quantity
    if kind == at.ATMOST:
        return total < quantity
    return total == (0 if kind == at.NOT else quantity)


@inner
def report(world: Any, s: int, span: int, cell: int) -> None:
    number = world.counts[at.COUNT.made]
    if number == len(world.made):
        world.made = grown(world.made)
    made = world.made[number]
    made[at.MADE.by_timer] = world.counts[at.COUNT.cause_kind]
    made[at.MADE.cause_number] = world.counts[at.COUNT.cause]
    made[at.MADE.cause_ref] = world.counts[at.COUNT.caused_by]
    made[at.MADE.now] = world.counts[at.COUNT.clock]
    made[at.MADE.situation] = s
    made[at.MADE.cell] = cell
    made[at.MADE.opened_by] = world.spans[span, at.SPAN.opened]
    made[at.MADE.initiator] = world.spans[span, at.SPAN.initiator]
    made[at.MADE.terminator] = world.spans[span, at.SPAN.terminator]
    made[at.MADE.ended_by] = world.counts[at.COUNT.caused_by] if world.spans[span, at.SPAN.terminator] >= 0 else -1
    made[at.MADE.chosen] = world.counts[at.COUNT.selected]
    made[at.MADE.timer_number] = world.counts[at.COUNT.number]
    made[at.MADE.span] = span
    world.counts[at.COUNT.made] += 1
    world.counted[s + world.keys[world.cells[cell, at.CELL.key], at.KEY.whose], at.COUNTED.detections] += 1


@inner
def select(world: Any, operand: int, ref: int) -> None:
    number = world.counts[at.COUNT.selected]
    if number == len(world.selected):
        world.selected = grown(world.selected)
    world.selected[number, 0] = operand
    world.selected[number, 1] = ref
    world.counts[at.COUNT.selected] += 1
