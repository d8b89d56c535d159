"""The compiled loop over the rows that matter. The functions are those of section 4 of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import NONE, ZERO, collected, compiled, inner, share
from coincide.detection.situation.kernel.decide import decide, satisfied, weight
from coincide.detection.situation.kernel.held import hold_back, let_go
from coincide.detection.situation.kernel.spans import close, initiate, new_record, release, relink, terminate
from coincide.detection.situation.kernel.timers import expire_or_pass, next_due, start_after
from coincide.detection.situation.kernel.waiting import ready, wake


@compiled
def run(arrays: Any, spans: Any, bound: Any) -> Any:
    """All rows, each after the timers that come before it; then those due before `bound`. `spans` are open at the beginning."""
    world = share(arrays)
    relink(world, spans)
    due = next_due(world)
    for row in range(len(world.events)):
        now = world.events[row, at.WHEN]
        while due < now:
            due = next_due(world)  # it may have been cancelled since
            if due < now:
                fire(world)
        due = min(due, process(world, row, now))
    while next_due(world) < bound:
        fire(world)
    return collected(world)


@inner
def process(world: Any, row: Any, now: Any) -> Any:
    """One event. Returns when the first timer is due that it has set."""
    due = at.NEVER
    ref = world.counts[at.FIRST_REF] + row
    note_cause(world, at.BY_EVENT, ref, now)
    kind = world.events[row, at.TYPE]
    ended = ZERO
    for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
        d = world.lists[index]
        if world.of_lifespan[d, row, at.TERMINATORS]:
            ended = terminate(world, d, row, ended)
        if world.of_lifespan[d, row, at.INITIATORS]:
            world.opened[d] = initiate(world, d, row, ref, now)
            if world.opened[d] >= 0:
                due = min(due, world.spans[world.opened[d], at.DUE])
    types = world.counts[at.TYPES]
    for index in range(world.list_starts[types + kind], world.list_starts[types + kind + 1]):
        s = world.lists[index]
        d = world.situations[s, at.LIFESPAN]
        for number in range(ended):
            span = world.closed[number, 0]
            if world.spans[span, at.DEFINITION] == d and not world.spans[span, at.DISCARD]:
                end(world, s, span)
        begun = world.opened[d]
        if world.of_situation[s, row, at.CELL_NUMBER] >= 0:
            due = min(due, collect(world, s, row, ref, begun))
        if begun >= 0 and not world.situations[s, at.LOCAL] and world.situations[s, at.KIND] != at.PASSED:
            new_record(world, begun, s, world.spans[begun, at.KEY])
    for index in range(world.list_starts[kind], world.list_starts[kind + 1]):
        world.opened[world.lists[index]] = -1
    for number in range(ended):
        release(world, world.closed[number, 0])
    return due


@inner
def note_cause(world: Any, kind: Any, ref: Any, now: Any) -> Any:
    world.counts[at.CAUSE] += 1
    world.counts[at.TIMER] = kind
    world.counts[at.CAUSED_BY] = ref
    world.counts[at.CLOCK] = now
    world.counts[at.NUMBER] = 0


@inner
def fire(world: Any) -> Any:
    """The timer that is due first. What `after` has waited for is told; or a lifespan ends."""
    span = expire_or_pass(world)
    if span < 0:
        return
    d = world.spans[span, at.DEFINITION]
    note_cause(world, at.BY_EXPIRATION, world.spans[span, at.OPENED], world.spans[span, at.DUE])
    close(world, span)
    if not world.lifespans[d, at.EXPIRY_DISCARDS]:
        first = 2 * world.counts[at.TYPES] + d
        for index in range(world.list_starts[first], world.list_starts[first + 1]):
            end(world, world.lists[index], span)
    release(world, span)


@inner
def end(world: Any, s: Any, span: Any) -> Any:
    """What was held back; then deferred decisions, partition by partition in order of the local key's value."""
    let_go(world, s, span)
    if world.situations[s, at.MODE] != at.DEFERRED:
        return
    several = 0
    record = world.spans[span, at.RECORDS]
    while record >= 0:
        several += world.records[record, at.SITUATION] == s
        record = world.records[record, at.NEXT_OF_SPAN]
    parts = np.empty(several, np.int64)
    ranks = np.empty(several, np.int64)
    several = 0
    record = world.spans[span, at.RECORDS]
    while record >= 0:
        if world.records[record, at.SITUATION] == s:
            parts[several] = record
            ranks[several] = world.cells[world.situations[s, at.CELL_BASE] + world.records[record, at.CELL], at.RANK]
            several += 1
        record = world.records[record, at.NEXT_OF_SPAN]
    if several > 1:
        parts = parts[np.argsort(ranks)]
    repeated = world.situations[s, at.REPEATED]
    for record in parts:
        world.counts[at.RESUMED] = -1
        while decide(world, record, ZERO) and repeated:
            pass


