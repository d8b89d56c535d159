"""Timers in the compiled loop: which is due first, and those of `after`.

One interval a definition means that timers are due in the order in which they were set: a queue each, no heap (section 8). A
timer of `after` whose lifespan has closed is passed over when its turn comes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import ZERO, inner
from coincide.detection.situation.kernel.decide import report, select
from coincide.detection.situation.kernel.held import hold_back
from coincide.detection.situation.kernel.lists import enlist, grown, take_out


@inner
def next_due(world: Any) -> Any:
    due = at.NEVER
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, at.QUEUE_FIRST]
        if span >= 0:
            due = min(due, world.spans[span, at.DUE])
    for s in range(len(world.situations)):
        timer = first_timer(world, s)
        if timer >= 0:
            due = min(due, world.timers[timer, at.DUE_AT])
    return due


@inner
def expire_or_pass(world: Any) -> Any:
    """The lifespan that expires first; -1 if a timer of `after` comes before, which is dealt with here. At one instant what was
    set first comes first; of what one event has set, lifespans and situations come in the order of their definitions."""
    best, timer = np.int64(-1), np.int64(-1)
    due, set_by, order = at.NEVER, at.NEVER, at.NEVER
    for d in range(len(world.lifespans)):
        span = world.lifespans[d, at.QUEUE_FIRST]
        if span >= 0:
            mine = world.spans[span, at.DUE], world.spans[span, at.OPENED], world.lifespans[d, at.ORDER_OF_LIFESPAN]
            if mine < (due, set_by, order):
                best = span
                due, set_by, order = mine
    for s in range(len(world.situations)):
        first = first_timer(world, s)
        if first >= 0:
            mine = world.timers[first, at.DUE_AT], world.timers[first, at.EVENT], world.situations[s, at.ORDER]
            if mine < (due, set_by, order):
                best, timer = np.int64(-1), first
                due, set_by, order = mine
    if timer >= 0:
        tell(world, timer)
    return best


@inner
def tell(world: Any, timer: Any) -> Any:
    s = world.timers[timer, at.TIMER_SITUATION]
    world.counts[at.CAUSE] += 1
    world.counts[at.TIMER] = at.BY_PASSING
    world.counts[at.CAUSED_BY] = world.timers[timer, at.EVENT]
    world.counts[at.CLOCK] = world.timers[timer, at.DUE_AT]
    world.counts[at.NUMBER] = world.timers[timer, at.SET_AS]
    made = world.counts[at.MADE]
    report(world, s, world.timers[timer, at.OF_SPAN], world.timers[timer, at.TIMER_CELL])
    select(world, world.timers[timer, at.OPERAND], world.timers[timer, at.EVENT])
    if world.situations[s, at.MODE] == at.DELAYED:
        hold_back(world, s, made)
    drop_first(world, s)


@inner
def waits(world: Any, timer: Any) -> Any:
    span = world.timers[timer, at.OF_SPAN]
    return (
        span >= 0
        and world.spans[span, at.DEFINITION] >= 0
        and world.spans[span, at.OPENED] == world.timers[timer, at.SPAN_OPENED]
    )


@inner
def first_timer(world: Any, s: Any) -> Any:
    timer = world.situations[s, at.TIMERS_FIRST]
    while timer >= 0 and not waits(world, timer):
        drop_first(world, s)
        timer = world.situations[s, at.TIMERS_FIRST]
    return timer


@inner
def drop_first(world: Any, s: Any) -> Any:
    timer = world.situations[s, at.TIMERS_FIRST]
    world.situations[s, at.TIMERS_FIRST] = world.timers[timer, at.NEXT]
    if world.timers[timer, at.NEXT] < 0:
        world.situations[s, at.TIMERS_LAST] = -1
    place = world.situations[s, at.CELL_BASE] + world.timers[timer, at.TIMER_CELL]
    take_out(world.timers, at.CELL_BEFORE, timer, world.cells, place, at.READY_FIRST)
    world.timers[timer, at.OF_SPAN] = -1
    world.timers[timer, at.NEXT] = world.counts[at.FREE_TIMER]
    world.counts[at.FREE_TIMER] = timer


@inner
def start_after(world: Any, s: Any, cell: Any, mask: Any, ref: Any, hi: Any, span: Any, begun: Any) -> Any:
    """A timer in each open lifespan from this on. Returns when it is due."""
    operand, number, due = ZERO, ZERO, at.NEVER
    while not (mask >> operand) & 1:
        operand += 1
    while span >= 0:
        if span != begun and not blocked(world, s, cell, span, hi):
            due = hi + world.situations[s, at.DELAY]
            set_timer(world, s, cell, span, due, operand, ref, number)
            world.situations[s, at.CANDIDATES] += 1
            number += 1
        span = world.spans[span, at.AFTER]
    return due


@inner
def blocked(world: Any, s: Any, cell: Any, span: Any, hi: Any) -> Any:
    """Is there a timer that makes this event be ignored? Those that it replaces are cancelled."""
    correlate = world.situations[s, at.CORRELATE]
    if correlate == at.ADD:
        return False
    timer = world.cells[world.situations[s, at.CELL_BASE] + cell, at.READY_FIRST]
    while timer >= 0:
        if world.timers[timer, at.OF_SPAN] == span and world.timers[timer, at.DUE_AT] > hi and waits(world, timer):
            if correlate == at.IGNORE:
                return True
            world.timers[timer, at.OF_SPAN] = -1
        timer = world.timers[timer, at.CELL_AFTER]
    return False


@inner
def set_timer(world: Any, s: Any, cell: Any, span: Any, due: Any, operand: Any, ref: Any, number: Any) -> Any:
    timer = world.counts[at.FREE_TIMER]
    if timer >= 0:
        world.counts[at.FREE_TIMER] = world.timers[timer, at.NEXT]
    else:
        timer = world.counts[at.TIMER_COUNT]
        world.counts[at.TIMER_COUNT] += 1
        if timer == len(world.timers):
            world.timers = grown(world.timers)
    world.timers[timer, at.DUE_AT] = due
    world.timers[timer, at.OF_SPAN] = span
    world.timers[timer, at.SPAN_OPENED] = world.spans[span, at.OPENED]
    world.timers[timer, at.TIMER_SITUATION] = s
    world.timers[timer, at.TIMER_CELL] = cell
    world.timers[timer, at.OPERAND] = operand
    world.timers[timer, at.EVENT] = ref
    world.timers[timer, at.SET_AS] = number
    enlist(world, timer)
