"""Selections of `all` and `sequence` in the compiled loop: `pick` of section 4 without recursion."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import NONE, ZERO, inner
from coincide.detection.situation.kernel.consumption import alive
from coincide.detection.situation.kernel.lists import grown

FEW = 4
"""So many candidates are looked through one by one as soon as they are found in an index."""


@inner
def pick(world: Any, record: Any, mask: Any, arriving: Any) -> Any:
    """All selections, as positions in the streams, a row of `found` each; returns how many. With a mask, the arriving event must
    be in them; it is the last of each stream that it has entered.

    A depth-first search: an operand with `first` or `last` gives up its other candidates once one has led to a selection."""
    s = world.records[record, at.SITUATION]
    base, size = world.situations[s, at.FIRST_OPERAND], world.situations[s, at.OPERANDS]
    scratch = world.scratch
    only = single(mask)
    number, level, has_arriving, entering = ZERO, ZERO, NONE, True
    while level >= 0:
        if entering:
            enter(world, record, base, level, mask, has_arriving, only, arriving)
        elif number > scratch[at.FOUND_BEFORE, level] and world.operands[base + level, at.QUANTIFIER] != at.EACH:
            scratch[at.AT, level] = scratch[at.STOP, level]
        if has_arriving >= level:
            has_arriving = -1
        entering = False
        if not choose(world, record, base, level, only, arriving):
            level -= 1
            continue
        scratch[at.FOUND_BEFORE, level] = number
        if has_arriving < 0 and mask and scratch[at.REFS, level] == arriving:
            has_arriving = level
        if level + 1 < size:
            level += 1
            entering = True
        elif mask == 0 or has_arriving >= 0:
            note(world, number, size)
            number += 1
    return number


@inner
def enter(world: Any, record: Any, base: Any, level: Any, mask: Any, has_arriving: Any, only: Any, arriving: Any) -> Any:
    """Which candidates of an operand are worth trying, given those chosen for the operands before it."""
    operand, column = base + level, at.OPS + at.PER_OP * level
    place = world.operands[operand, at.STREAM_BASE] + world.records[record, at.CELL]
    backwards = world.operands[operand, at.QUANTIFIER] == at.LAST
    start, end = world.records[record, column + at.START], world.streams[place, at.FILLED]
    if world.operands[operand, at.STRICT]:
        if backwards:
            while end > start and not alive(world, record, column, end - 1):
                end -= 1
            start = max(start, end - 1)
        else:
            end = min(end, start + 1)
    elif mask and has_arriving < 0 and (mask >> (level + 1)) == 0:
        start = end - 1 if (mask >> level) & 1 else end
    if level == 0 and mask == 0 and world.counts[at.RESUMED] >= 0 and not world.operands[operand, at.STRICT]:
        # those before led to nothing, and lists have only become shorter since
        start, end = (start, world.counts[at.RESUMED] + 1) if backwards else (max(start, world.counts[at.RESUMED]), end)
    if level > 0 and not backwards and world.situations[world.records[record, at.SITUATION], at.KIND] == at.SEQUENCE:
        start = later(world.stream, world.streams[place, at.FROM], start, end, world.scratch[at.REFS, level - 1])
    index, known = (-1, -1) if end - start < FEW else index_by(world.conjuncts, world.operands, base, level, only)
    if index >= 0:
        ref = arriving if known == only else world.scratch[at.REFS, known]
        first, last = world.ranges[2 * index, ref], world.ranges[2 * index + 1, ref]
        start, end = later(world.equal, ZERO, first, last, start - 1), later(world.equal, ZERO, first, last, end - 1)
    world.scratch[at.INDEXED, level] = index >= 0
    world.scratch[at.AT, level] = end - 1 if backwards else start
    world.scratch[at.STOP, level] = start - 1 if backwards else end


@inner
def choose(world: Any, record: Any, base: Any, level: Any, only: Any, arriving: Any) -> Any:
    """The next of these that fits those chosen before. The arriving event is known before its turn comes."""
    scratch, refs, operands = world.scratch, world.scratch[at.REFS], world.operands
    operand, column = base + level, at.OPS + at.PER_OP * level
    offset = world.streams[operands[operand, at.STREAM_BASE] + world.records[record, at.CELL], at.FROM]
    kind = world.situations[world.records[record, at.SITUATION], at.KIND]
    step = -1 if operands[operand, at.QUANTIFIER] == at.LAST else 1
    while scratch[at.AT, level] != scratch[at.STOP, level]:
        position = scratch[at.AT, level]
        if scratch[at.INDEXED, level]:
            position = world.equal[position]
        scratch[at.AT, level] += step
        scratch[at.POSITIONS, level] = position
        refs[level] = world.stream[offset + position]
        if (
            alive(world, record, column, position)
            and apart(refs, level, kind)
            and hold(world, operands[operand, at.CONJUNCTS_FROM], operands[operand, at.CONJUNCTS_TO], NONE)
        ):
            if level >= only:
                return True
            refs[only], ahead = arriving, base + only
            if hold(world, operands[ahead, at.CONJUNCTS_FROM], operands[ahead, at.CONJUNCTS_TO], level):
                return True
    return False


@inner
def index_by(conjuncts: Any, operands: Any, base: Any, level: Any, only: Any) -> Any:
    """An index of an operand's candidates, and the operand that is known by which to look them up; -1: there is none."""
    for number in range(operands[base + level, at.CONJUNCTS_FROM], operands[base + level, at.CONJUNCTS_TO]):
        if conjuncts[number, at.LEFT_INDEX] >= 0:
            left = conjuncts[number, at.LEFT] == level
            return conjuncts[number, at.LEFT_INDEX if left else at.RIGHT_INDEX], conjuncts[number, at.RIGHT if left else at.LEFT]
    if level < only:
        for number in range(operands[base + only, at.CONJUNCTS_FROM], operands[base + only, at.CONJUNCTS_TO]):
            if conjuncts[number, at.LEFT_INDEX] >= 0 and conjuncts[number, at.LEFT] == level:
                return conjuncts[number, at.LEFT_INDEX], only
            if conjuncts[number, at.LEFT_INDEX] >= 0 and conjuncts[number, at.RIGHT] == level:
                return conjuncts[number, at.RIGHT_INDEX], only
    return -1, -1


