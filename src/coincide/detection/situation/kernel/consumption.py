"""Which candidates are consumed: before a start in their stream all, after it those whose bits are set."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import touch, with_room
from coincide.detection.columns.records import Numbers
from coincide.detection.columns.worlds import compiled, inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.parts import op_at, stream_at


@inner
def alive(world: at.World, record: int, column: int, position: int) -> Any:
    """Is the candidate not consumed? Those before the start are gone, and the one at the start is always there."""
    bits = world.records[record, column + at.TAKEN.bits]
    if bits < 0:
        return True
    bit = position - world.records[record, column + at.TAKEN.bits_from]
    if bit >> 6 >= world.records[record, column + at.TAKEN.words]:
        return True
    return (world.pool[bits + (bit >> 6)] >> (bit & 63)) & 1 == 0


@inner
def consume(world: at.World, record: int, several: int) -> None:
    """What the first so many selections use leaves the lists that it was used from, unless it is retained."""
    s, cell = world.records[record, at.RECORD.situation], world.records[record, at.RECORD.cell]
    for operand in range(world.situations[s, at.SITUATION.operands]):
        column = op_at(operand)
        origin = world.cells[cell, stream_at(operand) + at.STREAM.origin]
        for number in range(several):
            position = world.found[number, operand]
            if not (world.keeps[s, world.stream[origin + position]] >> operand) & 1:
                remove(world, record, column, position)


@inner
def remove(world: at.World, record: int, column: int, position: int) -> None:
    start = world.records[record, column + at.TAKEN.start]
    if position < start:
        return
    touch(world.records, world.heads[at.OF.records], record)
    if position == start:
        start += 1
        while not alive(world, record, column, start):
            start += 1
        world.records[record, column + at.TAKEN.start] = start
        return
    reserve(world, record, column, position)
    bit = position - world.records[record, column + at.TAKEN.bits_from]
    world.pool[world.records[record, column + at.TAKEN.bits] + (bit >> 6)] |= np.int64(1) << (bit & 63)


@inner
def reserve(world: Any, record: int, column: int, position: int) -> None:
    """Bits up to this position; words that lie before the start are dropped when they are moved."""
    bits, start = world.records[record, column + at.TAKEN.bits], world.records[record, column + at.TAKEN.start]
    if bits < 0:
        world.records[record, column + at.TAKEN.bits_from] = start
        world.records[record, column + at.TAKEN.words] = 0
    origin, words = world.records[record, column + at.TAKEN.bits_from], world.records[record, column + at.TAKEN.words]
    needed = ((position - origin) >> 6) + 1
    if needed <= words:
        return
    dropped = (start - origin) >> 6
    size = max(4, 2 * (needed - dropped))
    new = world.counts[at.COUNT.pool]
    if new + size > len(world.pool):
        world.pool = with_room(world.pool, new + size)
    for word in range(size):
        world.pool[new + word] = 0
    for word in range(dropped, words):
        world.pool[new + word - dropped] = world.pool[bits + word]
    world.counts[at.COUNT.pool] += size
    world.records[record, column + at.TAKEN.bits] = new
    world.records[record, column + at.TAKEN.bits_from] = origin + 64 * dropped
    world.records[record, column + at.TAKEN.words] = size


@compiled
def compacted_pool(records: Numbers, pool: Numbers) -> Any:
    """The bits that records still refer to."""
    size = 16
    for record in range(len(records)):
        for column in range(at.RECORD.parts, records.shape[1], at.TAKEN.width):
            if records[record, column + at.TAKEN.bits] >= 0:
                size += records[record, column + at.TAKEN.words]
    out, used = np.zeros(size, np.int64), 0
    for record in range(len(records)):
        for column in range(at.RECORD.parts, records.shape[1], at.TAKEN.width):
            bits, words = records[record, column + at.TAKEN.bits], records[record, column + at.TAKEN.words]
            if bits >= 0:
                for word in range(words):
                    out[used + word] = pool[bits + word]
                records[record, column + at.TAKEN.bits] = used
                used += words
    return out[: max(used, 1)]
