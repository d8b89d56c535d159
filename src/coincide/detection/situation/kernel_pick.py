"""Selections of `all` and `sequence` in the compiled loop: `pick` of section 4 without recursion, and what is consumed."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel_compiled import compiled, unowned
from coincide.detection.situation.kernel_layout import (
    BITS,
    BITS_FROM,
    CELL,
    CONJUNCTS_FROM,
    CONJUNCTS_TO,
    EACH,
    FILLED,
    FIRST_OPERAND,
    FOUND,
    FROM,
    KIND,
    LAST,
    OPERANDS,
    OPS,
    PER_OP,
    POOL,
    QUANTIFIER,
    SEQUENCE,
    SITUATION,
    START,
    STREAM_BASE,
    STRICT,
    WORDS,
)


@compiled
def pick(world: Any, records: Any, pool: Any, found: Any, scratch: Any, record: Any, mask: Any, arriving: Any) -> Any:  # noqa: PLR0915
    """All selections, as positions in the streams, a row each. With a mask, the arriving event must be in them; it is the last
    of each stream that it has entered.

    A depth-first search: an operand with `first` or `last` gives up its other candidates once one has led to a selection."""
    records, pool, scratch = unowned(records), unowned(pool), unowned(scratch)
    s, cell = records[record, SITUATION], records[record, CELL]
    base, size, kind = world.situations[s, FIRST_OPERAND], world.situations[s, OPERANDS], world.situations[s, KIND]
    operands, streams, stream, conjuncts, values = world.operands, world.streams, world.stream, world.conjuncts, world.values
    at, stop, before, refs = scratch[0], scratch[1], scratch[2], scratch[3]
    only = single(mask)
    number = 0
    level, has_arriving, entering = 0, -1, True
    while level >= 0:
        operand = base + level
        column = OPS + PER_OP * level
        place = operands[operand, STREAM_BASE] + cell
        offset, filled = streams[place, FROM], streams[place, FILLED]
        backwards = operands[operand, QUANTIFIER] == LAST
        if entering:
            start, end = records[record, column + START], filled
            if operands[operand, STRICT]:
                if backwards:
                    while end > start and not alive(records, pool, record, column, end - 1):
                        end -= 1
                    start = max(start, end - 1)
                else:
                    end = min(end, start + 1)
            elif mask and has_arriving < 0 and (mask >> (level + 1)) == 0:
                start = end - 1 if (mask >> level) & 1 else end
            if kind == SEQUENCE and level > 0 and not backwards:
                start = later(stream, offset, start, end, refs[level - 1])
            at[level], stop[level] = (end - 1, start - 1) if backwards else (start, end)
        elif number > before[level] and operands[operand, QUANTIFIER] != EACH:
            at[level] = stop[level]
        if has_arriving >= level:
            has_arriving = -1
        entering = False
        step = -1 if backwards else 1
        chosen = False
        while at[level] != stop[level] and not chosen:
            position = at[level]
            at[level] += step
            refs[level] = stream[offset + position]
            chosen = (
                alive(records, pool, record, column, position)
                and apart(refs, level, kind)
                and hold(conjuncts, values, refs, operands[operand, CONJUNCTS_FROM], operands[operand, CONJUNCTS_TO], -1)
            )
            if chosen and level < only:  # the arriving event is known before its turn comes
                refs[only], ahead = arriving, base + only
                chosen = hold(conjuncts, values, refs, operands[ahead, CONJUNCTS_FROM], operands[ahead, CONJUNCTS_TO], level)
            scratch[4, level] = position
        if not chosen:
            level -= 1
            continue
        before[level] = number
        if has_arriving < 0 and mask and refs[level] == arriving:
            has_arriving = level
        if level + 1 < size:
            level += 1
            entering = True
        elif mask == 0 or has_arriving >= 0:
            found = note(found, number, scratch, size)
            number += 1
    world.counts[FOUND] = number
    return found


@compiled
def single(mask: Any) -> Any:
    """The one operand of a mask; -1 if there are none or several."""
    if mask == 0 or mask & (mask - 1):
        return -1
    number = 0
    while mask > 1:
        mask >>= 1
        number += 1
    return number


@compiled
def later(stream: Any, offset: Any, start: Any, end: Any, ref: Any) -> Any:
    """The first position whose event arrived after `ref`."""
    while start < end:
        middle = (start + end) >> 1
        if stream[offset + middle] > ref:
            end = middle
        else:
            start = middle + 1
    return start


@compiled
def note(found: Any, number: Any, scratch: Any, size: Any) -> Any:
    if number == len(found):
        more = np.empty((2 * number, found.shape[1]), np.int64)
        more[:number] = found
        found = more
    for level in range(size):
        found[number, level] = scratch[4, level]
    return found


@compiled
def apart(refs: Any, level: Any, kind: Any) -> Any:
    """A sequence's candidates arrive one after another; no instance stands twice in a selection."""
    if kind == SEQUENCE:
        return level == 0 or refs[level] > refs[level - 1]
    for other in range(level):
        if refs[other] == refs[level]:
            level = -1
    return level >= 0