@inner
def collect(world: Any, s: Any, row: Any, ref: Any, begun: Any) -> Any:
    """Returns when the first timer is due that was set."""
    mask, cell = world.of_situation[s, row, at.ENTERED], world.of_situation[s, row, at.CELL_NUMBER]
    if mask == 0 and not (world.situations[s, at.COUNTING] and world.situations[s, at.LOCAL]):
        return at.NEVER
    d = world.situations[s, at.LIFESPAN]
    place = world.lifespans[d, at.KEY_BASE] + world.of_lifespan[d, row, at.KEY_NUMBER]
    if world.situations[s, at.KIND] == at.PASSED:
        return start_after(world, s, cell, mask, ref, world.events[row, at.HI], world.keys[place, at.OLDEST], begun)
    if world.situations[s, at.LOCAL]:
        add_partitions(world, s, place, ref, cell)
    first, size = world.situations[s, at.FIRST_OPERAND], 0
    for operand in range(world.situations[s, at.OPERANDS]):
        if (mask >> operand) & 1:
            world.streams[world.operands[first + operand, at.STREAM_BASE] + cell, at.FILLED] += 1
            size += 1
    if world.situations[s, at.MODE] == at.DEFERRED:
        world.situations[s, at.CANDIDATES] += size * (world.keys[place, at.OPEN] - (begun >= 0))
    elif size:
        world.situations[s, at.CANDIDATES] += size * world.cells[world.situations[s, at.CELL_BASE] + cell, at.WAITING]
        made = world.counts[at.MADE]
        try_all(world, s, cell, mask, mask & world.of_situation[s, row, at.OVERRIDDEN])
        if world.situations[s, at.MODE] == at.DELAYED:
            hold_back(world, s, made)
    return at.NEVER


@inner
def try_all(world: Any, s: Any, cell: Any, mask: Any, overridden: Any) -> Any:
    """A decision in each partition that may have what it takes."""
    if world.situations[s, at.COUNTING]:
        count_all(world, s, cell, mask)
        return
    if overridden:
        override_all(world, s, cell, overridden)
    wake(world, s, cell, mask)
    if world.situations[s, at.KIND] == at.SEQUENCE:  # nothing comes after the arriving event, so it is the last one or none
        mask &= np.int64(1) << (world.situations[s, at.OPERANDS] - 1)
    record = ready(world, s, cell) if mask else NONE
    while record >= 0:
        following = world.records[record, at.LIST_AFTER]
        decide(world, record, mask)
        record = following


@inner
def count_all(world: Any, s: Any, cell: Any, mask: Any) -> Any:
    """A decision in each partition that has the total, which is asked here, as most have not."""
    kind, quantity = world.situations[s, at.KIND], world.situations[s, at.QUANTITY]
    first, operands = world.situations[s, at.FIRST_OPERAND], world.situations[s, at.OPERANDS]
    record = world.cells[world.situations[s, at.CELL_BASE] + cell, at.READY_FIRST]
    while record >= 0:
        following = world.records[record, at.LIST_AFTER]
        total = ZERO
        for operand in range(operands):
            total += weight(world, record, first + operand, operand, cell)
        if satisfied(kind, total, quantity):
            decide(world, record, mask)
        record = following


@inner
def override_all(world: Any, s: Any, cell: Any, mask: Any) -> Any:
    """The lists are emptied before the new candidate enters them (decision 19)."""
    override(world, world.cells[world.situations[s, at.CELL_BASE] + cell, at.READY_FIRST], s, cell, mask)
    for operand in range(world.situations[s, at.OPERANDS]):
        place = world.operands[world.situations[s, at.FIRST_OPERAND] + operand, at.STREAM_BASE] + cell
        override(world, world.streams[place, at.WATCHED_FIRST], s, cell, mask)


@inner
def override(world: Any, record: Any, s: Any, cell: Any, mask: Any) -> Any:
    while record >= 0:
        for operand in range(world.situations[s, at.OPERANDS]):
            if (mask >> operand) & 1:
                place = world.operands[world.situations[s, at.FIRST_OPERAND] + operand, at.STREAM_BASE] + cell
                world.records[record, at.OPS + at.PER_OP * operand + at.START] = world.streams[place, at.FILLED] - 1
                world.records[record, at.OPS + at.PER_OP * operand + at.BITS] = -1
        record = world.records[record, at.LIST_AFTER]


@inner
def add_partitions(world: Any, s: Any, key: Any, ref: Any, cell: Any) -> Any:
    """Partitions of this local key value in the lifespans that were opened since the last event with it, oldest first."""
    place = world.situations[s, at.CELL_BASE] + cell
    span = world.keys[key, at.NEWEST]
    oldest = -1
    while span >= 0 and world.spans[span, at.OPENED] >= world.cells[place, at.SEEN]:
        if world.spans[span, at.OPENED] < ref:
            oldest = span
        span = world.spans[span, at.BEFORE]
    world.cells[place, at.SEEN] = ref
    while oldest >= 0 and world.spans[oldest, at.OPENED] < ref:
        new_record(world, oldest, s, cell)
        oldest = world.spans[oldest, at.AFTER]
