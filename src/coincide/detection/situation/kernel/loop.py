"""The compiled loop over the rows that matter. The functions are those of section 4 of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import touch
from coincide.detection.columns.records import Numbers
from coincide.detection.columns.worlds import NONE, ZERO, collected, compiled, inner, share
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.decide import decide, satisfied, weight
from coincide.detection.situation.kernel.held import hold_back, let_go
from coincide.detection.situation.kernel.parts import op_at, stream_at
from coincide.detection.situation.kernel.spans import close, initiate, new_record, only_cell, release, terminate
from coincide.detection.situation.kernel.timers import expire_or_pass, next_due, start_after, start_ticking
from coincide.detection.situation.kernel.trimming import trim
from coincide.detection.situation.kernel.waiting import ready, wake


@compiled
def run(arrays: at.World, touched: Numbers, bound: int) -> Any:
    """All rows, each after the timers that come before it; then those due before `bound`. `touched` are the cells of the rows."""
    world = share(arrays)
    due = next_due(world)
    for row in range(len(world.events)):
        now = world.events[row, at.EVENT.when]
        while due < now:
            due = next_due(world)  # it may have been cancelled since
            if due < now:
                fire(world)
        due = min(due, process(world, row, now))
    while next_due(world) < bound:
        fire(world)
    for cell in touched:
        trim(world, cell)
    return collected(world)


@inner
def process(world: at.World, row: int, now: int) -> Any:
    """One event. Returns when the first timer is due that it has set."""
    due = at.NEVER
    ref = world.counts[at.COUNT.first_ref] + row
    note_cause(world, at.BY_EVENT, ref, now)
    kind = world.events[row, at.EVENT.type]
    ended = ZERO
    for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
        d = world.lists[index]
        if world.of_lifespan[d, row, at.ROLE.terminators]:
            ended = terminate(world, d, row, ended)
        if world.of_lifespan[d, row, at.ROLE.initiators]:
            world.opened[d] = initiate(world, d, row, ref, now)
            if world.opened[d] >= 0:
                due = min(due, world.spans[world.opened[d], at.SPAN.due])
    types = world.counts[at.COUNT.types]
    for index in range(world.list_starts[types + kind], world.list_starts[types + kind + 1]):
        s, made = world.lists[index], world.counts[at.COUNT.made]
        d = world.situations[s, at.SITUATION.lifespan]
        for number in range(ended):
            span = world.closed[number, 0]
            if world.spans[span, at.SPAN.definition] == d and not world.spans[span, at.SPAN.discard]:
                end(world, s, span)
        begun = world.opened[d]
        if world.of_situation[s, row, at.ENTRY.cell] >= 0:
            due = min(due, collect(world, s, row, ref, begun))
        if begun >= 0 and world.situations[s, at.SITUATION.kind] == at.TICKING:
            due = min(due, start_ticking(world, s, begun, now, world.counts[at.COUNT.made] - made))
        elif begun >= 0 and not world.situations[s, at.SITUATION.local] and world.situations[s, at.SITUATION.kind] < at.PASSED:
            new_record(world, begun, s, only_cell(world, begun, s))
    for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
        world.opened[world.lists[index]] = -1
    for number in range(ended):
        release(world, world.closed[number, 0])
    return due


@inner
def note_cause(world: at.World, kind: int, ref: int, now: int) -> None:
    world.counts[at.COUNT.cause] += 1
    world.counts[at.COUNT.cause_kind] = kind
    world.counts[at.COUNT.caused_by] = ref
    world.counts[at.COUNT.clock] = now
    world.counts[at.COUNT.number] = 0


@inner
def fire(world: at.World) -> None:
    """The timer that is due first. What `after` has waited for is told; or a lifespan ends."""
    span = expire_or_pass(world)
    if span < 0:
        return
    d = world.spans[span, at.SPAN.definition]
    note_cause(world, at.BY_EXPIRATION, world.spans[span, at.SPAN.opened], world.spans[span, at.SPAN.due])
    close(world, span)
    if not world.lifespans[d, at.LIFESPAN.expiry_discards]:
        first = 2 * world.counts[at.COUNT.types] + d
        for index in range(world.list_starts[first], world.list_starts[first + 1]):
            end(world, world.lists[index], span)
    release(world, span)


@inner
def end(world: at.World, s: int, span: int) -> None:
    """What was held back; then deferred decisions, partition by partition in order of the local key's value."""
    let_go(world, s, span)
    if world.situations[s, at.SITUATION.mode] != at.DEFERRED:
        return
    several = 0
    record = world.spans[span, at.SPAN.records]
    while record >= 0:
        several += world.records[record, at.RECORD.situation] == s
        record = world.records[record, at.RECORD.next_of_span]
    parts = np.empty(several, np.int64)
    ranks = np.empty(several, np.int64)
    several = 0
    record = world.spans[span, at.SPAN.records]
    while record >= 0:
        if world.records[record, at.RECORD.situation] == s:
            parts[several] = record
            ranks[several] = world.cells[world.records[record, at.RECORD.cell], at.CELL.rank]
            several += 1
        record = world.records[record, at.RECORD.next_of_span]
    if several > 1:
        parts = parts[np.argsort(ranks)]
    repeated = world.situations[s, at.SITUATION.repeated]
    for record in parts:
        world.counts[at.COUNT.resumed] = -1
        while decide(world, record, ZERO) and repeated:
            pass


