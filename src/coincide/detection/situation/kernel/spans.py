"""Lifespans in the compiled loop: what opens and closes them, and the lists that they and their records are in.

One interval a definition means that expirations come in the order of openings: a queue each, no heap (section 8)."""

from __future__ import annotations

from typing import Any

from coincide.detection.columns.linked import append, free, grown, next_row, occupy, take_out
from coincide.detection.columns.records import Numbers
from coincide.detection.columns.worlds import ZERO, collected, compiled, inner, share
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.parts import op_at, stream_at
from coincide.detection.situation.kernel.queues import drop_timer, enlist, leave_cell, link_held, note_idle
from coincide.detection.situation.kernel.waiting import activate, deactivate


@inner
def terminate(world: Any, d: int, row: int, ended: int) -> Any:
    """Quantifiers look at the lifespans open before the event; the first terminator in order decides (decision 25)."""
    mask, key = world.of_lifespan[d, row, at.ROLE.terminators], world.of_lifespan[d, row, at.ROLE.key]
    if mask == 0 or key < 0:
        return ended
    oldest, newest = world.keys[key, at.KEY.oldest], world.keys[key, at.KEY.newest]
    span = oldest
    each = False
    for number in range(world.roles.shape[2]):
        each |= (mask >> number) & 1 and world.roles[d, at.COVERS, number] == at.EACH
    while span >= 0:
        following = world.spans[span, at.SPAN.after] if each or span != oldest or oldest == newest else newest
        for number in range(world.roles.shape[2]):
            quantifier = world.roles[d, at.COVERS, number]
            covers = quantifier == at.EACH or span == (oldest if quantifier == at.FIRST else newest)
            if (mask >> number) & 1 and covers:
                world.spans[span, at.SPAN.discard] = world.roles[d, at.DISCARDS, number]
                world.spans[span, at.SPAN.terminator] = number
                if ended == len(world.closed):
                    world.closed = grown(world.closed)
                world.closed[ended, 0] = span
                ended += 1
                close(world, span)
                break
        span = following
    return ended


@inner
def close(world: at.World, span: int) -> None:
    """Out of all lists; the slots are released once its situations have ended."""
    d = world.spans[span, at.SPAN.definition]
    key = world.spans[span, at.SPAN.key]
    take_out(world.spans, at.SPAN.before, span, world.keys, key, at.KEY.oldest)
    world.keys[key, at.KEY.open] -= 1
    if world.keys[key, at.KEY.open] == 0:
        note_idle(world, ZERO, key)
    world.counted[d + world.keys[key, at.KEY.whose], at.COUNTED.terminated] += 1
    if world.spans[span, at.SPAN.due] != at.NEVER:
        take_out(world.spans, at.SPAN.queue_before, span, world.lifespans, d, at.LIFESPAN.queue_first)
    record = world.spans[span, at.SPAN.records]
    while record >= 0:
        if not world.records[record, at.RECORD.done]:
            deactivate(world, record)
        record = world.records[record, at.RECORD.next_of_span]


@inner
def release(world: at.World, span: int) -> None:
    """All rows that belong to it are free."""
    record = world.spans[span, at.SPAN.records]
    while record >= 0:
        following = world.records[record, at.RECORD.next_of_span]
        leave_cell(world, world.records[record, at.RECORD.cell])
        free(world.records, world.heads[at.OF.records], record)
        record = following
    row = world.spans[span, at.SPAN.held_first]
    while row >= 0:
        leave_cell(world, world.held[row, at.WAITING.cell])
        free(world.held, world.heads[at.OF.held], row)
        row = world.held[row, at.WAITING.after]
    timer = world.spans[span, at.SPAN.timers_first]
    while timer >= 0:
        following = world.timers[timer, at.TIMER.span_after]
        drop_timer(world, timer)
        timer = following
    free(world.spans, world.heads[at.OF.spans], span)


