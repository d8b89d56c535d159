"""Lists through rows of arrays.

A row has a column for the row before it and, next to that, one for the row after it; an owner has a column for the first row and,
next to that, one for the last. -1: none."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import inner


@inner
def grown(rows: Any) -> Any:
    """A copy with more than twice the room."""
    more = np.empty((16 + 2 * len(rows), rows.shape[1]), np.int64)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            more[row, column] = rows[row, column]
    return more


@inner
def append(rows: Any, column: Any, row: Any, owners: Any, owner: Any, first: Any) -> Any:
    before = owners[owner, first + 1]
    rows[row, column] = before
    rows[row, column + 1] = -1
    if before >= 0:
        rows[before, column + 1] = row
    else:
        owners[owner, first] = row
    owners[owner, first + 1] = row


@inner
def take_out(rows: Any, column: Any, row: Any, owners: Any, owner: Any, first: Any) -> Any:
    before, after = rows[row, column], rows[row, column + 1]
    if before >= 0:
        rows[before, column + 1] = after
    else:
        owners[owner, first] = after
    if after >= 0:
        rows[after, column] = before
    else:
        owners[owner, first + 1] = before


@inner
def enlist(world: Any, timer: Any) -> Any:
    """A timer of `after`, by due time. It is the last, unless a detection tells of an earlier time than events before it."""
    s = world.timers[timer, at.TIMER_SITUATION]
    due, before = world.timers[timer, at.DUE_AT], world.situations[s, at.TIMERS_LAST]
    if before >= 0 and world.timers[before, at.DUE_AT] > due:
        before = np.int64(-1)
        following = world.situations[s, at.TIMERS_FIRST]
        while world.timers[following, at.DUE_AT] <= due:
            before = following
            following = world.timers[following, at.NEXT]
    after = world.timers[before, at.NEXT] if before >= 0 else world.situations[s, at.TIMERS_FIRST]
    world.timers[timer, at.NEXT] = after
    if before >= 0:
        world.timers[before, at.NEXT] = timer
    else:
        world.situations[s, at.TIMERS_FIRST] = timer
    if after < 0:
        world.situations[s, at.TIMERS_LAST] = timer
    place = world.situations[s, at.CELL_BASE] + world.timers[timer, at.TIMER_CELL]
    append(world.timers, at.CELL_BEFORE, timer, world.cells, place, at.READY_FIRST)
