"""The compiled loop over what rows do to keys: sections 5 and 6 in arrays of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.records import record

DONE, FULL = 0, 1
GAP, CANCEL, LEAD, ADVANCE, DROP = range(5)  # what an item does
FOREVER = 2**63 - 1

# Numbers that change, in `Pools.n`.
NODES, WAITS, MADE, ENTRY, ROW, RANK = range(6)
COUNTERS = 6

STEP = record("kind first last")
"""What an item does, to which stages: of GAP the one that is spoilt."""

SLOT = record("first last lower gap spoilt node")
"""A pending sequence: times of its first and last event; `lower` is that of section 6; `gap` the time of the first event of a
missing item since the last one (FOREVER: none); the node of its last event (-1: there is no sequence)."""

KEY = record("latest before touched waiting")
"""The two latest times of leading items, when it was last changed, the first of its waits (-1: none)."""

NODE = record("parent event")
"""An event of a sequence, by its number, and the node of the one before (-1: it is the first)."""

WAIT = record("slot node first last lower due cause rank next gone")
"""A complete sequence that a timer was set for: by which row (-1: in an earlier batch), as the how-manieth thing that it did;
next: of its key; gone: a missing event came."""

MADE_ONE = record("cause slot node rank")
"""A detection that a row made at once."""


class Pools(NamedTuple):
    slots: Any  # by key and stage
    keys: Any
    nodes: Any
    waits: Any
    made: Any
    n: Any


class Rows(NamedTuple):
    """Entries in the order in which they count: the row, what it does, and to which key. Of each row its hi, and when it is
    consumed; `base` is the number of the first one as an event."""

    row: Any
    step: Any
    slot: Any
    hi: Any
    at: Any
    base: int


class Shape(NamedTuple):
    """A query: what its items do, how many stages it has, `maxspan`, whether it has leading and trailing items."""

    steps: Any
    stages: int
    maxspan: int
    leading: bool
    trailing: bool


@compiled
def run(p: Pools, rows: Rows, shape: Shape) -> int:
    """From entry n[ENTRY] on. Stops at the end, or where there is no room for what one entry can bring about."""
    n = p.n
    most = shape.stages
    for i in range(n[ENTRY], len(rows.row)):
        if n[NODES] + most > len(p.nodes) or n[WAITS] + 1 > len(p.waits) or n[MADE] + 1 > len(p.made):
            n[ENTRY] = i
            return FULL
        row, slot, step = rows.row[i], rows.slot[i], shape.steps[rows.step[i]]
        now = rows.hi[row]
        if step.kind == ADVANCE:
            for stage in range(step.last, step.first - 1, -1):
                _advance(p, shape, slot, stage, row, now, rows.base + row)
        elif step.kind == GAP:
            pending = p.slots[slot, step.first]
            if pending.node >= 0 and now > pending.last:
                pending.gap = min(pending.gap, now)
        elif step.kind == CANCEL:
            _cancel(p, slot, now, rows.at[row])
        elif step.kind == LEAD:
            _lead(p.keys[slot], now)
        else:
            for stage in range(shape.stages - 1):
                p.slots[slot, stage].node = -1
    n[ENTRY] = len(rows.row)
    return DONE


@inner
def _advance(p: Pools, shape: Shape, slot: int, stage: int, row: int, now: int, event: int) -> None:
    own = p.keys[slot]
    parent, first, lower, spoilt = -1, now, now, 0
    if stage > 0:
        before = p.slots[slot, stage - 1]
        if before.node < 0:
            return
        parent, first, lower = before.node, before.first, before.lower
        spoilt = 1 if before.spoilt != 0 or before.gap < now else 0
        before.node = -1
        if now - first > shape.maxspan:
            return
    elif shape.leading:
        lower = own.latest if own.latest < now else own.before
    node = p.n[NODES]
    p.nodes[node].parent, p.nodes[node].event = parent, event
    if stage < shape.stages - 1:
        p.n[NODES] += 1
        after = p.slots[slot, stage]
        after.first, after.last, after.lower, after.gap, after.spoilt, after.node = first, now, lower, FOREVER, spoilt, node
        own.touched = now
    elif spoilt == 0:
        _complete(p, shape, slot, node, row, first, now, lower)


@inner
def _complete(p: Pools, shape: Shape, slot: int, node: int, row: int, first: int, last: int, lower: int) -> None:
    due = lower + shape.maxspan if shape.leading or shape.trailing else last
    if shape.trailing and due > last:
        wait, own = p.waits[p.n[WAITS]], p.keys[slot]
        wait.slot, wait.node, wait.first, wait.last, wait.lower, wait.due = slot, node, first, last, lower, due
        wait.cause, wait.rank, wait.next, wait.gone = row, _rank(p.n, row), own.waiting, 0
        own.waiting, own.touched = p.n[WAITS], last
        p.n[WAITS] += 1
        p.n[NODES] += 1
    elif shape.trailing or not shape.leading or last > due:
        made = p.made[p.n[MADE]]
        made.cause, made.slot, made.node, made.rank = row, slot, node, _rank(p.n, row)
        p.n[MADE] += 1
        p.n[NODES] += 1


@inner
def _rank(n: Any, row: int) -> int:
    """The number of what is done now among all that the row does."""
    n[RANK] = n[RANK] + 1 if n[ROW] == row else 0
    n[ROW] = row
    return n[RANK]  # type: ignore[no-any-return]


@inner
def _cancel(p: Pools, slot: int, now: int, at: int) -> None:
    """A missing event at the end: sequences that still wait make no detection. Those whose time is up have made theirs."""
    own = p.keys[slot]
    kept, wait = -1, own.waiting
    while wait >= 0:
        one = p.waits[wait]
        following = one.next
        if one.due >= at and now > one.last:
            one.gone = 1
        elif one.due >= at:
            one.next = kept
            kept = wait
        wait = following
    own.waiting = kept


@inner
def _lead(own: Any, now: int) -> None:
    own.touched = now
    if now > own.latest:
        own.latest, own.before = now, own.latest
    elif own.before < now < own.latest:
        own.before = now


@compiled
def walk(nodes: Any, ends: Any, offsets: Any, events: Any) -> None:
    """The events on the ways to these nodes, the way of i from offsets[i] to offsets[i + 1]."""
    for i in range(len(ends)):
        node = ends[i]
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            events[at] = nodes[node].event
            node = nodes[node].parent


@compiled
def depths(nodes: Any, ends: Any, found: Any) -> None:
    for i in range(len(ends)):
        node = ends[i]
        while node >= 0:
            found[i] += 1
            node = nodes[node].parent


@compiled
def mark(nodes: Any, ends: Any, marks: Any) -> None:
    """The nodes on the ways to these."""
    for i in range(len(ends)):
        node = ends[i]
        while node >= 0 and not marks[node]:
            marks[node] = True
            node = nodes[node].parent


@compiled
def relink(keys: Any, waits: Any) -> None:
    """The lists of waits by key."""
    for slot in range(len(keys)):
        keys[slot].waiting = -1
    for wait in range(len(waits)):
        own = keys[waits[wait].slot]
        waits[wait].next = own.waiting
        own.waiting = wait
