"""The compiled loops over rows, runs and timers. They know arrays of numbers only.

A run's events are a path of *nodes* to the root; runs with the same events (under the same aliases) stand at the same node,
so that comparing them is comparing numbers. Runs stand in lists by key and configuration. A timer that can only fail its run
is not fired: whoever meets the run next sees that it is due. Only where a run waits for the timer itself is it queued."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba

STAY, FAIL, TAKE = 0, 1, 2  # what a class does in a configuration
DONE, FULL = 0, 1

# Numbers that change, in `Pools.n`.
RUNS, FREE, NODES, TIMERS, QUEUE, MADE, FAILED, SEQUENCE, ENTERED, ENTERING, ROOT, STEP, FIRING, ROW, NEED = range(15)
COUNTERS = 15

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    decorated: F = numba.njit(cache=True, nogil=True)(function)
    return decorated


class Cells(NamedTuple):
    """The automaton: see `tables.py`. A letter is 2 * class, + 1 where the row strongly follows the run."""

    kind: Any  # by configuration and letter
    first: Any  # of TAKE: the first entry; of FAIL: the configuration that is left, or -1
    last: Any
    aliases: Any  # of each entry
    bound: Any
    target: Any
    accept: Any
    sets: Any
    domain: Any  # of each configuration: timers that it keeps, as bits
    active: Any  # of each configuration: timers that it has transitions for
    concerned_first: Any  # of each class: where its configurations begin in `concerned`
    concerned_last: Any
    concerned: Any
    starts: Any
    durations: Any  # of each timing
    instants: Any
    most: int  # runs that one run can become


class Runs(NamedTuple):
    config: Any  # -1: free
    slot: Any
    node: Any
    bound: Any  # have its events used the parameters?
    sets: Any  # timers to be set when the step ends, as bits
    next: Any
    previous: Any
    same: Any  # the next of those that the step has made at its node
    timer: Any  # by run and timing; -1: none


class Nodes(NamedTuple):
    parent: Any
    event: Any  # of the store; -1 - timer for a time event
    sequence: Any  # orders all events that were consumed
    lo: Any  # of the path to here
    hi: Any
    aliases: Any
    depth: Any
    child: Any  # the latest
    sibling: Any
    runs: Any  # those that the step has made here
    accepted: Any


class Timers(NamedTuple):
    """In the order of setting. `node` is of the events that set it (-1: unknown), `rank` its number among those."""

    due: Any
    timing: Any
    node: Any
    rank: Any


class Queue(NamedTuple):
    """A heap by (due, timer). Entries that have lost their run are passed over."""

    timer: Any
    run: Any


class Made(NamedTuple):
    """Detections: the row (-1 - timer) that made it, the node of its events, whether it has parameters."""

    cause: Any
    node: Any
    bound: Any


class Failed(NamedTuple):
    row: Any
    start: Any


class Slots(NamedTuple):
    """By key: the first run of each configuration, starts that have ended as bits, number of runs."""

    heads: Any
    ended: Any
    live: Any


class Pools(NamedTuple):
    runs: Runs
    nodes: Nodes
    timers: Timers
    queue: Queue
    made: Made
    failed: Failed
    slots: Slots
    scratch: Any
    n: Any


class Consumed(NamedTuple):
    """The event: its reference, stamp and class; of a time event the timer, otherwise -1."""

    event: int
    lo: int
    hi: int
    kind: int
    timer: int


@compiled
def run(
    p: Pools, c: Cells, codes: Any, classes: Any, keys: Any, slots: Any, lo: Any, hi: Any, at: Any, base: int, restart: bool
) -> int:
    """Rows from `n[ROW]` on. Stops when a pool may not have room for the next one: the caller sees to it and comes back."""
    n = p.n
    for i in range(n[ROW], len(codes)):
        n[ROW] = i
        if n[QUEUE] > 0 and fire(p, c, at[i]) == FULL:
            return FULL
        kind = classes[codes[i]]
        if kind < 0:
            continue
        slot = slots[keys[i]]
        if not _room(p, c, (p.slots.live[slot] + len(c.starts)) * c.most):
            return FULL
        _begin(p)
        event = Consumed(base + i, lo[i], hi[i], kind, -1)
        _starts(p, c, slot, event, i, restart)
        for j in range(c.concerned_first[kind], c.concerned_last[kind]):
            one = p.slots.heads[slot, c.concerned[j]]
            while one >= 0:
                following = p.runs.next[one]
                if _expire(p, c, one, at[i], -1):
                    _consume(p, c, one, event)
                one = following
        _finish(p, c, event)
    n[ROW] = len(codes)
    return DONE


@compiled
def fire(p: Pools, c: Cells, bound: int) -> int:
    """The queued timers that are due before the bound, by (due, order of setting). Runs share a timer: one step for all."""
    n, runs, timers = p.n, p.runs, p.timers
    while n[QUEUE] > 0 and timers.due[p.queue.timer[0]] < bound:
        timer = p.queue.timer[0]
        due, timing = timers.due[timer], timers.timing[timer]
        if n[FIRING] != timer:
            n[FIRING] = timer
            _begin(p)
        event = Consumed(-1 - timer, due, due, timing, timer)
        while n[QUEUE] > 0 and p.queue.timer[0] == timer:
            if not _room(p, c, c.most):
                return FULL
            one = _pop(p)
            if runs.config[one] >= 0 and runs.timer[one, timing] == timer and _expire(p, c, one, due, timer):
                if runs.timer[one, timing] == timer:
                    _consume(p, c, one, event)
        _finish(p, c, event)
        n[FIRING] = -1
    return DONE


@compiled
def purge(p: Pools, c: Cells, now: int) -> None:
    """Nothing is left that a timer due before now would have failed."""
    for one in range(p.n[RUNS]):
        if p.runs.config[one] >= 0:
            _expire(p, c, one, now, -1)


# A step: what one event does.


@compiled
def _begin(p: Pools) -> None:
    p.n[SEQUENCE] += 1
    p.n[STEP] = p.n[MADE]
    p.n[ROOT] = -1


@compiled
def _starts(p: Pools, c: Cells, slot: int, event: Consumed, row: int, restart: bool) -> None:
    for start in range(len(c.starts)):
        config = c.starts[start]
        letter = 2 * event.kind + 1
        kind = c.kind[config, letter]
        if kind == STAY or p.slots.ended[slot] >> start & 1:
            continue
        if kind == TAKE:
            for entry in range(c.first[config, letter], c.last[config, letter]):
                _advance(p, c, -1, entry, slot, event)
        elif not restart:
            p.slots.ended[slot] |= 1 << start
            p.failed.row[p.n[FAILED]] = row
            p.failed.start[p.n[FAILED]] = start
            p.n[FAILED] += 1


@compiled
def _consume(p: Pools, c: Cells, one: int, event: Consumed) -> None:
    """What the event does to a run that sees it."""
    runs = p.runs
    config = runs.config[one]
    follows = event.timer >= 0 or p.nodes.hi[runs.node[one]] < event.lo
    letter = 2 * event.kind + (1 if follows else 0)
    kind = c.kind[config, letter]
    if kind == STAY:
        return
    _unlink(p, one)
    if kind == FAIL:
        left = c.first[config, letter]
        if left < 0:
            _release(p, one)
        else:
            _narrow(p, c, one, left, event.timer)
            _enter(p, one)
    else:
        for entry in range(c.first[config, letter], c.last[config, letter]):
            _advance(p, c, one, entry, runs.slot[one], event)
        _release(p, one)


@compiled
def _advance(p: Pools, c: Cells, one: int, entry: int, slot: int, event: Consumed) -> None:
    """A run (-1: a start) makes a transition; what it becomes waits until the step ends."""
    runs, nodes, n = p.runs, p.nodes, p.n
    node = _child(p, runs.node[one] if one >= 0 else -1, event, c.aliases[entry])
    bound = c.bound[entry] | (runs.bound[one] if one >= 0 else 0)
    if c.accept[entry] and not nodes.accepted[node] >> bound & 1:
        nodes.accepted[node] |= 1 << bound
        p.made.cause[n[MADE]] = event.event
        p.made.node[n[MADE]] = node
        p.made.bound[n[MADE]] = bound
        n[MADE] += 1
    if c.target[entry] < 0:
        return
    new = _allocate(p)
    target, sets = c.target[entry], c.sets[entry]
    runs.config[new], runs.slot[new], runs.node[new], runs.bound[new], runs.sets[new] = target, slot, node, bound, sets
    kept = c.domain[target] & ~sets
    for t in range(runs.timer.shape[1]):
        timer = runs.timer[one, t] if one >= 0 and kept >> t & 1 else -1
        runs.timer[new, t] = timer if timer != event.timer else -1
    other = nodes.runs[node]
    while other >= 0:
        if _same(p, other, new):
            _release(p, new)
            return
        other = runs.same[other]
    runs.same[new] = nodes.runs[node]
    nodes.runs[node] = new
    _enter(p, new)


@compiled
def _same(p: Pools, one: int, other: int) -> bool:
    """Are two runs of one node equal? Of timers only the due time counts."""
    runs, due = p.runs, p.timers.due
    if (
        runs.config[one] != runs.config[other]
        or runs.bound[one] != runs.bound[other]
        or runs.sets[one] != runs.sets[other]
    ):  # fmt: skip
        return False
    for t in range(runs.timer.shape[1]):
        a, b = runs.timer[one, t], runs.timer[other, t]
        if a != b and (a < 0 or b < 0 or due[a] != due[b]):
            return False
    return True


@compiled
def _finish(p: Pools, c: Cells, event: Consumed) -> None:
    """Detections in order, timers set in order, then the new runs wait."""
    if p.n[MADE] - p.n[STEP] > 1:
        _sort_made(p)
    one = p.n[ENTERED]
    if one < 0:
        return
    _set_timers(p, c, event.hi)
    while one >= 0:
        following = p.runs.next[one]
        _link(p, one)
        wanted = c.active[p.runs.config[one]]
        for t in range(p.runs.timer.shape[1]):
            if wanted >> t & 1 and p.runs.timer[one, t] >= 0:
                _push(p, p.runs.timer[one, t], one)
        one = following
    p.n[ENTERED] = -1
    p.n[ENTERING] = 0


@compiled
def _set_timers(p: Pools, c: Cells, hi: int) -> None:
    """Order of setting: consumption numbers of the events, place in the text. Runs with the same events share a timer."""
    runs, timers, n, count = p.runs, p.timers, p.n, 0
    one = n[ENTERED]
    while one >= 0:
        if runs.sets[one]:
            p.scratch[count] = runs.node[one] << 32 | one
            count += 1
        one = runs.next[one]
    _sort(p, count)
    first, rank = 0, 0
    while first < count:
        last, sets = first, 0
        while last < count and _order(p.nodes, p.scratch[first] >> 32, p.scratch[last] >> 32) == 0:
            sets |= runs.sets[p.scratch[last] & 0xFFFFFFFF]
            last += 1
        for t in range(runs.timer.shape[1]):
            if sets >> t & 1:
                timer = n[TIMERS]
                n[TIMERS] += 1
                timers.due[timer] = max(hi + c.durations[t], c.instants[t])
                timers.timing[timer], timers.node[timer], timers.rank[timer] = t, p.scratch[first] >> 32, rank
                rank += 1
                for k in range(first, last):
                    one = p.scratch[k] & 0xFFFFFFFF
                    if runs.sets[one] >> t & 1:
                        runs.timer[one, t] = timer
        first = last


@compiled
def _expire(p: Pools, c: Cells, one: int, due: int, timer: int) -> bool:
    """Timers before (due, timer) that could only fail the run have done so. False: nothing is left of it."""
    runs, timers = p.runs, p.timers
    for t in range(runs.timer.shape[1]):
        held = runs.timer[one, t]
        if held < 0 or timers.due[held] > due or (timers.due[held] == due and held >= timer):
            continue
        left = c.first[runs.config[one], 2 * t + 1]
        _unlink(p, one)
        if left < 0:
            _release(p, one)
            return False
        _narrow(p, c, one, left, held)
        _link(p, one)
    return True


@compiled
def _narrow(p: Pools, c: Cells, one: int, left: int, gone: int) -> None:
    """Only some groups are left, and only the timers in their domain."""
    p.runs.config[one] = left
    p.runs.sets[one] = 0
    for t in range(p.runs.timer.shape[1]):
        if not c.domain[left] >> t & 1 or p.runs.timer[one, t] == gone:
            p.runs.timer[one, t] = -1


# Nodes and their order.


@compiled
def _child(p: Pools, parent: int, event: Consumed, aliases: int) -> int:
    """The node of one event more; one that the step has made already is found again."""
    nodes, n = p.nodes, p.n
    latest = nodes.child[parent] if parent >= 0 else n[ROOT]
    found = latest
    while found >= 0 and nodes.sequence[found] == n[SEQUENCE]:
        if nodes.aliases[found] == aliases:
            return found
        found = nodes.sibling[found]
    node = n[NODES]
    n[NODES] += 1
    nodes.parent[node], nodes.event[node], nodes.sequence[node] = parent, event.event, n[SEQUENCE]
    nodes.aliases[node], nodes.sibling[node] = aliases, latest
    nodes.child[node], nodes.runs[node], nodes.accepted[node] = -1, -1, 0
    if parent >= 0:
        nodes.lo[node], nodes.hi[node] = min(nodes.lo[parent], event.lo), max(nodes.hi[parent], event.hi)
        nodes.depth[node] = nodes.depth[parent] + 1
        nodes.child[parent] = node
    else:
        nodes.lo[node], nodes.hi[node], nodes.depth[node] = event.lo, event.hi, 0
        n[ROOT] = node
    return node


@compiled
def _order(nodes: Nodes, a: int, b: int) -> int:
    """By the lists of events, compared element by element; aliases do not count."""
    result = (nodes.depth[a] > nodes.depth[b]) - (nodes.depth[a] < nodes.depth[b])
    while nodes.depth[a] > nodes.depth[b]:
        a = nodes.parent[a]
    while nodes.depth[b] > nodes.depth[a]:
        b = nodes.parent[b]
    while a != b:
        if nodes.sequence[a] != nodes.sequence[b]:
            result = (nodes.sequence[a] > nodes.sequence[b]) - (nodes.sequence[a] < nodes.sequence[b])
        a, b = nodes.parent[a], nodes.parent[b]
    return result


@compiled
def _sort_made(p: Pools) -> None:
    """The detections of the step; where the events are the same, the one with parameters comes first."""
    made, first, count = p.made, p.n[STEP], p.n[MADE] - p.n[STEP]
    for k in range(count):
        p.scratch[k] = made.node[first + k] << 32 | (1 - made.bound[first + k])
    _sort(p, count)
    for k in range(count):
        made.node[first + k] = p.scratch[k] >> 32
        made.bound[first + k] = 1 - (p.scratch[k] & 1)


@compiled
def _sort(p: Pools, count: int) -> None:
    """The first `count` pairs (node << 32 | number) in scratch: a heap sort."""
    a = p.scratch
    for end in range(2 * count - 1, 0, -1):  # first the heap is built, then emptied
        top, size = (end - count, count) if end >= count else (0, end)
        if end < count:
            a[0], a[end] = a[end], a[0]
        while True:
            child = 2 * top + 1
            if child >= size:
                break
            if child + 1 < size and _less(p.nodes, a[child], a[child + 1]):
                child += 1
            if not _less(p.nodes, a[top], a[child]):
                break
            a[top], a[child] = a[child], a[top]
            top = child


@compiled
def _less(nodes: Nodes, a: int, b: int) -> bool:
    order = _order(nodes, a >> 32, b >> 32)
    return order < 0 or (order == 0 and (a & 0xFFFFFFFF) < (b & 0xFFFFFFFF))
