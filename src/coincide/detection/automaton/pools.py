"""What the compiled loops work on: arrays of numbers, named, and the lists that run through them."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.automaton.layout import KEY, OF_KEYS, OF_NODES, OF_RUNS, OF_TIMERS, RUN, TIMER
from coincide.detection.columns.compiling import compiled, inlined
from coincide.detection.columns.linked import free, occupy
from coincide.detection.columns.records import record
from coincide.detection.columns.tables import COUNT, FREE, IN_USE

STAY, FAIL, TAKE = 0, 1, 2  # what a class does in a configuration
DONE, FULL = 0, 1

# Numbers that change, in `Pools.n`.
QUEUE, MADE, FAILED, SEQUENCE, ENTERED, ENTERING, ROOT, STEP, FIRING, ROW, NEED = range(11)
COUNTERS = 11


# The automaton: see `tables.py`. A letter is 2 * class, + 1 where the row strongly follows the run.

CELL = record("kind first last")  # entries of TAKE from first to last; of FAIL, first is the configuration left, or -1
ENTRY = record("aliases bound target accept sets")
CONFIGURATION = record("domain active")  # timers that it keeps, timers that it has transitions for, as bits
CLASS = record("first last")  # the configurations that it concerns
TIMING = record("duration instant of_day")


class Cells(NamedTuple):
    cells: Any  # by configuration and letter
    entries: Any
    configurations: Any
    classes: Any
    concerned: Any  # configurations, class by class
    starts: Any  # their configurations
    timings: Any
    most: int  # runs that one run can become


# What changes: the tables of the state (layout.py), and what belongs to a step.

QUEUED = record("timer run")
"""A heap by (due, timer). Entries that have lost their run are passed over."""

MADE_ONE = record("cause node slot bound")
"""A detection: the event that made it, the node of its events, the slot of its key, whether it has parameters."""

FAILED_ONE = record("row slot start")


class Pools(NamedTuple):
    keys: Any
    timers: Any
    nodes: Any
    runs: Any
    heads: Any  # of these tables
    firsts: Any  # by key and configuration: the first run
    queue: Any
    made: Any
    failed: Any
    scratch: Any
    n: Any


class Rows(NamedTuple):
    """A batch: of each row the code (and of each code the class, -1: no leaf holds it), the number of its key (and of each
    number the slot), its stamp and when it is consumed; the number of the first one as an event."""

    codes: Any
    classes: Any
    keys: Any
    slots: Any
    lo: Any
    hi: Any
    at: Any
    base: int


class Consumed(NamedTuple):
    """The event: its number, stamp and class; of a time event the timer (and no number), otherwise -1."""

    event: int
    lo: int
    hi: int
    kind: int
    timer: int


# Runs: those that the step has made, and the lists by key and configuration.


@inlined
def room(p: Pools, c: Cells, more: int) -> bool:
    """Is there room for so many new runs, with all that may come with each?"""
    n, heads = p.n, p.heads
    n[NEED] = more
    set_more = timings(p) * (n[ENTERING] + more)
    return bool(
        heads[OF_RUNS, COUNT] + more <= len(p.runs)
        and heads[OF_NODES, COUNT] + more <= len(p.nodes)
        and n[MADE] + more <= len(p.made)
        and n[MADE] - n[STEP] + more <= len(p.scratch)
        and n[FAILED] + len(c.starts) <= len(p.failed)
        and heads[OF_TIMERS, COUNT] + set_more <= len(p.timers)
        and n[QUEUE] + set_more <= len(p.queue)
    )


@inlined
def timings(p: Pools) -> int:
    return int(p.runs.shape[1] - RUN.parts)


@inlined
def allocate(p: Pools, slot: int) -> int:
    one = occupy(p.runs, p.heads[OF_RUNS])
    p.runs[one, RUN.key] = slot
    p.keys[slot, KEY.live] += 1
    return int(one)


@inlined
def release(p: Pools, one: int) -> None:
    p.keys[p.runs[one, RUN.key], KEY.live] -= 1
    free(p.runs, p.heads[OF_RUNS], one)


@inlined
def enter(p: Pools, one: int) -> None:
    """It waits until the step ends: the event that made it does not concern it."""
    p.runs[one, RUN.next] = p.n[ENTERED]
    p.n[ENTERED] = one
    p.n[ENTERING] += 1


@inlined
def link(p: Pools, one: int) -> None:
    runs, firsts = p.runs, p.firsts
    slot, config = runs[one, RUN.key], runs[one, RUN.configuration]
    first = firsts[slot, config]
    runs[one, RUN.next], runs[one, RUN.previous] = first, -1
    if first >= 0:
        runs[first, RUN.previous] = one
    firsts[slot, config] = one


@inlined
def unlink(p: Pools, one: int) -> None:
    runs = p.runs
    before, after = runs[one, RUN.previous], runs[one, RUN.next]
    if before >= 0:
        runs[before, RUN.next] = after
    else:
        p.firsts[runs[one, RUN.key], runs[one, RUN.configuration]] = after
    if after >= 0:
        runs[after, RUN.previous] = before


@compiled
def relink(p: Pools, c: Cells) -> None:
    """All lists and the queue made anew from the runs."""
    p.firsts[:] = -1
    for slot in range(p.heads[OF_KEYS, COUNT]):
        p.keys[slot, KEY.live] = 0
    p.n[QUEUE] = 0
    for one in range(p.heads[OF_RUNS, COUNT]):
        if p.runs[one, FREE] != IN_USE:
            continue
        p.keys[p.runs[one, RUN.key], KEY.live] += 1
        link(p, one)
        await_timers(p, c, one)


# The queue of timers.


@inlined
def await_timers(p: Pools, c: Cells, one: int) -> None:
    wanted = c.configurations[p.runs[one, RUN.configuration]].active
    for t in range(timings(p)):
        if wanted >> t & 1 and p.runs[one, RUN.parts + t] >= 0:
            push(p, p.runs[one, RUN.parts + t], one)


@inlined
def push(p: Pools, timer: int, one: int) -> None:
    queue, at = p.queue, p.n[QUEUE]
    p.n[QUEUE] += 1
    while at > 0 and sooner(p.timers, timer, queue[(at - 1) // 2].timer):
        queue[at].timer, queue[at].run = queue[(at - 1) // 2].timer, queue[(at - 1) // 2].run
        at = (at - 1) // 2
    queue[at].timer, queue[at].run = timer, one


@inlined
def pop(p: Pools) -> int:
    """The run of the first entry."""
    queue, size = p.queue, p.n[QUEUE] - 1
    p.n[QUEUE] = size
    first, timer, one, at = queue[0].run, queue[size].timer, queue[size].run, 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and sooner(p.timers, queue[child + 1].timer, queue[child].timer):
            child += 1
        if not sooner(p.timers, queue[child].timer, timer):
            break
        queue[at].timer, queue[at].run = queue[child].timer, queue[child].run
        at = child
    queue[at].timer, queue[at].run = timer, one
    return int(first)


@inlined
def sooner(timers: Any, a: int, b: int) -> bool:
    return bool(timers[a, TIMER.due] < timers[b, TIMER.due] or (timers[a, TIMER.due] == timers[b, TIMER.due] and a < b))
