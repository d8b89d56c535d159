"""Lists that rows of a state are in: timers, what is held back; and what nothing is in any more."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import append, free, grown, put_after, take_out
from coincide.detection.columns.worlds import ONE, inner
from coincide.detection.situation.kernel import layout as at


@inner
def enlist(world: at.World, timer: int) -> None:
    cell = world.timers[timer, at.TIMER.cell]
    queue_up(world, timer)
    append(world.timers, at.TIMER.cell_before, timer, world.cells, cell, at.CELL.ready_first)
    append(world.timers, at.TIMER.span_before, timer, world.spans, world.timers[timer, at.TIMER.span], at.SPAN.timers_first)
    world.cells[cell, at.CELL.used] += 1


@inner
def queue_up(world: at.World, timer: int) -> None:
    """By due time. It is the last, unless a detection tells `after` of an earlier time than events before it."""
    s = world.timers[timer, at.TIMER.situation]
    due, before = world.timers[timer, at.TIMER.due], world.situations[s, at.SITUATION.timers_last]
    while before >= 0 and world.timers[before, at.TIMER.due] > due:
        before = world.timers[before, at.TIMER.queue_before]
    put_after(world.timers, at.TIMER.queue_before, before, timer, world.situations, s, at.SITUATION.timers_first)


@inner
def drop_timer(world: at.World, timer: int) -> None:
    s, cell = world.timers[timer, at.TIMER.situation], world.timers[timer, at.TIMER.cell]
    take_out(world.timers, at.TIMER.queue_before, timer, world.situations, s, at.SITUATION.timers_first)
    take_out(world.timers, at.TIMER.cell_before, timer, world.cells, cell, at.CELL.ready_first)
    take_out(world.timers, at.TIMER.span_before, timer, world.spans, world.timers[timer, at.TIMER.span], at.SPAN.timers_first)
    free(world.timers, world.heads[at.OF.timers], timer)
    leave_cell(world, cell)


@inner
def link_held(world: at.World, row: int) -> None:
    append(world.held, at.WAITING.before, row, world.spans, world.held[row, at.WAITING.span], at.SPAN.held_first)
    world.cells[world.held[row, at.WAITING.cell], at.CELL.used] += 1


@inner
def leave_cell(world: at.World, cell: int) -> None:
    world.cells[cell, at.CELL.used] -= 1
    if world.cells[cell, at.CELL.used] == 0:
        note_idle(world, ONE, cell)


@inner
def note_idle(world: Any, is_cell: int, number: int) -> None:
    """It may be free, if nothing comes before the end of the step."""
    several = world.counts[at.COUNT.idle]
    if several == len(world.idle):
        world.idle = grown(world.idle)
    world.idle[several, 0] = is_cell
    world.idle[several, 1] = number
    world.counts[at.COUNT.idle] = several + np.int64(1)