@inner
def single(mask: Any) -> Any:
    """The one operand of a mask; -1 if there are none or several."""
    if mask == 0 or mask & (mask - 1):
        return -1
    number = 0
    while mask > 1:
        mask >>= 1
        number += 1
    return number


@inner
def later(stream: Any, offset: Any, start: Any, end: Any, ref: Any) -> Any:
    """The first position whose event arrived after `ref`."""
    while start < end:
        middle = (start + end) >> 1
        if stream[offset + middle] > ref:
            end = middle
        else:
            start = middle + 1
    return start


@inner
def note(world: Any, number: Any, size: Any) -> Any:
    if number == len(world.found):
        world.found = grown(world.found)
    for level in range(size):
        world.found[number, level] = world.scratch[at.POSITIONS, level]


@inner
def apart(refs: Any, level: Any, kind: Any) -> Any:
    """A sequence's candidates arrive one after another; no instance stands twice in a selection."""
    if kind == at.SEQUENCE:
        return level == 0 or refs[level] > refs[level - 1]
    for other in range(level):
        if refs[other] == refs[level]:
            level = -1
    return level >= 0


@inner
def hold(world: Any, first: Any, end: Any, other: Any) -> Any:
    """The parts of `where` that an operand completes; those with one other operand only, if that is not -1."""
    conjuncts, values, refs = world.conjuncts, world.values, world.scratch[at.REFS]
    for number in range(first, end):
        one, two = conjuncts[number, at.LEFT], conjuncts[number, at.RIGHT]
        if other >= 0 and min(one, two) != other:
            continue
        world.counts[at.CONDITIONS] += 1
        left, right = values[conjuncts[number, at.LEFT_COLUMN], refs[one]], values[conjuncts[number, at.RIGHT_COLUMN], refs[two]]
        if conjuncts[number, at.COMBINATION]:
            left = combined(conjuncts[number, at.COMBINATION], left, right)
            right = values[conjuncts[number, at.CONSTANT], refs[max(one, two)]]
        if not compare(conjuncts[number, at.COMPARISON], left, right):
            return False
    return True


@inner
def combined(how: Any, left: Any, right: Any) -> Any:
    """A sum or difference; one that is not finite is null."""
    result = left + right if how == 1 else left - right
    return result if result - result == 0.0 else np.nan


@inner
def compare(code: Any, left: Any, right: Any) -> Any:
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
