"""Selections of `all` and `sequence` in the compiled loop: `pick` of section 4 without recursion, and what is consumed."""

from __future__ import annotations

import numba
import numpy as np

# Columns of `records` that are used here; for each operand, from OPS on: where its candidates start in the stream, and which
# after that are consumed: bits in the pool (-1: none), the position of the first of them, how many words.
RECORD_SITUATION, RECORD_CELL, DONE, OPS = 1, 2, 3, 7
START, BITS, BITS_FROM, WORDS, PER_OP = 0, 1, 2, 3, 4
POOL_COUNT, FOUND_COUNT = 2, 5  # in `counts`
EACH, FIRST, LAST = 0, 1, 2


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pick(tables, rows, links, records, pool, found, counts, scratch, record, mask, arriving):  # type: ignore[no-untyped-def]
    """All selections, as positions in the streams, a row each. With a mask, the arriving event must be in them; it is the last
    of each stream that it has entered.

    A depth-first search: an operand with `first` or `last` gives up its other candidates once one has led to a selection."""
    s, cell = records[record, RECORD_SITUATION], records[record, RECORD_CELL]
    base = tables.operand_starts[s]
    size = tables.operand_starts[s + 1] - base
    at, stop, before, refs = scratch[0], scratch[1], scratch[2], scratch[3]
    counts[FOUND_COUNT] = 0
    level, has_arriving, entering = 0, -1, True
    while level >= 0:
        operand = base + level
        column = OPS + PER_OP * level
        place = rows.stream_base[operand] + cell
        stream, filled = rows.stream_starts[place], links.filled[place]
        backwards = tables.quantifier[operand] == LAST
        if entering:
            start, end = records[record, column + START], filled
            if tables.strict[operand]:
                if backwards:
                    while end > start and not alive(records, pool, record, column, end - 1):
                        end -= 1
                    start = max(start, end - 1)
                else:
                    end = min(end, start + 1)
            elif mask and has_arriving < 0 and (mask >> (level + 1)) == 0:
                start = end - 1 if (mask >> level) & 1 else end
            if tables.kind[s] == 1 and level > 0 and not backwards:
                start = later(rows.stream, stream, start, end, refs[level - 1])
            at[level], stop[level] = (end - 1, start - 1) if backwards else (start, end)
        elif counts[FOUND_COUNT] > before[level] and tables.quantifier[operand] != EACH:
            at[level] = stop[level]
        if has_arriving >= level:
            has_arriving = -1
        entering = False
        step = -1 if backwards else 1
        chosen = False
        while at[level] != stop[level]:
            position = at[level]
            at[level] += step
            if fits(tables, rows, records, pool, record, column, s, operand, level, refs, stream, position):
                chosen = True
                refs[level] = rows.stream[stream + position]
                scratch[4, level] = position
                break
        if not chosen:
            level -= 1
            continue
        before[level] = counts[FOUND_COUNT]
        if has_arriving < 0 and mask and refs[level] == arriving:
            has_arriving = level
        if level + 1 < size:
            level += 1
            entering = True
        elif mask == 0 or has_arriving >= 0:
            found = note(found, counts, scratch, size)
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def later(stream, offset, start, end, ref):  # type: ignore[no-untyped-def]
    """The first position whose event arrived after `ref`."""
    while start < end:
        middle = (start + end) >> 1
        if stream[offset + middle] > ref:
            end = middle
        else:
            start = middle + 1
    return start


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def note(found, counts, scratch, size):  # type: ignore[no-untyped-def]
    number = counts[FOUND_COUNT]
    if number == len(found):
        more = np.empty((2 * number, found.shape[1]), np.int64)
        more[:number] = found
        found = more
    for level in range(size):
        found[number, level] = scratch[4, level]
    counts[FOUND_COUNT] += 1
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fits(tables, rows, records, pool, record, column, s, operand, level, refs, stream, position):  # type: ignore[no-untyped-def]
    if not alive(records, pool, record, column, position):
        return False
    ref = rows.stream[stream + position]
    if tables.kind[s] == 1:
        if level > 0 and ref <= refs[level - 1]:
            return False
    else:
        for other in range(level):
            if refs[other] == ref:
                return False
    refs[level] = ref
    for number in range(tables.conjunct_starts[operand], tables.conjunct_starts[operand + 1]):
        conjunct = tables.conjuncts[number]
        left = rows.values[conjunct[2], refs[conjunct[1]]]
        if not compare(conjunct[0], left, rows.values[conjunct[4], refs[conjunct[3]]]):
            return False
    return True


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def compare(code, left, right):  # type: ignore[no-untyped-def]
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


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def alive(records, pool, record, column, position):  # type: ignore[no-untyped-def]
    """Is the candidate not consumed? Those before the start are gone, and the one at the start is always there."""
    bits = records[record, column + BITS]
    if bits < 0:
        return True
    bit = position - records[record, column + BITS_FROM]
    if bit >> 6 >= records[record, column + WORDS]:
        return True
    return (pool[bits + (bit >> 6)] >> (bit & 63)) & 1 == 0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def consume(rows, records, pool, found, counts, record, s, first, operands, several):  # type: ignore[no-untyped-def]
    """What the first so many selections use leaves the lists that it was used from, unless it is retained."""
    cell = records[record, RECORD_CELL]
    for operand in range(operands):
        column = OPS + PER_OP * operand
        stream = rows.stream_starts[rows.stream_base[first + operand] + cell]
        for number in range(several):
            position = found[number, operand]
            if not (rows.keeps[s, rows.stream[stream + position]] >> operand) & 1:
                pool = remove(records, pool, counts, record, column, position)
    return pool


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def remove(records, pool, counts, record, column, position):  # type: ignore[no-untyped-def]
    start = records[record, column + START]
    if position < start:
        return pool
    if position == start:
        start += 1
        while not alive(records, pool, record, column, start):
            start += 1
        records[record, column + START] = start
        return pool
    pool = reserve(records, pool, counts, record, column, position)
    bit = position - records[record, column + BITS_FROM]
    pool[records[record, column + BITS] + (bit >> 6)] |= np.int64(1) << (bit & 63)
    return pool


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def reserve(records, pool, counts, record, column, position):  # type: ignore[no-untyped-def]
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
    new = counts[POOL_COUNT]
    if new + size > len(pool):
        more = np.zeros(2 * len(pool) + size, np.int64)
        more[:new] = pool[:new]
        pool = more
    pool[new : new + size] = 0
    for word in range(dropped, words):
        pool[new + word - dropped] = pool[bits + word]
    counts[POOL_COUNT] += size
    records[record, column + BITS] = new
    records[record, column + BITS_FROM] = origin + 64 * dropped
    records[record, column + WORDS] = size
    return pool
