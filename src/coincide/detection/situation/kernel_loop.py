"""The compiled loop over the rows that matter. The functions are those of section 4 of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel_compiled import compiled, unowned
from coincide.detection.situation.kernel_decide import decide, satisfied
from coincide.detection.situation.kernel_layout import (
    ACTIVE_AFTER,
    ACTIVE_FIRST,
    AFTER,
    BEFORE,
    BITS,
    CANDIDATES,
    CAUSE,
    CAUSED_BY,
    CELL,
    CELL_BASE,
    CELL_NUMBER,
    CLOCK,
    COUNTING,
    DEFERRED,
    DEFINITION,
    DISCARD,
    DUE,
    ENTERED,
    EXPIRY_DISCARDS,
    FILLED,
    FIRST_OPERAND,
    FIRST_REF,
    INITIATORS,
    KEY,
    KEY_BASE,
    KEY_NUMBER,
    KIND,
    LIFESPAN,
    LOCAL,
    MODE,
    NEWEST,
    NEXT_OF_SPAN,
    OPEN,
    OPENED,
    OPERANDS,
    OPS,
    OVERRIDDEN,
    PER_OP,
    QUANTITY,
    QUEUE_FIRST,
    RANK,
    RECORDS,
    SEEN,
    SEQUENCE,
    SITUATION,
    START,
    STREAM_BASE,
    TERMINATORS,
    TIMER,
    TYPE,
    TYPES,
    WEIGHT,
    WHEN,
    World,
)
from coincide.detection.situation.kernel_spans import close, initiate, new_record, next_due, release, terminate


@compiled
def run(world: Any, records: Any, pool: Any, made: Any, selected: Any, found: Any, bound: Any) -> Any:
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
            if world.of_lifespan[d, row, TERMINATORS]:
                closed, ended = terminate(world, records, d, row, closed, ended)
            if world.of_lifespan[d, row, INITIATORS]:
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


@compiled
def borrowed(world: Any) -> Any:
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


@compiled
def note_cause(world: Any, timer: Any, ref: Any, now: Any) -> Any:
    world.counts[CAUSE] += 1
    world.counts[TIMER] = timer
    world.counts[CAUSED_BY] = ref
    world.counts[CLOCK] = now


@compiled
def expire(world: Any, records: Any, pool: Any, made: Any, selected: Any, found: Any, scratch: Any) -> Any:
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


@compiled
def end(world: Any, records: Any, pool: Any, made: Any, selected: Any, found: Any, scratch: Any, s: Any, span: Any) -> Any:
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


@compiled
def collect(
    world: Any,
    records: Any,
    pool: Any,
    made: Any,
    selected: Any,
    found: Any,
    scratch: Any,
    s: Any,
    row: Any,
    ref: Any,
    begun: Any,
) -> Any:
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
        world, records, pool, made, selected, found, scratch, s, cell, waiting, mask, overridden
    )
    return records, pool, made, selected, found


@compiled
def try_all(
    world: Any,
    records: Any,
    pool: Any,
    made: Any,
    selected: Any,
    found: Any,
    scratch: Any,
    s: Any,
    cell: Any,
    record: Any,
    mask: Any,
    overridden: Any,
) -> Any:
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


@compiled
def bits(mask: Any) -> Any:
    number = 0
    while mask:
        number += mask & 1
        mask >>= 1
    return number


@compiled
def override(records: Any, record: Any, ends: Any, operands: Any, mask: Any) -> Any:
    """The list is emptied before the new candidate enters it (decision 19)."""
    for operand in range(operands):
        if (mask >> operand) & 1:
            column = OPS + PER_OP * operand
            records[record, column + START] = ends[operand] - 1
            records[record, column + BITS] = -1


@compiled
def add_partitions(world: Any, records: Any, s: Any, d: Any, row: Any, ref: Any, cell: Any) -> Any:
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
