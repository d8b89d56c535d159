"""The compiled loops over rows, runs and timers. They know arrays of numbers only.

A run's events are a path of *nodes* to the root; runs with the same events (under the same aliases) stand at the same node,
so that comparing them is comparing numbers. Runs stand in lists by key and configuration. A timer that can only fail its run
is not fired: whoever meets the run next sees that it is due. Only where a run waits for the timer itself is it queued."""

from __future__ import annotations

from coincide.detection.automaton.paths import child, order, sort, sort_made
from coincide.detection.automaton.pools import (
    DONE,
    ENTERED,
    ENTERING,
    FAIL,
    FAILED,
    FIRING,
    FULL,
    MADE,
    QUEUE,
    ROOT,
    ROW,
    RUNS,
    SEQUENCE,
    STAY,
    STEP,
    TAKE,
    TIMERS,
    Cells,
    Consumed,
    Pools,
    Rows,
    allocate,
    await_timers,
    enter,
    link,
    pop,
    release,
    room,
    unlink,
)
from coincide.detection.columns.compiling import compiled, inner


@compiled
def run(p: Pools, c: Cells, rows: Rows, restart: bool) -> int:
    """Rows from `n[ROW]` on. Stops when a pool may not have room for the next one: the caller sees to it and comes back."""
    n = p.n
    for i in range(n[ROW], len(rows.codes)):
        n[ROW] = i
        if n[QUEUE] > 0 and fire(p, c, rows.at[i]) == FULL:
            return FULL
        kind = rows.classes[rows.codes[i]]
        if kind < 0:
            continue
        slot = rows.slots[rows.keys[i]]
        if not room(p, c, (p.slots[slot].live + len(c.starts)) * c.most):
            return FULL
        _begin(p)
        event = Consumed(rows.base + i, rows.lo[i], rows.hi[i], kind, -1)
        _starts(p, c, slot, event, i, restart)
        for j in range(c.classes[kind].first, c.classes[kind].last):
            one = p.heads[slot, c.concerned[j]]
            while one >= 0:
                following = p.runs[one].next
                if _expire(p, c, one, rows.at[i], -1):
                    _consume(p, c, one, event)
                one = following
        _finish(p, c, event)
    n[ROW] = len(rows.codes)
    return DONE


@compiled
def fire(p: Pools, c: Cells, bound: int) -> int:
    """The queued timers that are due before the bound, by (due, order of setting). Runs share a timer: one step for all."""
    n, runs, timers = p.n, p.runs, p.timers
    while n[QUEUE] > 0 and timers[p.queue[0].timer].due < bound:
        timer = p.queue[0].timer
        due, timing = timers[timer].due, timers[timer].timing
        if n[FIRING] != timer:
            n[FIRING] = timer
            _begin(p)
        event = Consumed(-1 - timer, due, due, timing, timer)
        while n[QUEUE] > 0 and p.queue[0].timer == timer:
            if not room(p, c, c.most):
                return FULL
            one = pop(p)
            waits = runs[one].config >= 0 and p.held[one, timing] == timer
            if waits and _expire(p, c, one, due, timer) and p.held[one, timing] == timer:
                _consume(p, c, one, event)
        _finish(p, c, event)
        n[FIRING] = -1
    return DONE


@compiled
def purge(p: Pools, c: Cells, now: int) -> None:
    """Nothing is left that a timer due before now would have failed."""
    for one in range(p.n[RUNS]):
        if p.runs[one].config >= 0:
            _expire(p, c, one, now, -1)


# A step: what one event does.


@inner
def _begin(p: Pools) -> None:
    p.n[SEQUENCE] += 1
    p.n[STEP] = p.n[MADE]
    p.n[ROOT] = -1


@inner
def _starts(p: Pools, c: Cells, slot: int, event: Consumed, row: int, restart: bool) -> None:
    for start in range(len(c.starts)):
        config = c.starts[start]
        letter = 2 * event.kind + 1
        kind = c.cells[config, letter].kind
        if kind == STAY or p.slots[slot].ended >> start & 1:
            continue
        if kind == TAKE:
            for entry in range(c.cells[config, letter].first, c.cells[config, letter].last):
                _advance(p, c, -1, entry, slot, event)
        elif not restart:
            p.slots[slot].ended |= 1 << start
            p.failed[p.n[FAILED]].row = row
            p.failed[p.n[FAILED]].start = start
            p.n[FAILED] += 1


@inner
def _consume(p: Pools, c: Cells, one: int, event: Consumed) -> None:
    """What the event does to a run that sees it."""
    runs = p.runs
    config = runs[one].config
    follows = event.timer >= 0 or p.nodes[runs[one].node].hi < event.lo
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
            _advance(p, c, one, entry, runs[one].slot, event)
        release(p, one)


