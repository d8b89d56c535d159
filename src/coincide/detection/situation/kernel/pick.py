"""Selections of `all` and `sequence` in the compiled loop: `pick` of section 4 without recursion."""

from __future__ import annotations

from typing import Any

from coincide.detection.columns.linked import grown
from coincide.detection.columns.operations import OP_ADD, OP_SUBTRACT, of_two
from coincide.detection.columns.records import Numbers
from coincide.detection.columns.worlds import NONE, ZERO, inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.computing import COMPUTED, computed
from coincide.detection.situation.kernel.consumption import alive
from coincide.detection.situation.kernel.parts import op_at, stream_at

FEW = 4
"""So many candidates are looked through one by one as soon as they are found in an index."""


@inner
def pick(world: at.World, record: int, mask: int, arriving: int) -> Any:
    """All selections, as positions in the streams, a row of `found` each; returns how many. With a mask, the arriving event must
    be in them; it is the last of each stream that it has entered.

    A depth-first search: an operand with `first` or `last` gives up its other candidates once one has led to a selection."""
    s = world.records[record, at.RECORD.situation]
    base, size = world.situations[s, at.SITUATION.first_operand], world.situations[s, at.SITUATION.operands]
    scratch = world.scratch
    only = single(mask)
    number, level, has_arriving, entering = ZERO, ZERO, NONE, True
    while level >= 0:
        if entering:
            enter(world, record, base, level, mask, has_arriving, only, arriving)
        elif number > scratch[at.SCRATCH.found_before, level] and world.operands[base + level, at.OPERAND.quantifier] != at.EACH:
            scratch[at.SCRATCH.at, level] = scratch[at.SCRATCH.stop, level]
        if has_arriving >= level:
            has_arriving = -1
        entering = False
        if not choose(world, record, base, level, only, arriving):
            level -= 1
            continue
        scratch[at.SCRATCH.found_before, level] = number
        if has_arriving < 0 and mask and scratch[at.SCRATCH.refs, level] == arriving:
            has_arriving = level
        if level + 1 < size:
            level += 1
            entering = True
        elif mask == 0 or has_arriving >= 0:
            note(world, number, size)
            number += 1
    return number


@inner
def enter(world: at.World, record: int, base: int, level: int, mask: int, has_arriving: int, only: int, arriving: int) -> None:
    """Which candidates of an operand are worth trying, given those chosen for the operands before it."""
    operand, column = base + level, op_at(level)
    cell, place = world.records[record, at.RECORD.cell], stream_at(level)
    backwards = world.operands[operand, at.OPERAND.quantifier] == at.LAST
    start, end = world.records[record, column + at.TAKEN.start], world.cells[cell, place + at.STREAM.filled]
    if world.operands[operand, at.OPERAND.strict]:
        if backwards:
            while end > start and not alive(world, record, column, end - 1):
                end -= 1
            start = max(start, end - 1)
        else:
            end = min(end, start + 1)
    elif mask and has_arriving < 0 and (mask >> (level + 1)) == 0:
        start = end - 1 if (mask >> level) & 1 else end
    if level == 0 and mask == 0 and world.counts[at.COUNT.resumed] >= 0:
        # those before led to nothing, and lists have only become shorter since
        start, end = (
            (start, world.counts[at.COUNT.resumed] + 1) if backwards else (max(start, world.counts[at.COUNT.resumed]), end)
        )
    if (
        level > 0
        and not backwards
        and world.situations[world.records[record, at.RECORD.situation], at.SITUATION.kind] == at.SEQUENCE
    ):
        origin = world.cells[cell, place + at.STREAM.origin]
        start = later(world.stream, origin, start, end, world.scratch[at.SCRATCH.refs, level - 1])
    few = end - start < FEW or world.cells[cell, at.CELL.indexed] != world.counts[at.COUNT.step]
    index, known = (-1, -1) if few else index_by(world.conjuncts, world.operands, base, level, only)
    if index >= 0:
        ref = arriving if known == only else world.scratch[at.SCRATCH.refs, known]
        first, last = world.ranges[2 * index, ref], world.ranges[2 * index + 1, ref]
        start, end = later(world.equal, ZERO, first, last, start - 1), later(world.equal, ZERO, first, last, end - 1)
    world.scratch[at.SCRATCH.indexed, level] = index >= 0
    world.scratch[at.SCRATCH.at, level] = end - 1 if backwards else start
    world.scratch[at.SCRATCH.stop, level] = start - 1 if backwards else end