@compiled
def hold(conjuncts: Any, values: Any, refs: Any, first: Any, end: Any, other: Any) -> Any:
    """The parts of `where` that an operand completes; those with one other operand only, if that is not -1."""
    for number in range(first, end):
        if other >= 0 and min(conjuncts[number, 1], conjuncts[number, 3]) != other:
            continue
        left = values[conjuncts[number, 2], refs[conjuncts[number, 1]]]
        right = values[conjuncts[number, 4], refs[conjuncts[number, 3]]]
        if conjuncts[number, 5]:
            left = combined(conjuncts[number, 5], left, right)
            right = values[conjuncts[number, 6], refs[max(conjuncts[number, 1], conjuncts[number, 3])]]
        if not compare(conjuncts[number, 0], left, right):
            return False
    return True


@compiled
def combined(how: Any, left: Any, right: Any) -> Any:
    """A sum or difference; one that is not finite is null."""
    result = left + right if how == 1 else left - right
    return result if result - result == 0.0 else np.nan


@compiled
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


@compiled
def alive(records: Any, pool: Any, record: Any, column: Any, position: Any) -> Any:
    """Is the candidate not consumed? Those before the start are gone, and the one at the start is always there."""
    bits = records[record, column + BITS]
    if bits < 0:
        return True
    bit = position - records[record, column + BITS_FROM]
    if bit >> 6 >= records[record, column + WORDS]:
        return True
    return (pool[bits + (bit >> 6)] >> (bit & 63)) & 1 == 0


@compiled
def consume(world: Any, records: Any, pool: Any, found: Any, record: Any, s: Any, first: Any, operands: Any, several: Any) -> Any:
    """What the first so many selections use leaves the lists that it was used from, unless it is retained."""
    cell = records[record, CELL]
    for operand in range(operands):
        column = OPS + PER_OP * operand
        stream = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FROM]
        for number in range(several):
            position = found[number, operand]
            if not (world.keeps[s, world.stream[stream + position]] >> operand) & 1:
                pool = remove(world.counts, records, pool, record, column, position)
    return pool


@compiled
def remove(counts: Any, records: Any, pool: Any, record: Any, column: Any, position: Any) -> Any:
    start = records[record, column + START]
    if position < start:
        return pool
    if position == start:
        start += 1
        while not alive(records, pool, record, column, start):
            start += 1
        records[record, column + START] = start
        return pool
    pool = reserve(counts, records, pool, record, column, position)
    bit = position - records[record, column + BITS_FROM]
    pool[records[record, column + BITS] + (bit >> 6)] |= np.int64(1) << (bit & 63)
    return pool


@compiled
def reserve(counts: Any, records: Any, pool: Any, record: Any, column: Any, position: Any) -> Any:
    """Bits up to this position; words that lie before the start are dropped when they are moved."""
    bits, start = records[record, column + BITS], records[record, column + START]
    if bits < 0:
        records[record, column + BITS_FROM] = start
        records[record, column + WORDS] = 0
    origin, words = records[record, column + BITS_FROM], records[record, column + WORDS]
    needed = ((position - origin) >> 6) + 1
    if needed <= words:
        return pool
    dropped = (start - origin) >> 6
    size = max(4, 2 * (needed - dropped))
    new = counts[POOL]
    if new + size > len(pool):
        more = np.zeros(2 * len(pool) + size, np.int64)
        more[:new] = pool[:new]
        pool = more
    pool[new : new + size] = 0
    for word in range(dropped, words):
        pool[new + word - dropped] = pool[bits + word]
    counts[POOL] += size
    records[record, column + BITS] = new
    records[record, column + BITS_FROM] = origin + 64 * dropped
    records[record, column + WORDS] = size
    return pool


@compiled
def compacted_pool(records: Any, pool: Any) -> Any:
    """The bits that records still refer to."""
    size = 16
    for record in range(len(records)):
        for column in range(OPS, records.shape[1], PER_OP):
            if records[record, column + BITS] >= 0:
                size += records[record, column + WORDS]
    out, used = np.zeros(size, np.int64), 0
    for record in range(len(records)):
        for column in range(OPS, records.shape[1], PER_OP):
            bits, words = records[record, column + BITS], records[record, column + WORDS]
            if bits >= 0:
                out[used : used + words] = pool[bits : bits + words]
                records[record, column + BITS] = used
                used += words
    return out[: max(used, 1)]