@inner
def collect(world: at.World, s: int, row: int, ref: int, begun: int) -> Any:
    """Returns when the first timer is due that was set."""
    mask, cell = world.of_situation[s, row, at.ENTRY.entered], world.of_situation[s, row, at.ENTRY.cell]
    if mask == 0 and not (world.situations[s, at.SITUATION.counting] and world.situations[s, at.SITUATION.local]):
        return at.NEVER
    d = world.situations[s, at.SITUATION.lifespan]
    key = world.of_lifespan[d, row, at.ROLE.key]
    if world.situations[s, at.SITUATION.kind] == at.PASSED:
        return start_after(world, s, cell, mask, ref, world.events[row, at.EVENT.hi], world.keys[key, at.KEY.oldest], begun)
    if world.situations[s, at.SITUATION.local]:
        add_partitions(world, s, key, ref, cell)
    size = 0
    for operand in range(world.situations[s, at.SITUATION.operands]):
        if (mask >> operand) & 1:
            world.cells[cell, stream_at(operand) + at.STREAM.filled] += 1
            size += 1
    mine = s + world.keys[key, at.KEY.whose]
    if world.situations[s, at.SITUATION.mode] == at.DEFERRED:
        world.counted[mine, at.COUNTED.candidates] += size * (world.keys[key, at.KEY.open] - (begun >= 0))
    elif size:
        world.counted[mine, at.COUNTED.candidates] += size * world.cells[cell, at.CELL.waiting]
        made = world.counts[at.COUNT.made]
        try_all(world, s, cell, mask, mask & world.of_situation[s, row, at.ENTRY.overridden])
        if world.situations[s, at.SITUATION.mode] == at.DELAYED:
            hold_back(world, s, made)
    return at.NEVER


@inner
def try_all(world: at.World, s: int, cell: int, mask: int, overridden: int) -> None:
    """A decision in each partition that may have what it takes."""
    if world.situations[s, at.SITUATION.counting]:
        count_all(world, s, cell, mask)
        return
    if overridden:
        override_all(world, s, cell, overridden)
    wake(world, s, cell, mask)
    if (
        world.situations[s, at.SITUATION.kind] == at.SEQUENCE
    ):  # nothing comes after the arriving event, so it is the last one or none
        mask &= np.int64(1) << (world.situations[s, at.SITUATION.operands] - 1)
    record = ready(world, s, cell) if mask else NONE
    while record >= 0:
        following = world.records[record, at.RECORD.list_after]
        decide(world, record, mask)
        record = following


@inner
def count_all(world: at.World, s: int, cell: int, mask: int) -> None:
    """A decision in each partition that has the total, which is asked here, as most have not."""
    kind, quantity = world.situations[s, at.SITUATION.kind], world.situations[s, at.SITUATION.quantity]
    first, operands = world.situations[s, at.SITUATION.first_operand], world.situations[s, at.SITUATION.operands]
    record = world.cells[cell, at.CELL.ready_first]
    while record >= 0:
        following = world.records[record, at.RECORD.list_after]
        total = ZERO
        for operand in range(operands):
            total += weight(world, record, first + operand, operand, cell)
        if world.situations[s, at.SITUATION.joined] or satisfied(kind, total, quantity):
            decide(world, record, mask)
        record = following


@inner
def override_all(world: at.World, s: int, cell: int, mask: int) -> None:
    """The lists are emptied before the new candidate enters them (decision 19)."""
    override(world, world.cells[cell, at.CELL.ready_first], s, cell, mask)
    for operand in range(world.situations[s, at.SITUATION.operands]):
        override(world, world.cells[cell, stream_at(operand) + at.STREAM.watched_first], s, cell, mask)


@inner
def override(world: at.World, record: int, s: int, cell: int, mask: int) -> None:
    while record >= 0:
        for operand in range(world.situations[s, at.SITUATION.operands]):
            if (mask >> operand) & 1:
                filled = world.cells[cell, stream_at(operand) + at.STREAM.filled]
                world.records[record, op_at(operand) + at.TAKEN.start] = filled - 1
                world.records[record, op_at(operand) + at.TAKEN.bits] = -1
        touch(world.records, world.heads[at.OF.records], record)
        record = world.records[record, at.RECORD.list_after]


@inner
def add_partitions(world: at.World, s: int, key: int, ref: int, cell: int) -> None:
    """Partitions of this local key value in the lifespans that were opened since the last event with it, oldest first."""
    span = world.keys[key, at.KEY.newest]
    oldest = -1
    while span >= 0 and world.spans[span, at.SPAN.opened] >= world.cells[cell, at.CELL.seen]:
        if world.spans[span, at.SPAN.opened] < ref:
            oldest = span
        span = world.spans[span, at.SPAN.before]
    world.cells[cell, at.CELL.seen] = ref
    while oldest >= 0 and world.spans[oldest, at.SPAN.opened] < ref:
        new_record(world, oldest, s, cell)
        oldest = world.spans[oldest, at.SPAN.after]
