"""Timers in the compiled loop: which is due first, and those of `after` and `every`, which go with their lifespans.

One interval a definition means that timers are due in the order in which they were set: a queue each, no heap (section 8).
Situations with `every` have a plan of their own, with no timers of `after` in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import grown, next_row, occupy, take_out, touch
from coincide.detection.columns.worlds import ONE, ZERO, inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.decide import report, select
from coincide.detection.situation.kernel.held import hold_back
from coincide.detection.situation.kernel.queues import drop_timer, enlist, queue_up
from coincide.detection.situation.kernel.spans import only_cell


@inner
def next_due(world: at.World) -> Any:
    due = at.NEVER
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, at.LIFESPAN.queue_first]
        if span >= 0:
            due = min(due, world.spans[span, at.SPAN.due])
    for s in range(len(world.situations)):
        timer = world.situations[s, at.SITUATION.timers_first]
        if timer >= 0:
            due = min(due, world.timers[timer, at.TIMER.due])
    return due


@inner
def expire_or_pass(world: at.World) -> Any:
    """The lifespan that expires first; -1 if a timer comes before, which is dealt with here. At one instant what was set first
    comes first; of what one event has set, lifespans and situations come in the order of their definitions."""
    best, timer, none = np.int64(-1), np.int64(-1), np.int64(0)
    first_of_all: Any = at.NEVER, at.NEVER, at.NEVER, at.NEVER, at.NEVER
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, at.LIFESPAN.queue_first]
        if span >= 0:
            due, since = world.spans[span, at.SPAN.due], world.lifespans[d, at.LIFESPAN.interval]
            set_at = due - since if ticking(world) else none
            mine = due, set_at, none, world.spans[span, at.SPAN.opened], world.lifespans[d, at.LIFESPAN.order]
            if mine < first_of_all:
                best, first_of_all = span, mine
    for s in range(len(world.situations)):
        first = world.situations[s, at.SITUATION.timers_first]
        if first >= 0:
            due, event, order = (
                world.timers[first, at.TIMER.due],
                world.timers[first, at.TIMER.event],
                world.situations[s, at.SITUATION.order],
            )
            mine = due, none, none, event, order
            if ticking(world):
                mine = due, due - world.situations[s, at.SITUATION.delay], world.timers[first, at.TIMER.operand] - 1, event, order
            if mine < first_of_all:
                best, timer, first_of_all = np.int64(-1), first, mine
    if timer >= 0 and ticking(world):
        tick(world, timer)
    elif timer >= 0:
        tell(world, timer)
    return best


@inner
def ticking(world: at.World) -> Any:
    """Is this a plan of situations with `every`? What these set at an instant comes after what events set there, and of ticks
    those first that began last: each of them was set before the tick of an older one."""
    return world.situations[0, at.SITUATION.kind] == at.TICKING


@inner
def start_ticking(world: at.World, s: int, span: int, now: int, number: int) -> Any:
    due = now + world.situations[s, at.SITUATION.delay]
    set_timer(world, s, only_cell(world, span, s), span, due, ONE, world.spans[span, at.SPAN.opened], number)
    return due


@inner
def tick(world: at.World, timer: Any) -> None:
    s = world.timers[timer, at.TIMER.situation]
    note_timer(world, timer, at.BY_TICK)
    made = world.counts[at.COUNT.made]
    report(world, s, world.timers[timer, at.TIMER.span], world.timers[timer, at.TIMER.cell])
    if world.situations[s, at.SITUATION.mode] == at.DELAYED:
        hold_back(world, s, made)
    if world.situations[s, at.SITUATION.once]:
        drop_timer(world, timer)
        return
    take_out(world.timers, at.TIMER.queue_before, timer, world.situations, s, at.SITUATION.timers_first)
    world.timers[timer, at.TIMER.due] += world.situations[s, at.SITUATION.delay]
    world.timers[timer, at.TIMER.operand] += 1
    touch(world.timers, world.heads[at.OF.timers], timer)
    queue_up(world, timer)


@inner
def tell(world: at.World, timer: Any) -> None:
    s = world.timers[timer, at.TIMER.situation]
    note_timer(world, timer, at.BY_PASSING)
    made = world.counts[at.COUNT.made]
    report(world, s, world.timers[timer, at.TIMER.span], world.timers[timer, at.TIMER.cell])
    select(world, world.timers[timer, at.TIMER.operand], world.timers[timer, at.TIMER.event])
    if world.situations[s, at.SITUATION.mode] == at.DELAYED:
        hold_back(world, s, made)
    drop_timer(world, timer)


@inner
def note_timer(world: at.World, timer: int, kind: int) -> None:
    world.counts[at.COUNT.cause] += 1
    world.counts[at.COUNT.cause_kind] = kind
    world.counts[at.COUNT.caused_by] = world.timers[timer, at.TIMER.event]
    world.counts[at.COUNT.clock] = world.timers[timer, at.TIMER.due]
    world.counts[at.COUNT.number] = world.timers[timer, at.TIMER.number]


@inner
def start_after(world: at.World, s: int, cell: int, mask: int, ref: int, hi: int, span: int, begun: int) -> Any:
    """A timer in each open lifespan from this on. Returns when it is due."""
    operand, number, due = ZERO, ZERO, at.NEVER
    while not (mask >> operand) & 1:
        operand += 1
    while span >= 0:
        if span != begun and not blocked(world, s, cell, span, hi):
            due = hi + world.situations[s, at.SITUATION.delay]
            set_timer(world, s, cell, span, due, operand, ref, number)
            world.counted[s, at.COUNTED.candidates] += 1
            number += 1
        span = world.spans[span, at.SPAN.after]
    return due


@inner
def blocked(world: at.World, s: int, cell: int, span: int, hi: int) -> Any:
    """Is there a timer that makes this event be ignored? Those that it replaces are cancelled."""
    correlate = world.situations[s, at.SITUATION.correlate]
    if correlate == at.ADD:
        return False
    timer = world.cells[cell, at.CELL.ready_first]
    while timer >= 0:
        following = world.timers[timer, at.TIMER.cell_after]
        if world.timers[timer, at.TIMER.span] == span and world.timers[timer, at.TIMER.due] > hi:
            if correlate == at.IGNORE:
                return True
            drop_timer(world, timer)
        timer = following
    return False


@inner
def set_timer(world: Any, s: int, cell: int, span: int, due: int, operand: int, ref: int, number: int) -> None:
    if next_row(world.heads[at.OF.timers]) == len(world.timers):
        world.timers = grown(world.timers)
    timer = occupy(world.timers, world.heads[at.OF.timers])
    world.timers[timer, at.TIMER.due] = due
    world.timers[timer, at.TIMER.span] = span
    world.timers[timer, at.TIMER.situation] = s
    world.timers[timer, at.TIMER.cell] = cell
    world.timers[timer, at.TIMER.operand] = operand
    world.timers[timer, at.TIMER.event] = ref
    world.timers[timer, at.TIMER.number] = number
    enlist(world, timer)
