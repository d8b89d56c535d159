"""What the compiled loops work on: arrays of numbers, named, and the lists that run through them."""

from __future__ import annotations

from typing import NamedTuple

from coincide.detection.automaton.layout import KEY, OF, RUN, TIMER
from coincide.detection.columns.compiling import compiled, inlined
from coincide.detection.columns.heaps import push
from coincide.detection.columns.linked import free, occupy, put_after, take_out
from coincide.detection.columns.records import Integers, Records, record
from coincide.detection.columns.tables import COUNT, FREE, IN_USE, Numbers

STAY, FAIL, TAKE = 0, 1, 2  # what a class does in a configuration
DONE, FULL = 0, 1

COUNTERS = record("queue made failed sequence entered entering root step firing row need")
"""Numbers that change: the one record in `Pools.n`."""

# The automaton: see `tables.py`. A letter is 2 * class, + 1 where the row strongly follows the run.

CELL = record("kind first last")  # entries of TAKE from first to last; of FAIL, first is the configuration left, or -1
ENTRY = record("aliases bound target accept sets")
CONFIGURATION = record("domain active")  # timers that it keeps, timers that it has transitions for, as bits
CLASS = record("first last")  # the configurations that it concerns
TIMING = record("duration instant of_day")


class Cells(NamedTuple):
    cells: Records  # by configuration and letter
    entries: Records
    configurations: Records
    classes: Records
    concerned: Numbers  # configurations, class by class
    starts: Numbers  # their configurations
    timings: Records
    most: int  # runs that one run can become


# What changes: the tables of the state (layout.py), and what belongs to a step.

MADE_ONE = record("cause node slot bound")
"""A detection: the event that made it, the node of its events, the slot of its key, whether it has parameters."""

FAILED_ONE = record("row slot start")


class Pools(NamedTuple):
    keys: Numbers
    timers: Numbers
    nodes: Numbers
    runs: Numbers
    heads: Numbers  # of these tables
    lists: Numbers  # by key and configuration: the first run, the last one
    queue: Records  # runs by the timers that they wait for; those that have lost their run are passed over
    made: Records
    failed: Records
    scratch: Numbers
    n: Records


class Rows(NamedTuple):
    """A batch: of each row the code (and of each code the class, -1: no leaf holds it), the number of its key (and of each
    number the slot), its stamp and when it is consumed; the number of the first one as an event."""

    codes: Integers
    classes: Numbers
    keys: Integers
    slots: Numbers
    lo: Numbers
    hi: Numbers
    at: Numbers
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
    n, heads = p.n[0], p.heads
    n.need = more
    set_more = timings(p) * (n.entering + more)
    return bool(
        heads[OF.runs, COUNT] + more <= len(p.runs)
        and heads[OF.nodes, COUNT] + more <= len(p.nodes)
        and n.made + more <= len(p.made)
        and n.made - n.step + more <= len(p.scratch)
        and n.failed + len(c.starts) <= len(p.failed)
        and heads[OF.timers, COUNT] + set_more <= len(p.timers)
        and n.queue + set_more <= len(p.queue)
    )


@inlined
def timings(p: Pools) -> int:
    return int(p.runs.shape[1] - RUN.parts)


@inlined
def allocate(p: Pools, slot: int) -> int:
    one = occupy(p.runs, p.heads[OF.runs])
    p.runs[one, RUN.key] = slot
    p.keys[slot, KEY.live] += 1
    return int(one)


@inlined
def release(p: Pools, one: int) -> None:
    p.keys[p.runs[one, RUN.key], KEY.live] -= 1
    free(p.runs, p.heads[OF.runs], one)


@inlined
def enter(p: Pools, one: int) -> None:
    """It waits until the step ends: the event that made it does not concern it."""
    p.runs[one, RUN.next] = p.n[0].entered
    p.n[0].entered = one
    p.n[0].entering += 1


@inlined
def link(p: Pools, one: int) -> None:
    put_after(p.runs, RUN.previous, -1, one, p.lists, p.runs[one, RUN.key], 2 * p.runs[one, RUN.configuration])


@inlined
def unlink(p: Pools, one: int) -> None:
    take_out(p.runs, RUN.previous, one, p.lists, p.runs[one, RUN.key], 2 * p.runs[one, RUN.configuration])


@compiled
def relink(p: Pools, c: Cells) -> None:
    """All lists and the queue made anew from the runs."""
    p.lists[:] = -1
    for slot in range(p.heads[OF.keys, COUNT]):
        p.keys[slot, KEY.live] = 0
    p.n[0].queue = 0
    for one in range(p.heads[OF.runs, COUNT]):
        if p.runs[one, FREE] != IN_USE:
            continue
        p.keys[p.runs[one, RUN.key], KEY.live] += 1
        link(p, one)
        await_timers(p, c, one)


@inlined
def await_timers(p: Pools, c: Cells, one: int) -> None:
    wanted, n = c.configurations[p.runs[one, RUN.configuration]].active, p.n[0]
    for t in range(timings(p)):
        timer = p.runs[one, RUN.parts + t]
        if wanted >> t & 1 and timer >= 0:
            push(p.queue, n.queue, p.timers[timer, TIMER.due], timer, one)
            n.queue += 1