@inner
def _advance(p: Pools, c: Cells, one: int, entry: int, slot: int, event: Consumed) -> None:
    """A run (-1: a start) makes a transition; what it becomes waits until the step ends."""
    runs, nodes, n = p.runs, p.nodes, p.n
    node = child(p, runs[one].node if one >= 0 else -1, event, c.entries[entry].aliases)
    bound = c.entries[entry].bound | (runs[one].bound if one >= 0 else 0)
    if c.entries[entry].accept and not nodes[node].accepted >> bound & 1:
        nodes[node].accepted |= 1 << bound
        p.made[n[MADE]].cause = event.event
        p.made[n[MADE]].node = node
        p.made[n[MADE]].slot = slot
        p.made[n[MADE]].bound = bound
        n[MADE] += 1
    if c.entries[entry].target < 0:
        return
    new = allocate(p, slot)
    target, sets = c.entries[entry].target, c.entries[entry].sets
    runs[new].config, runs[new].node, runs[new].bound, runs[new].sets = target, node, bound, sets
    kept = c.configurations[target].domain & ~sets
    for t in range(p.held.shape[1]):
        timer = p.held[one, t] if one >= 0 and kept >> t & 1 else -1
        p.held[new, t] = timer if timer != event.timer else -1
    other = nodes[node].runs
    while other >= 0:
        if _same(p, other, new):
            release(p, new)
            return
        other = runs[other].same
    runs[new].same = nodes[node].runs
    nodes[node].runs = new
    enter(p, new)


@inner
def _same(p: Pools, one: int, other: int) -> bool:
    """Are two runs of one node equal? Of timers only the due time counts."""
    runs, timers = p.runs, p.timers
    if (
        runs[one].config != runs[other].config
        or runs[one].bound != runs[other].bound
        or runs[one].sets != runs[other].sets
    ):  # fmt: skip
        return False
    for t in range(p.held.shape[1]):
        a, b = p.held[one, t], p.held[other, t]
        if a != b and (a < 0 or b < 0 or timers[a].due != timers[b].due):
            return False
    return True


@inner
def _finish(p: Pools, c: Cells, event: Consumed) -> None:
    """Detections in order, timers set in order, then the new runs wait."""
    if p.n[MADE] - p.n[STEP] > 1:
        sort_made(p)
    one = p.n[ENTERED]
    if one < 0:
        return
    _set_timers(p, c, event.hi)
    while one >= 0:
        following = p.runs[one].next
        link(p, one)
        await_timers(p, c, one)
        one = following
    p.n[ENTERED] = -1
    p.n[ENTERING] = 0


@inner
def _set_timers(p: Pools, c: Cells, hi: int) -> None:
    """Order of setting: consumption numbers of the events, place in the text. Runs with the same events share a timer."""
    runs, timers, n, count = p.runs, p.timers, p.n, 0
    one = n[ENTERED]
    while one >= 0:
        if runs[one].sets:
            p.scratch[count] = runs[one].node << 32 | one
            count += 1
        one = runs[one].next
    sort(p, count)
    first, rank = 0, 0
    while first < count:
        last, sets = first, 0
        while last < count and order(p.nodes, p.scratch[first] >> 32, p.scratch[last] >> 32) == 0:
            sets |= runs[p.scratch[last] & 0xFFFFFFFF].sets
            last += 1
        for t in range(p.held.shape[1]):
            if sets >> t & 1:
                timer = n[TIMERS]
                n[TIMERS] += 1
                timers[timer].due = max(hi + c.timings[t].duration, c.timings[t].instant)
                timers[timer].timing, timers[timer].node, timers[timer].rank = t, p.scratch[first] >> 32, rank
                rank += 1
                for k in range(first, last):
                    one = p.scratch[k] & 0xFFFFFFFF
                    if runs[one].sets >> t & 1:
                        p.held[one, t] = timer
        first = last


@inner
def _expire(p: Pools, c: Cells, one: int, due: int, timer: int) -> bool:
    """Timers before (due, timer) that could only fail the run have done so. False: nothing is left of it."""
    runs, timers = p.runs, p.timers
    for t in range(p.held.shape[1]):
        held = p.held[one, t]
        if held < 0 or timers[held].due > due or (timers[held].due == due and held >= timer):
            continue
        left = c.cells[runs[one].config, 2 * t + 1].first
        unlink(p, one)
        if left < 0:
            release(p, one)
            return False
        _narrow(p, c, one, left, held)
        link(p, one)
    return True


@inner
def _narrow(p: Pools, c: Cells, one: int, left: int, gone: int) -> None:
    """Only some groups are left, and only the timers in their domain."""
    p.runs[one].config = left
    p.runs[one].sets = 0
    for t in range(p.held.shape[1]):
        if not c.configurations[left].domain >> t & 1 or p.held[one, t] == gone:
            p.held[one, t] = -1