@inner
def initiate(world: at.World, d: int, row: int, ref: int, now: int) -> Any:
    """`ignore` looks at the newest lifespan alone: it expires last. One that expires now is no hindrance (decision 35)."""
    mask, key = world.of_lifespan[d, row, at.ROLE.initiators], world.of_lifespan[d, row, at.ROLE.key]
    if mask == 0 or key < 0:
        return -1
    newest = world.keys[key, at.KEY.newest]
    free = newest < 0 or world.spans[newest, at.SPAN.due] <= now
    for number in range(world.roles.shape[2]):
        if (mask >> number) & 1 and (free or world.roles[d, at.ADDS, number]):
            due = now + world.lifespans[d, at.LIFESPAN.interval] if world.lifespans[d, at.LIFESPAN.interval] else at.NEVER
            world.counted[d + world.keys[key, at.KEY.whose], at.COUNTED.initiated] += 1
            return add_span(world, d, key, ref, due, number)
    return -1


@inner
def add_span(world: Any, d: int, key: int, ref: int, due: int, initiator: int) -> Any:
    if next_row(world.heads[at.OF.spans]) == len(world.spans):
        world.spans = grown(world.spans)
    span = occupy(world.spans, world.heads[at.OF.spans])
    world.spans[span, at.SPAN.definition] = d
    world.spans[span, at.SPAN.key] = key
    world.spans[span, at.SPAN.opened] = ref
    world.spans[span, at.SPAN.due] = due
    world.spans[span, at.SPAN.initiator] = initiator
    link_span(world, span)
    return span


@inner
def link_span(world: at.World, span: int) -> None:
    """To the lifespans of its key, and to those that expire, at the end; it has nothing yet."""
    for column in range(at.SPAN.before, at.SPAN.parts):
        world.spans[span, column] = -1
    key = world.spans[span, at.SPAN.key]
    append(world.spans, at.SPAN.before, span, world.keys, key, at.KEY.oldest)
    world.keys[key, at.KEY.open] += 1
    if world.spans[span, at.SPAN.due] != at.NEVER:
        d = world.spans[span, at.SPAN.definition]
        append(world.spans, at.SPAN.queue_before, span, world.lifespans, d, at.LIFESPAN.queue_first)


@inner
def only_cell(world: at.World, span: int, s: int) -> Any:
    """Of a situation without a local key."""
    return world.keys[world.spans[span, at.SPAN.key], at.KEY.parts + world.situations[s, at.SITUATION.among]]


@inner
def new_record(world: Any, span: int, s: int, cell: int) -> None:
    if next_row(world.heads[at.OF.records]) == len(world.records):
        world.records = grown(world.records)
    record = occupy(world.records, world.heads[at.OF.records])
    world.records[record, at.RECORD.span] = span
    world.records[record, at.RECORD.situation] = s
    world.records[record, at.RECORD.cell] = cell
    world.records[record, at.RECORD.done] = 0
    for column in range(at.RECORD.parts, world.records.shape[1], at.TAKEN.width):
        world.records[record, column + at.TAKEN.start] = -1
        world.records[record, column + at.TAKEN.bits] = -1
    for operand in range(world.situations[s, at.SITUATION.operands]):
        world.records[record, op_at(operand) + at.TAKEN.start] = world.cells[cell, stream_at(operand) + at.STREAM.filled]
    link_record(world, record)


@inner
def link_record(world: at.World, record: int) -> None:
    span = world.records[record, at.RECORD.span]
    world.records[record, at.RECORD.next_of_span] = world.spans[span, at.SPAN.records]
    world.spans[span, at.SPAN.records] = record
    world.cells[world.records[record, at.RECORD.cell], at.CELL.used] += 1
    if not world.records[record, at.RECORD.done]:
        activate(world, record)


@compiled
def relink(arrays: at.World, spans: Numbers, records: Numbers, timers: Numbers, held: Numbers) -> Any:
    """The lists of a state that was read: spans, records and what is held in the order of their making, timers by due time."""
    world = share(arrays)
    for span in spans:
        link_span(world, span)
    for record in records:
        link_record(world, record)
    for timer in timers:
        enlist(world, timer)
    for row in held:
        link_held(world, row)
    return collected(world)
