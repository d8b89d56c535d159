"""Lifespans in the compiled loop: what opens and closes them, and the lists that they and their records are in.

One interval a definition means that expirations come in the order of openings: a queue each, no heap (section 8)."""

from __future__ import annotations

from typing import Any

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import inner
from coincide.detection.situation.kernel.lists import append, enlist, grown, take_out
from coincide.detection.situation.kernel.waiting import activate, deactivate


@inner
def terminate(world: Any, d: Any, row: Any, ended: Any) -> Any:
    """Quantifiers look at the lifespans open before the event; the first terminator in order decides (decision 25)."""
    mask, key = world.of_lifespan[d, row, at.TERMINATORS], world.of_lifespan[d, row, at.KEY_NUMBER]
    if mask == 0 or key < 0:
        return ended
    place = world.lifespans[d, at.KEY_BASE] + key
    oldest, newest = world.keys[place, at.OLDEST], world.keys[place, at.NEWEST]
    span = oldest
    each = False
    for number in range(world.roles.shape[2]):
        each |= (mask >> number) & 1 and world.roles[d, at.COVERS, number] == at.EACH
    while span >= 0:
        following = world.spans[span, at.AFTER] if each or span != oldest or oldest == newest else newest
        for number in range(world.roles.shape[2]):
            quantifier = world.roles[d, at.COVERS, number]
            covers = quantifier == at.EACH or span == (oldest if quantifier == at.FIRST else newest)
            if (mask >> number) & 1 and covers:
                world.spans[span, at.DISCARD] = world.roles[d, at.DISCARDS, number]
                world.spans[span, at.TERMINATOR] = number
                if ended == len(world.closed):
                    world.closed = grown(world.closed)
                world.closed[ended, 0] = span
                ended += 1
                close(world, span)
                break
        span = following
    return ended


@inner
def close(world: Any, span: Any) -> Any:
    """Out of all lists; the slots are released once its situations have ended."""
    d = world.spans[span, at.DEFINITION]
    place = world.lifespans[d, at.KEY_BASE] + world.spans[span, at.KEY]
    take_out(world.spans, at.BEFORE, span, world.keys, place, at.OLDEST)
    world.keys[place, at.OPEN] -= 1
    world.lifespans[d, at.TERMINATED] += 1
    if world.spans[span, at.DUE] != at.NEVER:
        take_out(world.spans, at.QUEUE_BEFORE, span, world.lifespans, d, at.QUEUE_FIRST)
    record = world.spans[span, at.RECORDS]
    while record >= 0:
        if not world.records[record, at.DONE]:
            deactivate(world, record)
        record = world.records[record, at.NEXT_OF_SPAN]


@inner
def release(world: Any, span: Any) -> Any:
    record = world.spans[span, at.RECORDS]
    while record >= 0:
        following = world.records[record, at.NEXT_OF_SPAN]
        world.records[record, at.SPAN] = -1
        world.records[record, at.NEXT_OF_SPAN] = world.counts[at.FREE_RECORD]
        world.counts[at.FREE_RECORD] = record
        record = following
    row = world.spans[span, at.HELD_FIRST]
    while row >= 0:
        world.held[row, at.HELD_SPAN] = -1
        row = world.held[row, at.HELD_AFTER]
    world.spans[span, at.DEFINITION] = -1
    world.spans[span, at.AFTER] = world.counts[at.FREE_SPAN]
    world.counts[at.FREE_SPAN] = span


@inner
def initiate(world: Any, d: Any, row: Any, ref: Any, now: Any) -> Any:
    """`ignore` looks at the newest lifespan alone: it expires last. One that expires now is no hindrance (decision 35)."""
    mask, key = world.of_lifespan[d, row, at.INITIATORS], world.of_lifespan[d, row, at.KEY_NUMBER]
    if mask == 0 or key < 0:
        return -1
    newest = world.keys[world.lifespans[d, at.KEY_BASE] + key, at.NEWEST]
    free = newest < 0 or world.spans[newest, at.DUE] <= now
    for number in range(world.roles.shape[2]):
        if (mask >> number) & 1 and (free or world.roles[d, at.ADDS, number]):
            due = now + world.lifespans[d, at.INTERVAL] if world.lifespans[d, at.INTERVAL] else at.NEVER
            world.lifespans[d, at.INITIATED] += 1
            return add_span(world, d, key, ref, due, number)
    return -1


@inner
def add_span(world: Any, d: Any, key: Any, ref: Any, due: Any, initiator: Any) -> Any:
    span = world.counts[at.FREE_SPAN]
    if span >= 0:
        world.counts[at.FREE_SPAN] = world.spans[span, at.AFTER]
    else:
        span = world.counts[at.SPANS]
        world.counts[at.SPANS] += 1
    place = world.lifespans[d, at.KEY_BASE] + key
    world.spans[span, at.DEFINITION] = d
    world.spans[span, at.KEY] = key
    world.spans[span, at.OPENED] = ref
    world.spans[span, at.DUE] = due
    world.spans[span, at.INITIATOR] = initiator
    world.spans[span, at.RECORDS] = -1
    world.spans[span, at.TERMINATOR] = world.spans[span, at.HELD_FIRST] = world.spans[span, at.HELD_LAST] = -1
    append(world.spans, at.BEFORE, span, world.keys, place, at.OLDEST)
    world.keys[place, at.OPEN] += 1
    if due != at.NEVER:
        append(world.spans, at.QUEUE_BEFORE, span, world.lifespans, d, at.QUEUE_FIRST)
    return span


@inner
def new_record(world: Any, span: Any, s: Any, cell: Any) -> Any:
    record = world.counts[at.FREE_RECORD]
    if record >= 0:
        world.counts[at.FREE_RECORD] = world.records[record, at.NEXT_OF_SPAN]
    else:
        record = world.counts[at.RECORD_COUNT]
        world.counts[at.RECORD_COUNT] += 1
        if record == len(world.records):
            world.records = grown(world.records)
    world.records[record, at.SPAN] = span
    world.records[record, at.SITUATION] = s
    world.records[record, at.CELL] = cell
    world.records[record, at.DONE] = 0
    world.records[record, at.NEXT_OF_SPAN] = world.spans[span, at.RECORDS]
    world.spans[span, at.RECORDS] = record
    for column in range(at.OPS, world.records.shape[1], at.PER_OP):
        world.records[record, column + at.BITS] = -1
    first = world.situations[s, at.FIRST_OPERAND]
    for operand in range(world.situations[s, at.OPERANDS]):
        world.records[record, at.OPS + at.PER_OP * operand + at.START] = world.streams[
            world.operands[first + operand, at.STREAM_BASE] + cell, at.FILLED
        ]
    activate(world, record)


@inner
def relink(world: Any, old: Any) -> Any:
    """Lists of the spans and records that are open, both oldest first, and of timers."""
    for number in range(len(old)):
        span = old[number]
        add_span(world, span[at.DEFINITION], span[at.KEY], span[at.OPENED], span[at.DUE], span[at.INITIATOR])
    for record in range(world.counts[at.RECORD_COUNT]):
        span = world.records[record, at.SPAN]
        world.records[record, at.NEXT_OF_SPAN] = world.spans[span, at.RECORDS]
        world.spans[span, at.RECORDS] = record
        if not world.records[record, at.DONE]:
            activate(world, record)
    for timer in range(world.counts[at.TIMER_COUNT]):
        enlist(world, timer)
    for row in range(world.counts[at.HELD_COUNT]):
        append(world.held, at.HELD_BEFORE, row, world.spans, world.held[row, at.HELD_SPAN], at.HELD_FIRST)
