"""Which candidates are consumed: before a start in their stream all, after it those whose bits are set."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import compiled, inner


@inner
def alive(world: Any, record: Any, column: Any, position: Any) -> Any:
    """Is the candidate not consumed? Those before the start are gone, and the one at the start is always there."""
    bits = world.records[record, column + at.BITS]
    if bits < 0:
        return True
    bit = position - world.records[record, column + at.BITS_FROM]
    if bit >> 6 >= world.records[record, column + at.WORDS]:
        return True
    return (world.pool[bits + (bit >> 6)] >> (bit & 63)) & 1 == 0


@inner
def consume(world: Any, record: Any, several: Any) -> Any:
    """What the first so many selections use leaves the lists that it was used from, unless it is retained."""
    s, cell = world.records[record, at.SITUATION], world.records[record, at.CELL]
    first, operands = world.situations[s, at.FIRST_OPERAND], world.situations[s, at.OPERANDS]
    for operand in range(operands):
        column = at.OPS + at.PER_OP * operand
        stream = world.streams[world.operands[first + operand, at.STREAM_BASE] + cell, at.FROM]
        for number in range(several):
            position = world.found[number, operand]
            if not (world.keeps[s, world.stream[stream + position]] >> operand) & 1:
                remove(world, record, column, position)


@inner
def remove(world: Any, record: Any, column: Any, position: Any) -> Any:
    start = world.records[record, column + at.START]
    if position < start:
        return
    if position == start:
        start += 1
        while not alive(world, record, column, start):
            start += 1
        world.records[record, column + at.START] = start
        return
    reserve(world, record, column, position)
    bit = position - world.records[record, column + at.BITS_FROM]
    world.pool[world.records[record, column + at.BITS] + (bit >> 6)] |= np.int64(1) << (bit & 63)


@inner
def reserve(world: Any, record: Any, column: Any, position: Any) -> Any:
    """Bits up to this position; words that lie before the start are dropped when they are moved."""
    bits, start = world.records[record, column + at.BITS], world.records[record, column + at.START]
    if bits < 0:
        world.records[record, column + at.BITS_FROM] = start
        world.records[record, column + at.WORDS] = 0
    origin, words = world.records[record, column + at.BITS_FROM], world.records[record, column + at.WORDS]
    needed = ((position - origin) >> 6) + 1
    if needed <= words:
        return
    dropped = (start - origin) >> 6
    size = max(4, 2 * (needed - dropped))
    new = world.counts[at.POOL]
    if new + size > len(world.pool):
        more = np.empty(2 * len(world.pool) + size, np.int64)
        for word in range(new):
            more[word] = world.pool[word]
        world.pool = more
    for word in range(size):
        world.pool[new + word] = 0
    for word in range(dropped, words):
        world.pool[new + word - dropped] = world.pool[bits + word]
    world.counts[at.POOL] += size
    world.records[record, column + at.BITS] = new
    world.records[record, column + at.BITS_FROM] = origin + 64 * dropped
    world.records[record, column + at.WORDS] = size


@compiled
def compacted_pool(records: Any, pool: Any) -> Any:
    """The bits that records still refer to."""
    size = 16
    for record in range(len(records)):
        for column in range(at.OPS, records.shape[1], at.PER_OP):
            if records[record, column + at.BITS] >= 0:
                size += records[record, column + at.WORDS]
    out, used = np.zeros(size, np.int64), 0
    for record in range(len(records)):
        for column in range(at.OPS, records.shape[1], at.PER_OP):
            bits, words = records[record, column + at.BITS], records[record, column + at.WORDS]
            if bits >= 0:
                for word in range(words):
                    out[used + word] = pool[bits + word]
                records[record, column + at.BITS] = used
                used += words
    return out[: max(used, 1)]
