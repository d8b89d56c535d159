"""The compiled loop over the rows that matter. The functions are those of section 4 of the specification."""

from __future__ import annotations

import numba
import numpy as np

from coincide.detect.situation.kernel_layout import (
    ACTIVE_AFTER,
    ACTIVE_FIRST,
    AFTER,
    ATLEAST,
    ATMOST,
    BEFORE,
    BITS,
    BY_TIMER,
    CANDIDATES,
    CAUSE,
    CAUSE_NUMBER,
    CAUSE_REF,
    CAUSED_BY,
    CELL,
    CELL_BASE,
    CELL_NUMBER,
    CHOSEN,
    CLOCK,
    COUNTING,
    DEFERRED,
    DEFINITION,
    DETECTIONS,
    DISCARD,
    DONE,
    DUE,
    ENDED_BY,
    ENTERED,
    EXPIRY_DISCARDS,
    FILLED,
    FIRST_OPERAND,
    FIRST_REF,
    FOUND,
    FROM,
    INITIATOR,
    KEY,
    KEY_BASE,
    KEY_NUMBER,
    KIND,
    LIFESPAN,
    LOCAL,
    MADE,
    MODE,
    NEWEST,
    NEXT_OF_SPAN,
    NOT,
    NOW,
    OF_CELL,
    OF_INITIATOR,
    OF_SITUATION,
    OF_TERMINATOR,
    ONCE,
    OPEN,
    OPENED,
    OPENED_BY,
    OPERANDS,
    OPS,
    OVERRIDDEN,
    PER_OP,
    QUANTITY,
    QUEUE_FIRST,
    RANK,
    RECORDS,
    SEEN,
    SELECTED,
    SEQUENCE,
    SITUATION,
    SPAN,
    START,
    STREAM_BASE,
    TERMINATOR,
    TIMER,
    TYPE,
    TYPES,
    WEIGHT,
    WHEN,
    World,
)
from coincide.detect.situation.kernel_pick import consume, pick
from coincide.detect.situation.kernel_spans import close, deactivate, initiate, new_record, next_due, release, terminate
from coincide.detect.situation.kernel_unowned import unowned


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run(world, records, pool, made, selected, found, bound):  # type: ignore[no-untyped-def]
    """All rows, each after the expirations that come before it; then those due before `bound`."""
    world = borrowed(world)
    closed = np.empty(16, np.int64)
    opened = np.full(len(world.lifespans), -1, np.int64)
    scratch = np.empty((7, 1 + len(world.operands)), np.int64)
    types = world.counts[TYPES]
    due = next_due(world)
    for row in range(len(world.events)):
        now = world.events[row, WHEN]
        if due < now:  # it may have been closed since
            due = next_due(world)
        while due < now:
            records, pool, made, selected, found = expire(world, records, pool, made, selected, found, scratch)
            due = next_due(world)
        ref = world.counts[FIRST_REF] + row
        note_cause(world, 0, ref, now)
        kind = world.events[row, TYPE]
        ended = np.int64(0)
        for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
            d = world.lists[index]
            closed, ended = terminate(world, records, d, row, closed, ended)
            opened[d] = initiate(world, d, row, ref, now)
            if opened[d] >= 0:
                due = min(due, world.spans[opened[d], DUE])
        for index in range(world.list_starts[types + kind], world.list_starts[types + kind + 1]):
            s = world.lists[index]
            d = world.situations[s, LIFESPAN]
            for number in range(ended):
                span = closed[number]
                if world.spans[span, DEFINITION] == d and not world.spans[span, DISCARD]:
                    pool, made, selected, found = end(world, records, pool, made, selected, found, scratch, s, span)
            begun = opened[d]
            if world.of_situation[s, row, CELL_NUMBER] >= 0:
                records, pool, made, selected, found = collect(
                    world, records, pool, made, selected, found, scratch, s, row, ref, begun
                )
            if begun >= 0 and not world.situations[s, LOCAL]:
                records, _ = new_record(world, records, begun, s, world.spans[begun, KEY])
        for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
            opened[world.lists[index]] = -1
        for number in range(ended):
            release(world, records, closed[number])
    due = next_due(world)
    while due < bound:
        records, pool, made, selected, found = expire(world, records, pool, made, selected, found, scratch)
        due = next_due(world)
    return records, pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def borrowed(world):  # type: ignore[no-untyped-def]
    """The same arrays, without references to them being counted at every call."""
    return World(
        unowned(world.lifespans),
        unowned(world.roles),
        unowned(world.situations),
        unowned(world.operands),
        unowned(world.conjuncts),
        unowned(world.lists),
        unowned(world.list_starts),
        unowned(world.events),
        unowned(world.of_lifespan),
        unowned(world.of_situation),
        unowned(world.keeps),
        unowned(world.values),
        unowned(world.streams),
        unowned(world.stream),
        unowned(world.keys),
        unowned(world.cells),
        unowned(world.spans),
        unowned(world.counts),
    )


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def note_cause(world, timer, ref, now):  # type: ignore[no-untyped-def]
    world.counts[CAUSE] += 1
    world.counts[TIMER] = timer
    world.counts[CAUSED_BY] = ref
    world.counts[CLOCK] = now


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def expire(world, records, pool, made, selected, found, scratch):  # type: ignore[no-untyped-def]
    """The expiration that is due first; at one instant, the one that was set first."""
    best = np.int64(-1)
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, QUEUE_FIRST]
        if span >= 0 and (
            best < 0
            or world.spans[span, DUE] < world.spans[best, DUE]
            or (world.spans[span, DUE] == world.spans[best, DUE] and world.spans[span, OPENED] < world.spans[best, OPENED])
        ):
            best = span
    d = world.spans[best, DEFINITION]
    note_cause(world, 1, world.spans[best, OPENED], world.spans[best, DUE])
    close(world, records, best)
    if not world.lifespans[d, EXPIRY_DISCARDS]:
        for index in range(world.list_starts[2 * world.counts[TYPES] + d], world.list_starts[2 * world.counts[TYPES] + d + 1]):
            s = world.lists[index]
            pool, made, selected, found = end(world, records, pool, made, selected, found, scratch, s, best)
    release(world, records, best)
    return records, pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def end(world, records, pool, made, selected, found, scratch, s, span):  # type: ignore[no-untyped-def]
    """Deferred decisions, partition by partition in order of the local key's value."""
    if world.situations[s, MODE] != DEFERRED:
        return pool, made, selected, found
    several = 0
    record = world.spans[span, RECORDS]
    while record >= 0:
        several += records[record, SITUATION] == s
        record = records[record, NEXT_OF_SPAN]
    parts = np.empty(several, np.int64)
    ranks = np.empty(several, np.int64)
    several = 0
    record = world.spans[span, RECORDS]
    while record >= 0:
        if records[record, SITUATION] == s:
            parts[several] = record
            ranks[several] = world.cells[world.situations[s, CELL_BASE] + records[record, CELL], RANK]
            several += 1
        record = records[record, NEXT_OF_SPAN]
    if several > 1:
        parts = parts[np.argsort(ranks)]
    for record in parts:
        while True:
            pool, made, selected, found, some = decide(world, records, pool, made, selected, found, scratch, record, np.int64(0))
            if not some or world.situations[s, KIND] > SEQUENCE:
                break
    return pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def collect(world, records, pool, made, selected, found, scratch, s, row, ref, begun):  # type: ignore[no-untyped-def]
    mask, cell = world.of_situation[s, row, ENTERED], world.of_situation[s, row, CELL_NUMBER]
    if mask == 0 and not (world.situations[s, COUNTING] and world.situations[s, LOCAL]):
        return records, pool, made, selected, found
    d = world.situations[s, LIFESPAN]
    if world.situations[s, LOCAL]:
        records = add_partitions(world, records, s, d, row, ref, cell)
    first, size = world.situations[s, FIRST_OPERAND], 0
    for operand in range(world.situations[s, OPERANDS]):
        if (mask >> operand) & 1:
            world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED] += 1
            size += 1
    if size == 0:
        return records, pool, made, selected, found
    if world.situations[s, MODE] == DEFERRED:
        place = world.lifespans[d, KEY_BASE] + world.of_lifespan[d, row, KEY_NUMBER]
        world.situations[s, CANDIDATES] += size * (world.keys[place, OPEN] - (begun >= 0))
        return records, pool, made, selected, found
    overridden = mask & world.of_situation[s, row, OVERRIDDEN]
    waiting = world.cells[world.situations[s, CELL_BASE] + cell, ACTIVE_FIRST]
    pool, made, selected, found = try_all(
        world,
        records,
        pool,
        made,
        selected,
        found,
        scratch,
        s,
        cell,
        records_of,
        mask,
        mask & world.of_situation[s, row, OVERRIDDEN],
    )
    return records, pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def try_all(world, records, pool, made, selected, found, scratch, s, cell, record, mask, overridden):  # type: ignore[no-untyped-def]
    """A decision in each partition that has what it takes: a candidate for every operand, or the total. That is asked here,
    without calling anything, as most partitions have not."""
    kind, quantity = world.situations[s, KIND], world.situations[s, QUANTITY]
    first, operands = world.situations[s, FIRST_OPERAND], world.situations[s, OPERANDS]
    ends, weights, candidates = scratch[5], scratch[6], 0
    for operand in range(operands):
        ends[operand] = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED]
        weights[operand] = world.operands[first + operand, WEIGHT]
    entered = bits(mask)
    if kind == SEQUENCE:  # nothing comes after the arriving event, so it is the last one or none
        mask &= np.int64(1) << (operands - 1)
    while record >= 0:
        following = records[record, ACTIVE_AFTER]
        candidates += 1
        if overridden:
            override(records, record, ends, operands, overridden)
        ready, total = True, 0
        for operand in range(operands):
            length = ends[operand] - records[record, OPS + PER_OP * operand + START]
            total += weights[operand] * length
            ready = ready and length > 0
        if ready and mask if kind <= SEQUENCE else satisfied(kind, total, quantity):
            pool, made, selected, found, _ = decide(world, records, pool, made, selected, found, scratch, record, mask)
        record = following
    world.situations[s, CANDIDATES] += candidates * entered
    return pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def bits(mask):  # type: ignore[no-untyped-def]
    number = 0
    while mask:
        number += mask & 1
        mask >>= 1
    return number


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def override(records, record, ends, operands, mask):  # type: ignore[no-untyped-def]
    """The list is emptied before the new candidate enters it (decision 19)."""
    for operand in range(operands):
        if (mask >> operand) & 1:
            column = OPS + PER_OP * operand
            records[record, column + START] = ends[operand] - 1
            records[record, column + BITS] = -1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_partitions(world, records, s, d, row, ref, cell):  # type: ignore[no-untyped-def]
    """Partitions of this local key value in the lifespans that were opened since the last event with it, oldest first."""
    place = world.situations[s, CELL_BASE] + cell
    span = world.keys[world.lifespans[d, KEY_BASE] + world.of_lifespan[d, row, KEY_NUMBER], NEWEST]
    oldest = -1
    while span >= 0 and world.spans[span, OPENED] >= world.cells[place, SEEN]:
        if world.spans[span, OPENED] < ref:
            oldest = span
        span = world.spans[span, BEFORE]
    world.cells[place, SEEN] = ref
    while oldest >= 0 and world.spans[oldest, OPENED] < ref:
        records, _ = new_record(world, records, oldest, s, cell)
        oldest = world.spans[oldest, AFTER]
    return records


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def decide(world, records, pool, made, selected, found, scratch, record, mask):  # type: ignore[no-untyped-def]
    """`detect` of section 4. A mask says which operands the arriving event has entered; none: a deferred decision."""
    if records[record, DONE]:
        return pool, made, selected, found, False
    s = records[record, SITUATION]
    first, cell = world.situations[s, FIRST_OPERAND], records[record, CELL]
    operands = world.situations[s, OPERANDS]
    if world.situations[s, KIND] <= SEQUENCE:
        for operand in range(operands):
            filled = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED]
            if records[record, OPS + PER_OP * operand + START] >= filled:
                return pool, made, selected, found, False
        found = pick(world, records, pool, found, scratch, record, mask, world.counts[CAUSED_BY])
        several = world.counts[FOUND]
        if several and world.situations[s, ONCE]:
            several = 1
        for number in range(several):
            made = report(world.counts, world.spans, world.situations, records, made, record)
            for operand in range(operands):
                stream = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FROM]
                selected = select(world.counts, selected, operand, world.stream[stream + found[number, operand]])
        pool = consume(world, records, pool, found, record, s, first, operands, several)
    else:
        total, several = np.int64(0), 1
        for operand in range(operands):
            length = (
                world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED]
                - records[record, OPS + PER_OP * operand + START]
            )
            total += length if world.situations[s, KIND] == NOT else world.operands[first + operand, WEIGHT] * length
        if not satisfied(world.situations[s, KIND], total, world.situations[s, QUANTITY]):
            return pool, made, selected, found, False
        made = report(world.counts, world.spans, world.situations, records, made, record)
        for operand in range(operands if world.situations[s, KIND] != NOT else 0):
            stream = world.operands[first + operand, STREAM_BASE] + cell
            column = OPS + PER_OP * operand + START
            for position in range(records[record, column], world.streams[stream, FILLED]):
                selected = select(world.counts, selected, operand, world.stream[world.streams[stream, FROM] + position])
            records[record, column] = world.streams[stream, FILLED]
    if several and world.situations[s, ONCE]:
        records[record, DONE] = 1
        if mask:
            deactivate(world, records, record)
    return pool, made, selected, found, several > 0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def satisfied(kind, total, quantity):  # type: ignore[no-untyped-def]
    if kind == ATLEAST:
        return total >= quantity
    if kind == ATMOST:
        return total < quantity
    return total == (0 if kind == NOT else quantity)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def report(counts, spans, situations, records, made, record):  # type: ignore[no-untyped-def]
    number, span = counts[MADE], records[record, SPAN]
    if number == len(made):
        more = np.empty((2 * number, made.shape[1]), np.int64)
        more[:number] = made
        made = more
    made[number, BY_TIMER] = counts[TIMER]
    made[number, CAUSE_NUMBER] = counts[CAUSE]
    made[number, CAUSE_REF] = counts[CAUSED_BY]
    made[number, NOW] = counts[CLOCK]
    made[number, OF_SITUATION] = records[record, SITUATION]
    made[number, OF_CELL] = records[record, CELL]
    made[number, OPENED_BY] = spans[span, OPENED]
    made[number, OF_INITIATOR] = spans[span, INITIATOR]
    made[number, OF_TERMINATOR] = spans[span, TERMINATOR]
    made[number, ENDED_BY] = counts[CAUSED_BY] if spans[span, TERMINATOR] >= 0 else -1
    made[number, CHOSEN] = counts[SELECTED]
    counts[MADE] += 1
    situations[records[record, SITUATION], DETECTIONS] += 1
    return made


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def select(counts, selected, operand, ref):  # type: ignore[no-untyped-def]
    number = counts[SELECTED]
    if number == len(selected):
        more = np.empty((2 * number, 2), np.int64)
        more[:number] = selected
        selected = more
    selected[number, 0] = operand
    selected[number, 1] = ref
    counts[SELECTED] += 1
    return selected