@inner
def choose(world: at.World, record: int, base: int, level: int, only: int, arriving: int) -> Any:
    """The next of these that fits those chosen before. The arriving event is known before its turn comes."""
    scratch, refs, operands = world.scratch, world.scratch[at.SCRATCH.refs], world.operands
    operand, column = base + level, op_at(level)
    offset = world.cells[world.records[record, at.RECORD.cell], stream_at(level) + at.STREAM.origin]
    kind = world.situations[world.records[record, at.RECORD.situation], at.SITUATION.kind]
    step = -1 if operands[operand, at.OPERAND.quantifier] == at.LAST else 1
    while scratch[at.SCRATCH.at, level] != scratch[at.SCRATCH.stop, level]:
        position = scratch[at.SCRATCH.at, level]
        if scratch[at.SCRATCH.indexed, level]:
            position = world.equal[position]
        scratch[at.SCRATCH.at, level] += step
        scratch[at.SCRATCH.positions, level] = position
        refs[level] = world.stream[offset + position]
        if alive(world, record, column, position) and apart(refs, level, kind) and hold(world, record, operand, NONE):
            if level >= only:
                return True
            refs[only], ahead = arriving, base + only
            if hold(world, record, ahead, level):
                return True
    return False


@inner
def index_by(conjuncts: Numbers, operands: Numbers, base: int, level: int, only: int) -> Any:
    """An index of an operand's candidates, and the operand that is known by which to look them up; -1: there is none."""
    for number in range(operands[base + level, at.OPERAND.conjuncts_from], operands[base + level, at.OPERAND.conjuncts_to]):
        if conjuncts[number, at.CONJUNCT.left_index] >= 0:
            left = conjuncts[number, at.CONJUNCT.left] == level
            return conjuncts[number, at.CONJUNCT.left_index if left else at.CONJUNCT.right_index], conjuncts[
                number, at.CONJUNCT.right if left else at.CONJUNCT.left
            ]
    if level < only:
        for number in range(operands[base + only, at.OPERAND.conjuncts_from], operands[base + only, at.OPERAND.conjuncts_to]):
            if conjuncts[number, at.CONJUNCT.left_index] >= 0 and conjuncts[number, at.CONJUNCT.left] == level:
                return conjuncts[number, at.CONJUNCT.left_index], only
            if conjuncts[number, at.CONJUNCT.left_index] >= 0 and conjuncts[number, at.CONJUNCT.right] == level:
                return conjuncts[number, at.CONJUNCT.right_index], only
    return -1, -1


@inner
def single(mask: int) -> Any:
    """The one operand of a mask; -1 if there are none or several."""
    if mask == 0 or mask & (mask - 1):
        return -1
    number = 0
    while mask > 1:
        mask >>= 1
        number += 1
    return number


@inner
def later(stream: Numbers, offset: int, start: int, end: int, ref: int) -> Any:
    """The first position whose event arrived after `ref`."""
    while start < end:
        middle = (start + end) >> 1
        if stream[offset + middle] > ref:
            end = middle
        else:
            start = middle + 1
    return start


@inner
def note(world: Any, number: int, size: int) -> None:
    if number == len(world.found):
        world.found = grown(world.found)
    for level in range(size):
        world.found[number, level] = world.scratch[at.SCRATCH.positions, level]


@inner
def apart(refs: Numbers, level: int, kind: int) -> Any:
    """A sequence's candidates arrive one after another; no instance stands twice in a selection (but what is not to be there may
    be what it is not to be there for)."""
    if kind == at.SEQUENCE:
        return level == 0 or refs[level] > refs[level - 1]
    if kind == at.UNLESS:
        return True
    for other in range(level):
        if refs[other] == refs[level]:
            level = -1
    return level >= 0


@inner
def hold(world: at.World, record: int, operand: int, other: int) -> Any:
    """The parts of `where` that an operand completes; those with one other operand only, if that is not -1."""
    conjuncts, values, refs = world.conjuncts, world.values, world.scratch[at.SCRATCH.refs]
    for number in range(world.operands[operand, at.OPERAND.conjuncts_from], world.operands[operand, at.OPERAND.conjuncts_to]):
        one, two = conjuncts[number, at.CONJUNCT.left], conjuncts[number, at.CONJUNCT.right]
        if other >= 0 and min(one, two) != other:
            continue
        world.counts[at.COUNT.conditions] += 1
        first, second = conjuncts[number, at.CONJUNCT.left_column], conjuncts[number, at.CONJUNCT.right_column]
        if conjuncts[number, at.CONJUNCT.comparison] == COMPUTED:
            if computed(world, record, first, second) != 1.0:
                return False
            continue
        left, right = values[first, refs[one]], values[second, refs[two]]
        if conjuncts[number, at.CONJUNCT.combination]:
            left = of_two(OP_ADD if conjuncts[number, at.CONJUNCT.combination] == 1 else OP_SUBTRACT, left, right)
            right = world.constants[conjuncts[number, at.CONJUNCT.constant]]
        if not compare(conjuncts[number, at.CONJUNCT.comparison], left, right):
            return False
    return True


@inner
def compare(code: int, left: float, right: float) -> Any:
    """Null is nan: no comparison with it is true. The last one is a condition about one event."""
    if code == 0:
        return left == right
    if code == 1:
        return left < right or left > right
    if code == 2:
        return left < right
    if code == 3:
        return left <= right
    if code == 4:
        return left > right
    if code == 5:
        return left >= right
    return left == 1.0
