"""Lifespans in the compiled loop: what opens and closes them, and the lists that they and their records are in.

Records that still wait for candidates are linked, oldest first: one that is done or closed leaves the list and is never looked at
again. One interval a definition means that expirations come in the order of openings: a queue each, no heap (section 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel_compiled import compiled
from coincide.detection.situation.kernel_layout import (
    ACTIVE_AFTER,
    ACTIVE_BEFORE,
    ACTIVE_FIRST,
    ACTIVE_LAST,
    ADDS,
    AFTER,
    BEFORE,
    BITS,
    CELL,
    CELL_BASE,
    COVERS,
    DEFINITION,
    DISCARD,
    DISCARDS,
    DONE,
    DUE,
    FILLED,
    FIRST_OPERAND,
    FREE_RECORD,
    FREE_SPAN,
    INITIATED,
    INITIATOR,
    INITIATORS,
    INTERVAL,
    KEY,
    KEY_BASE,
    KEY_NUMBER,
    NEVER,
    NEWEST,
    NEXT_OF_SPAN,
    OLDEST,
    OPEN,
    OPENED,
    OPERANDS,
    OPS,
    PER_OP,
    QUEUE_AFTER,
    QUEUE_BEFORE,
    QUEUE_FIRST,
    QUEUE_LAST,
    RECORD_COUNT,
    RECORDS,
    SITUATION,
    SPAN,
    SPANS,
    START,
    STREAM_BASE,
    TERMINATED,
    TERMINATOR,
    TERMINATORS,
)


@compiled
def terminate(world: Any, records: Any, d: Any, row: Any, closed: Any, ended: Any) -> Any:
    """Quantifiers look at the lifespans open before the event; the first terminator in order decides (decision 25)."""
    mask, key = world.of_lifespan[d, row, TERMINATORS], world.of_lifespan[d, row, KEY_NUMBER]
    if mask == 0 or key < 0:
        return closed, ended
    place = world.lifespans[d, KEY_BASE] + key
    oldest, newest = world.keys[place, OLDEST], world.keys[place, NEWEST]
    span = oldest
    each = False
    for number in range(world.roles.shape[2]):
        each |= (mask >> number) & 1 and world.roles[d, COVERS, number] == 0
    while span >= 0:
        following = world.spans[span, AFTER] if each or span != oldest or oldest == newest else newest
        for number in range(world.roles.shape[2]):
            quantifier = world.roles[d, COVERS, number]
            covers = quantifier == 0 or (quantifier == 1 and span == oldest) or (quantifier == 2 and span == newest)
            if (mask >> number) & 1 and covers:
                world.spans[span, DISCARD] = world.roles[d, DISCARDS, number]
                world.spans[span, TERMINATOR] = number
                if ended == len(closed):
                    closed = np.concatenate((closed, closed))
                closed[ended] = span
                ended += 1
                close(world, records, span)
                break
        span = following
    return closed, ended


@compiled
def close(world: Any, records: Any, span: Any) -> Any:
    """Out of all lists; the slots are released once its situations have ended."""
    d = world.spans[span, DEFINITION]
    place = world.lifespans[d, KEY_BASE] + world.spans[span, KEY]
    before, after = world.spans[span, BEFORE], world.spans[span, AFTER]
    if before >= 0:
        world.spans[before, AFTER] = after
    else:
        world.keys[place, OLDEST] = after
    if after >= 0:
        world.spans[after, BEFORE] = before
    else:
        world.keys[place, NEWEST] = before
    world.keys[place, OPEN] -= 1
    world.lifespans[d, TERMINATED] += 1
    if world.spans[span, DUE] != NEVER:
        before, after = world.spans[span, QUEUE_BEFORE], world.spans[span, QUEUE_AFTER]
        if before >= 0:
            world.spans[before, QUEUE_AFTER] = after
        else:
            world.lifespans[d, QUEUE_FIRST] = after
        if after >= 0:
            world.spans[after, QUEUE_BEFORE] = before
        else:
            world.lifespans[d, QUEUE_LAST] = before
    record = world.spans[span, RECORDS]
    while record >= 0:
        if not records[record, DONE]:
            deactivate(world, records, record)
        record = records[record, NEXT_OF_SPAN]


@compiled
def release(world: Any, records: Any, span: Any) -> Any:
    record = world.spans[span, RECORDS]
    while record >= 0:
        following = records[record, NEXT_OF_SPAN]
        records[record, SPAN] = -1
        records[record, NEXT_OF_SPAN] = world.counts[FREE_RECORD]
        world.counts[FREE_RECORD] = record
        record = following
    world.spans[span, DEFINITION] = -1
    world.spans[span, AFTER] = world.counts[FREE_SPAN]
    world.counts[FREE_SPAN] = span


@compiled
def initiate(world: Any, d: Any, row: Any, ref: Any, now: Any) -> Any:
    """`ignore` looks at the newest lifespan alone: it expires last. One that expires now is no hindrance (decision 35)."""
    mask, key = world.of_lifespan[d, row, INITIATORS], world.of_lifespan[d, row, KEY_NUMBER]
    if mask == 0 or key < 0:
        return -1
    newest = world.keys[world.lifespans[d, KEY_BASE] + key, NEWEST]
    free = newest < 0 or world.spans[newest, DUE] <= now
    for number in range(world.roles.shape[2]):
        if (mask >> number) & 1 and (free or world.roles[d, ADDS, number]):
            due = now + world.lifespans[d, INTERVAL] if world.lifespans[d, INTERVAL] else NEVER
            world.lifespans[d, INITIATED] += 1
            return add_span(world, d, key, ref, due, number)
    return -1


@compiled
def add_span(world: Any, d: Any, key: Any, ref: Any, due: Any, initiator: Any) -> Any:
    span = world.counts[FREE_SPAN]
    if span >= 0:
        world.counts[FREE_SPAN] = world.spans[span, AFTER]
    else:
        span = world.counts[SPANS]
        world.counts[SPANS] += 1
    place = world.lifespans[d, KEY_BASE] + key
    before = world.keys[place, NEWEST]
    world.spans[span, DEFINITION] = d
    world.spans[span, KEY] = key
    world.spans[span, OPENED] = ref
    world.spans[span, DUE] = due
    world.spans[span, INITIATOR] = initiator
    world.spans[span, BEFORE] = before
    world.spans[span, AFTER] = -1
    world.spans[span, QUEUE_BEFORE] = -1
    world.spans[span, QUEUE_AFTER] = -1
    world.spans[span, RECORDS] = -1
    world.spans[span, TERMINATOR] = -1
    if before >= 0:
        world.spans[before, AFTER] = span
    else:
        world.keys[place, OLDEST] = span
    world.keys[place, NEWEST] = span
    world.keys[place, OPEN] += 1
    if due != NEVER:
        before = world.lifespans[d, QUEUE_LAST]
        world.spans[span, QUEUE_BEFORE] = before
        if before >= 0:
            world.spans[before, QUEUE_AFTER] = span
        else:
            world.lifespans[d, QUEUE_FIRST] = span
        world.lifespans[d, QUEUE_LAST] = span
    return span


@compiled
def next_due(world: Any) -> Any:
    due = NEVER
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, QUEUE_FIRST]
        if span >= 0:
            due = min(due, world.spans[span, DUE])
    return due


@compiled
def new_record(world: Any, records: Any, span: Any, s: Any, cell: Any) -> Any:
    record = world.counts[FREE_RECORD]
    if record >= 0:
        world.counts[FREE_RECORD] = records[record, NEXT_OF_SPAN]
    else:
        record = world.counts[RECORD_COUNT]
        world.counts[RECORD_COUNT] += 1
        if record == len(records):
            more = np.empty((2 * len(records), records.shape[1]), np.int64)
            more[:record] = records
            records = more
    records[record, SPAN] = span
    records[record, SITUATION] = s
    records[record, CELL] = cell
    records[record, DONE] = 0
    records[record, NEXT_OF_SPAN] = world.spans[span, RECORDS]
    world.spans[span, RECORDS] = record
    for column in range(OPS, records.shape[1], PER_OP):
        records[record, column + BITS] = -1
    first = world.situations[s, FIRST_OPERAND]
    for operand in range(world.situations[s, OPERANDS]):
        records[record, OPS + PER_OP * operand + START] = world.streams[
            world.operands[first + operand, STREAM_BASE] + cell, FILLED
        ]
    activate(world, records, record)
    return records, record


@compiled
def activate(world: Any, records: Any, record: Any) -> Any:
    place = world.situations[records[record, SITUATION], CELL_BASE] + records[record, CELL]
    before = world.cells[place, ACTIVE_LAST]
    records[record, ACTIVE_BEFORE] = before
    records[record, ACTIVE_AFTER] = -1
    if before >= 0:
        records[before, ACTIVE_AFTER] = record
    else:
        world.cells[place, ACTIVE_FIRST] = record
    world.cells[place, ACTIVE_LAST] = record


@compiled
def deactivate(world: Any, records: Any, record: Any) -> Any:
    place = world.situations[records[record, SITUATION], CELL_BASE] + records[record, CELL]
    before, after = records[record, ACTIVE_BEFORE], records[record, ACTIVE_AFTER]
    if before >= 0:
        records[before, ACTIVE_AFTER] = after
    else:
        world.cells[place, ACTIVE_FIRST] = after
    if after >= 0:
        records[after, ACTIVE_BEFORE] = before
    else:
        world.cells[place, ACTIVE_LAST] = before


@compiled
def relink(world: Any, old: Any, records: Any) -> Any:
    """Lists of the spans and records that are open, both oldest first."""
    for number in range(len(old)):
        span = old[number]
        add_span(world, span[DEFINITION], span[KEY], span[OPENED], span[DUE], span[INITIATOR])
    for record in range(world.counts[RECORD_COUNT]):
        span = records[record, SPAN]
        records[record, NEXT_OF_SPAN] = world.spans[span, RECORDS]
        world.spans[span, RECORDS] = record
        if not records[record, DONE]:
            activate(world, records, record)
