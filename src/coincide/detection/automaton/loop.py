"""The compiled loops over rows, runs and timers. They know arrays of numbers only.

A run's events are a path of *nodes* to the root; runs with the same events (under the same aliases) stand at the same node,
so that comparing them is comparing numbers. Runs stand in lists by key and configuration. A timer that can only fail its run
is not fired: whoever meets the run next sees that it is due. Only where a run waits for the timer itself is it queued."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.automaton.layout import KEY, NODE, OF, RUN, TIMER
from coincide.detection.automaton.paths import child, order, sort, sort_made
from coincide.detection.automaton.pools import (
    DONE,
    FAIL,
    FULL,
    STAY,
    TAKE,
    Cells,
    Consumed,
    Pools,
    Rows,
    allocate,
    await_timers,
    enter,
    link,
    release,
    room,
    timings,
    unlink,
)
from coincide.detection.columns.compiling import compiled, inlined
from coincide.detection.columns.heaps import pop
from coincide.detection.columns.linked import added, touch
from coincide.detection.columns.tables import FREE, IN_USE, Numbers
from coincide.lang.shared.times import DAY


@compiled
def run(p: Pools, c: Cells, rows: Rows, restart: bool) -> int:
    """Rows from `n.row` on. Stops when a pool may not have room for the next one: the caller sees to it and comes back."""
    n = p.n[0]
    for i in range(n.row, len(rows.codes)):
        n.row = i
        if n.queue > 0 and fire(p, c, rows.at[i]) == FULL:
            return FULL
        kind = rows.classes[rows.codes[i]]
        if kind < 0:
            continue
        slot = rows.slots[rows.keys[i]]
        if not room(p, c, (p.keys[slot, KEY.live] + len(c.starts)) * c.most):
            return FULL
        _begin(p)
        event = Consumed(rows.base + i, rows.lo[i], rows.hi[i], kind, -1)
        _starts(p, c, slot, event, i, restart)
        for j in range(c.classes[kind].first, c.classes[kind].last):
            one = p.lists[slot, 2 * c.concerned[j]]
            while one >= 0:
                following = p.runs[one, RUN.next]
                if _expire(p, c, one, rows.at[i], -1):
                    _consume(p, c, one, event)
                one = following
        _finish(p, c, event)
    n.row = len(rows.codes)
    return DONE


@compiled
def fire(p: Pools, c: Cells, bound: int) -> int:
    """The queued timers that are due before the bound, by (due, order of setting). Runs share a timer: one step for all."""
    n, runs = p.n[0], p.runs
    while n.queue > 0 and p.queue[0].due < bound:
        due, timer = p.queue[0].due, p.queue[0].number
        timing = p.timers[timer, TIMER.timing]
        if n.firing != timer:
            n.firing = timer
            _begin(p)
        event = Consumed(-1, due, due, timing, timer)
        while n.queue > 0 and p.queue[0].number == timer:
            if not room(p, c, c.most):
                return FULL
            one = pop(p.queue, n.queue)
            n.queue -= 1
            waits = runs[one, FREE] == IN_USE and runs[one, RUN.parts + timing] == timer
            if waits and _expire(p, c, one, due, timer) and runs[one, RUN.parts + timing] == timer:
                _consume(p, c, one, event)
        _finish(p, c, event)
        n.firing = -1
    return DONE


@compiled
def purge(p: Pools, c: Cells, now: int, runs: Numbers) -> None:
    """Of these runs nothing is left that a timer due before now would have failed."""
    for i in range(len(runs)):
        _expire(p, c, runs[i], now, -1)


# A step: what one event does.


@inlined
def _begin(p: Pools) -> None:
    n = p.n[0]
    n.sequence += 1
    n.step, n.root = n.made, -1


@inlined
def _starts(p: Pools, c: Cells, slot: int, event: Consumed, row: int, restart: bool) -> None:
    for start in range(len(c.starts)):
        config = c.starts[start]
        letter = 2 * event.kind + 1
        kind = c.cells[config, letter].kind
        if kind == STAY or p.keys[slot, KEY.ended] >> start & 1:
            continue
        if kind == TAKE:
            for entry in range(c.cells[config, letter].first, c.cells[config, letter].last):
                _advance(p, c, -1, entry, slot, event)
        elif not restart:
            p.keys[slot, KEY.ended] |= 1 << start
            touch(p.keys, p.heads[OF.keys], slot)
            failed = p.failed[p.n[0].failed]
            failed.row, failed.slot, failed.start = row, slot, start
            p.n[0].failed += 1


@inlined
def _consume(p: Pools, c: Cells, one: int, event: Consumed) -> None:
    """What the event does to a run that sees it."""
    runs = p.runs
    config = runs[one, RUN.configuration]
    follows = event.timer >= 0 or p.nodes[runs[one, RUN.node], NODE.hi] < event.lo
    letter = 2 * event.kind + (1 if follows else 0)
    kind = c.cells[config, letter].kind
    if kind == STAY:
        return
    unlink(p, one)
    if kind == FAIL:
        left = c.cells[config, letter].first
        if left < 0:
            release(p, one)
        else:
            _narrow(p, c, one, left, event.timer)
            enter(p, one)
    else:
        for entry in range(c.cells[config, letter].first, c.cells[config, letter].last):
            _advance(p, c, one, entry, runs[one, RUN.key], event)
        release(p, one)


@inlined
def _advance(p: Pools, c: Cells, one: int, entry: int, slot: int, event: Consumed) -> None:
    """A run (-1: a start) makes a transition; what it becomes waits until the step ends."""
    runs, nodes, n = p.runs, p.nodes, p.n[0]
    node = child(p, runs[one, RUN.node] if one >= 0 else -1, event, c.entries[entry].aliases)
    bound = c.entries[entry].bound | (runs[one, RUN.bound] if one >= 0 else 0)
    if c.entries[entry].accept and not nodes[node, NODE.accepted] >> bound & 1:
        nodes[node, NODE.accepted] |= 1 << bound
        made = p.made[n.made]
        made.cause = event.event if event.timer < 0 else -1 - event.timer
        made.node, made.slot, made.bound = node, slot, bound
        n.made += 1
    if c.entries[entry].target < 0:
        return
    new = allocate(p, slot)
    target, sets = c.entries[entry].target, c.entries[entry].sets
    runs[new, RUN.configuration], runs[new, RUN.node], runs[new, RUN.bound], runs[new, RUN.sets] = target, node, bound, sets
    carried = c.configurations[target].domain & ~sets
    for t in range(timings(p)):
        timer = p.runs[one, RUN.parts + t] if one >= 0 and carried >> t & 1 else -1
        p.runs[new, RUN.parts + t] = timer if timer != event.timer else -1
    other = nodes[node, NODE.runs]
    while other >= 0:
        if _same(p, other, new):
            release(p, new)
            return
        other = runs[other, RUN.same]
    runs[new, RUN.same] = nodes[node, NODE.runs]
    nodes[node, NODE.runs] = new
    enter(p, new)


@inlined
def _same(p: Pools, one: int, other: int) -> bool:
    """Are two runs of one node equal? Of timers only the due time counts."""
    runs, timers = p.runs, p.timers
    if (
        runs[one, RUN.configuration] != runs[other, RUN.configuration]
        or runs[one, RUN.bound] != runs[other, RUN.bound]
        or runs[one, RUN.sets] != runs[other, RUN.sets]
    ):  # fmt: skip
        return False
    for t in range(timings(p)):
        a, b = p.runs[one, RUN.parts + t], p.runs[other, RUN.parts + t]
        if a != b and (a < 0 or b < 0 or timers[a, TIMER.due] != timers[b, TIMER.due]):
            return False
    return True


@inlined
def _finish(p: Pools, c: Cells, event: Consumed) -> None:
    """Detections in order, timers set in order, then the new runs wait."""
    n = p.n[0]
    if n.made - n.step > 1:
        sort_made(p)
    one = n.entered
    if one < 0:
        return
    _set_timers(p, c, event)
    while one >= 0:
        following = p.runs[one, RUN.next]
        link(p, one)
        await_timers(p, c, one)
        one = following
    n.entered, n.entering = -1, 0


@inlined
def _set_timers(p: Pools, c: Cells, event: Consumed) -> None:
    """Order of setting: consumption numbers of the events, place in the text. Runs with the same events share a timer."""
    runs, timers, n, count = p.runs, p.timers, p.n[0], 0
    one = n.entered
    while one >= 0:
        if runs[one, RUN.sets]:
            p.scratch[count] = runs[one, RUN.node] << 32 | one
            count += 1
        one = runs[one, RUN.next]
    sort(p, count)
    first, rank = 0, 0
    while first < count:
        last, sets = first, 0
        while last < count and order(p.nodes, p.scratch[first] >> 32, p.scratch[last] >> 32) == 0:
            sets |= runs[p.scratch[last] & 0xFFFFFFFF, RUN.sets]
            last += 1
        for t in range(timings(p)):
            if sets >> t & 1:
                timer = added(timers, p.heads[OF.timers])
                timers[timer, TIMER.due] = _due(c.timings[t], event.hi)
                timers[timer, TIMER.timing], timers[timer, TIMER.rank] = t, rank
                timers[timer, TIMER.event], timers[timer, TIMER.timer] = event.event, event.timer
                rank += 1
                for k in range(first, last):
                    one = p.scratch[k] & 0xFFFFFFFF
                    if runs[one, RUN.sets] >> t & 1:
                        p.runs[one, RUN.parts + t] = timer
        first = last


@inlined
def _due(timing: np.record, hi: int) -> Any:
    if timing.of_day >= 0:
        return hi - (hi - timing.of_day) % DAY + DAY
    return max(hi + timing.duration, timing.instant)


@inlined
def _expire(p: Pools, c: Cells, one: int, due: int, timer: int) -> bool:
    """Timers before (due, timer) that could only fail the run have done so. False: nothing is left of it."""
    runs, timers = p.runs, p.timers
    for t in range(timings(p)):
        held = p.runs[one, RUN.parts + t]
        if held < 0 or timers[held, TIMER.due] > due or (timers[held, TIMER.due] == due and held >= timer):
            continue
        left = c.cells[runs[one, RUN.configuration], 2 * t + 1].first
        unlink(p, one)
        if left < 0:
            release(p, one)
            return False
        _narrow(p, c, one, left, held)
        link(p, one)
    return True


@inlined
def _narrow(p: Pools, c: Cells, one: int, left: int, gone: int) -> None:
    """Only some groups are left, and only the timers in their domain."""
    touch(p.runs, p.heads[OF.runs], one)
    p.runs[one, RUN.configuration] = left
    p.runs[one, RUN.sets] = 0
    for t in range(timings(p)):
        if not c.configurations[left].domain >> t & 1 or p.runs[one, RUN.parts + t] == gone:
            p.runs[one, RUN.parts + t] = -1
