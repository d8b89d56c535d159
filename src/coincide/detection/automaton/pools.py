"""What the compiled loops work on: arrays of numbers, named, and the lists that run through them."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.records import record

STAY, FAIL, TAKE = 0, 1, 2  # what a class does in a configuration
DONE, FULL = 0, 1

# Numbers that change, in `Pools.n`.
RUNS, FREE, NODES, TIMERS, QUEUE, MADE, FAILED, SEQUENCE, ENTERED, ENTERING, ROOT, STEP, FIRING, ROW, NEED = range(15)
COUNTERS = 15


# The automaton: see `tables.py`. A letter is 2 * class, + 1 where the row strongly follows the run.

CELL = record("kind first last")  # entries of TAKE from first to last; of FAIL, first is the configuration left, or -1
ENTRY = record("aliases bound target accept sets")
CONFIGURATION = record("domain active")  # timers that it keeps, timers that it has transitions for, as bits
CLASS = record("first last")  # the configurations that it concerns
TIMING = record("duration instant")


class Cells(NamedTuple):
    cells: Any  # by configuration and letter
    entries: Any
    configurations: Any
    classes: Any
    concerned: Any  # configurations, class by class
    starts: Any  # their configurations
    timings: Any
    most: int  # runs that one run can become


# What changes.

RUN = record("config slot node bound sets next previous same")
"""config -1: free; bound: have its events used the parameters? sets: timers to be set when the step ends, as bits; next and
previous: in its list; same: the next of those that the step has made at its node."""

NODE = record("parent event sequence lo hi aliases depth child sibling runs accepted")
"""event: its number in the store, -1 - timer for a time event; sequence orders all events that were consumed; lo and hi of
the whole path; child: the latest; runs: those that the step has made here."""

TIMER = record("due timing node rank")
"""In the order of setting. node: of the events that set it (-1: unknown); rank: its number among those that they set."""

QUEUED = record("timer run")
"""A heap by (due, timer). Entries that have lost their run are passed over."""

MADE_ONE = record("cause node slot bound")
"""A detection: the event that made it, the node of its events, the slot of its key, whether it has parameters."""

FAILED_ONE = record("row start")
SLOT = record("ended live")  # of a key: starts that have ended, as bits; number of runs


class Pools(NamedTuple):
    runs: Any
    held: Any  # by run and timing: its timer, or -1
    nodes: Any
    timers: Any
    queue: Any
    made: Any
    failed: Any
    slots: Any
    heads: Any  # by slot and configuration: the first run
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
    """The event: its reference, stamp and class; of a time event the timer, otherwise -1."""

    event: int
    lo: int
    hi: int
    kind: int
    timer: int


# Runs: free ones, those that the step has made, and the lists by key and configuration.


@inner
def room(p: Pools, c: Cells, more: int) -> bool:
    """Is there room for so many new runs, with all that may come with each?"""
    n, timings = p.n, p.held.shape[1]
    n[NEED] = more
    return bool(
        n[RUNS] + more <= len(p.runs)
        and n[NODES] + more <= len(p.nodes)
        and n[MADE] + more <= len(p.made)
        and n[MADE] - n[STEP] + more <= len(p.scratch)
        and n[FAILED] + len(c.starts) <= len(p.failed)
        and n[TIMERS] + timings * (n[ENTERING] + more) <= len(p.timers)
        and n[QUEUE] + timings * (n[ENTERING] + more) <= len(p.queue)
    )


@inner
def allocate(p: Pools, slot: int) -> int:
    one = p.n[FREE]
    if one >= 0:
        p.n[FREE] = p.runs[one].next
    else:
        one = p.n[RUNS]
        p.n[RUNS] += 1
    p.runs[one].slot = slot
    p.slots[slot].live += 1
    return int(one)


@inner
def release(p: Pools, one: int) -> None:
    p.slots[p.runs[one].slot].live -= 1
    p.runs[one].config = -1
    p.runs[one].next = p.n[FREE]
    p.n[FREE] = one


@inner
def enter(p: Pools, one: int) -> None:
    """It waits until the step ends: the event that made it does not concern it."""
    p.runs[one].next = p.n[ENTERED]
    p.n[ENTERED] = one
    p.n[ENTERING] += 1


@inner
def link(p: Pools, one: int) -> None:
    runs, heads = p.runs, p.heads
    slot, config = runs[one].slot, runs[one].config
    first = heads[slot, config]
    runs[one].next, runs[one].previous = first, -1
    if first >= 0:
        runs[first].previous = one
    heads[slot, config] = one


@inner
def unlink(p: Pools, one: int) -> None:
    runs = p.runs
    before, after = runs[one].previous, runs[one].next
    if before >= 0:
        runs[before].next = after
    else:
        p.heads[runs[one].slot, runs[one].config] = after
    if after >= 0:
        runs[after].previous = before


@compiled
def relink(p: Pools, c: Cells) -> None:
    """All lists and the queue made anew from the runs."""
    p.heads[:] = -1
    for slot in range(len(p.slots)):
        p.slots[slot].live = 0
    p.n[QUEUE] = 0
    for one in range(p.n[RUNS]):
        p.slots[p.runs[one].slot].live += 1
        link(p, one)
        await_timers(p, c, one)


# The queue of timers.


@inner
def await_timers(p: Pools, c: Cells, one: int) -> None:
    wanted = c.configurations[p.runs[one].config].active
    for t in range(p.held.shape[1]):
        if wanted >> t & 1 and p.held[one, t] >= 0:
            push(p, p.held[one, t], one)


@inner
def push(p: Pools, timer: int, one: int) -> None:
    queue, at = p.queue, p.n[QUEUE]
    p.n[QUEUE] += 1
    while at > 0 and sooner(p.timers, timer, queue[(at - 1) // 2].timer):
        queue[at].timer, queue[at].run = queue[(at - 1) // 2].timer, queue[(at - 1) // 2].run
        at = (at - 1) // 2
    queue[at].timer, queue[at].run = timer, one


@inner
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


@inner
def sooner(timers: Any, a: int, b: int) -> bool:
    return bool(timers[a].due < timers[b].due or (timers[a].due == timers[b].due and a < b))
