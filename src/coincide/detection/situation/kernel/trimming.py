"""What nobody can ask for any more, at the end of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import touch
from coincide.detection.columns.records import Numbers
from coincide.detection.columns.worlds import NONE, collected, compiled, inner, share
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.parts import op_at, stream_at

FEW = 8
"""So many candidates are kept of a flag at least."""


@inner
def trim(world: at.World, cell: int) -> None:
    """Streams begin where the first record starts."""
    s = world.cells[cell, at.CELL.situation]
    if world.situations[s, at.SITUATION.kind] >= at.PASSED:
        return
    first = world.situations[s, at.SITUATION.first_operand]
    for operand in range(world.situations[s, at.SITUATION.operands]):
        column = stream_at(operand)
        filled = world.cells[cell, column + at.STREAM.filled]
        low, several = filled, 0
        for number in range(-1, world.situations[s, at.SITUATION.operands]):
            record = first_of(world, cell, number)
            while record >= 0:
                low = min(low, world.records[record, op_at(operand) + at.TAKEN.start])
                several += 1
                record = world.records[record, at.RECORD.list_after]
        world.cells[cell, column + at.STREAM.low] = low
        if world.operands[first + operand, at.OPERAND.flag] and filled - low > FEW + 2 * several:
            keep_flags(world, cell, operand, several)


@inner
def first_of(world: at.World, cell: int, number: int) -> Any:
    """The first of the records that are ready (-1), or that watch an operand."""
    if number < 0:
        return world.cells[cell, at.CELL.ready_first]
    return world.cells[cell, stream_at(number) + at.STREAM.watched_first]


@inner
def keep_flags(world: at.World, cell: int, operand: int, several: int) -> None:
    """Of an operand of which it matters only whether there is a candidate: the first of each record, at new positions."""
    column, own, s = stream_at(operand), op_at(operand), world.cells[cell, at.CELL.situation]
    filled, low = world.cells[cell, column + at.STREAM.filled], world.cells[cell, column + at.STREAM.low]
    origin = world.cells[cell, column + at.STREAM.origin]
    starts, size = np.empty(several, np.int64), 0
    for number in range(-1, world.situations[s, at.SITUATION.operands]):
        record = first_of(world, cell, number)
        while record >= 0:
            starts[size] = world.records[record, own + at.TAKEN.start]
            size += 1
            record = world.records[record, at.RECORD.list_after]
    starts.sort()
    count, last = 0, NONE
    for number in range(size):
        if starts[number] < filled and starts[number] != last:
            last = starts[number]
            world.stream[origin + low + count] = world.stream[origin + last]
            starts[count] = last
            count += 1
    for number in range(-1, world.situations[s, at.SITUATION.operands]):
        record = first_of(world, cell, number)
        while record >= 0:
            moved = np.searchsorted(starts[:count], world.records[record, own + at.TAKEN.start])
            world.records[record, own + at.TAKEN.start] = filled + moved
            touch(world.records, world.heads[at.OF.records], record)
            record = world.records[record, at.RECORD.list_after]
    world.cells[cell, column + at.STREAM.low] = filled
    world.cells[cell, column + at.STREAM.filled] = filled + count
    world.cells[cell, column + at.STREAM.origin] = origin + low - filled
    world.cells[cell, column + at.STREAM.limit] += filled - low


@compiled
def trim_all(arrays: at.World, cells: Numbers) -> Any:
    world = share(arrays)
    for cell in cells:
        trim(world, cell)
    return collected(world)
