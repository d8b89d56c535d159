"""The compiled loop over what rows do to keys: sections 5 and 6 in tables of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.linked import append, free, next_row, occupy, take_out, touch
from coincide.detection.columns.records import record
from coincide.detection.columns.tables import Shape

DONE, FULL = 0, 1
GAP, CANCEL, LEAD, ADVANCE, DROP = range(5)  # what an item does
FOREVER = 2**63 - 1

# Numbers that change, in `Pools.n`. DUE: no timer is due before; CANCELLED: whether any was cancelled since that was found out.
NODES, MADE, ENTRY, ROW, RANK, DUE, CANCELLED = range(7)
COUNTERS = 7

STEP = record("kind first last")
"""What an item does, to which stages: of GAP the one that is spoilt."""

# The tables of a state. A key: the two latest times of leading items, when it was last changed; of samples and joins, how many
# events it has seen and whether it is closed. By stage, a pending sequence: times of its first and last event; `lower` is that of
# section 6; `gap` the time of the first event of a missing item since the last one (FOREVER: none); the node of its last event.
KEYS = Shape(
    "keys",
    "latest before touched seen closed",
    "first_wait last_wait",
    parts="first last lower gap spoilt node>nodes?",
    valued=True,
)
# A complete sequence that its last event has set a timer for, as the how-manieth thing that it did; `placed`: it fires at a place
# that is told, because it does not follow from the event.
WAITS = Shape("waits", "key>keys node>nodes first last lower due rank placed", "before_wait after_wait")

KEY, SLOT, WAIT = KEYS.columns, KEYS.part, WAITS.columns

NODE = record("parent event")
"""An event of a sequence, by its number, and the node of the one before (-1: it is the first)."""

MADE_ONE = record("cause slot node rank")
"""A detection that a row made at once."""


class Pools(NamedTuple):
    keys: Any
    keys_head: Any
    waits: Any
    waits_head: Any
    nodes: Any
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


class Stages(NamedTuple):
    """A query: what its items do, how many stages it has, `maxspan`, whether it has leading and trailing items."""

    steps: Any
    number: int
    maxspan: int
    leading: bool
    trailing: bool


@inner
def pending_at(stage: int) -> Any:
    """Where in a key's row the pending sequence of a stage begins."""
    return KEY.parts + stage * SLOT.width


@compiled
def run(p: Pools, rows: Rows, stages: Stages) -> int:
    """From entry n[ENTRY] on. Stops at the end, or where there is no room for what one entry can bring about."""
    n = p.n
    for i in range(n[ENTRY], len(rows.row)):
        if n[NODES] + stages.number > len(p.nodes) or next_row(p.waits, p.waits_head) >= len(p.waits) or n[MADE] >= len(p.made):
            n[ENTRY] = i
            return FULL
        row, slot, step = rows.row[i], rows.slot[i], stages.steps[rows.step[i]]
        now = rows.hi[row]
        if step.kind == ADVANCE:
            for stage in range(step.last, step.first - 1, -1):
                _advance(p, stages, slot, stage, row, now, rows.base + row)
        elif step.kind == GAP:
            _note_gap(p, slot, pending_at(step.first), now)
        elif step.kind == CANCEL:
            _cancel(p, slot, now, rows.at[row])
        elif step.kind == LEAD:
            _lead(p, slot, now)
        else:
            _drop(p, slot, stages.number - 1)
    n[ENTRY] = len(rows.row)
    return DONE


@inner
def _advance(p: Pools, stages: Stages, slot: int, stage: int, row: int, now: int, event: int) -> None:
    own = p.keys[slot]
    parent, first, lower, spoilt = -1, now, now, 0
    if stage > 0:
        before = pending_at(stage - 1)
        if own[before + SLOT.node] < 0:
            return
        parent, first, lower = own[before + SLOT.node], own[before + SLOT.first], own[before + SLOT.lower]
        spoilt = 1 if own[before + SLOT.spoilt] != 0 or own[before + SLOT.gap] < now else 0
        own[before + SLOT.node] = -1
        touch(p.keys, p.keys_head, slot)
        if now - first > stages.maxspan:
            return
    elif stages.leading:
        lower = own[KEY.latest] if own[KEY.latest] < now else own[KEY.before]
    node = p.n[NODES]
    p.nodes[node].parent, p.nodes[node].event = parent, event
    if stage < stages.number - 1:
        p.n[NODES] += 1
        after = pending_at(stage)
        own[after + SLOT.first], own[after + SLOT.last], own[after + SLOT.lower] = first, now, lower
        own[after + SLOT.gap], own[after + SLOT.spoilt], own[after + SLOT.node] = FOREVER, spoilt, node
        own[KEY.touched] = now
        touch(p.keys, p.keys_head, slot)
    elif spoilt == 0:
        _complete(p, stages, slot, node, row, first, now, lower)


@inner
def _complete(p: Pools, stages: Stages, slot: int, node: int, row: int, first: int, last: int, lower: int) -> None:
    due = lower + stages.maxspan if stages.leading or stages.trailing else last
    if stages.trailing and due > last:
        number = occupy(p.waits, p.waits_head)
        wait = p.waits[number]
        wait[WAIT.key], wait[WAIT.node], wait[WAIT.due], wait[WAIT.placed] = slot, node, due, 0
        wait[WAIT.first], wait[WAIT.last], wait[WAIT.lower], wait[WAIT.rank] = first, last, lower, _rank(p.n, row)
        append(p.waits, WAIT.before_wait, number, p.keys, slot, KEY.first_wait)
        p.n[DUE] = min(p.n[DUE], due)
        p.keys[slot, KEY.touched] = last
        touch(p.keys, p.keys_head, slot)
        p.n[NODES] += 1
    elif stages.trailing or not stages.leading or last > due:
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
def _note_gap(p: Pools, slot: int, at: int, now: int) -> None:
    own = p.keys[slot]
    if own[at + SLOT.node] >= 0 and own[at + SLOT.last] < now < own[at + SLOT.gap]:
        own[at + SLOT.gap] = now
        touch(p.keys, p.keys_head, slot)


@inner
def _cancel(p: Pools, slot: int, now: int, at: int) -> None:
    """A missing event at the end: sequences that still wait make no detection. Those whose time is up have made theirs."""
    wait = p.keys[slot, KEY.first_wait]
    while wait >= 0:
        following = p.waits[wait, WAIT.after_wait]
        if p.waits[wait, WAIT.due] >= at and now > p.waits[wait, WAIT.last]:
            take_out(p.waits, WAIT.before_wait, wait, p.keys, slot, KEY.first_wait)
            free(p.waits, p.waits_head, wait)
            p.n[CANCELLED] = 1
        wait = following


@inner
def _lead(p: Pools, slot: int, now: int) -> None:
    own = p.keys[slot]
    own[KEY.touched] = now
    if now > own[KEY.latest]:
        own[KEY.latest], own[KEY.before] = now, own[KEY.latest]
    elif own[KEY.before] < now < own[KEY.latest]:
        own[KEY.before] = now
    touch(p.keys, p.keys_head, slot)


@inner
def _drop(p: Pools, slot: int, stages: int) -> None:
    for stage in range(stages):
        if p.keys[slot, pending_at(stage) + SLOT.node] >= 0:
            p.keys[slot, pending_at(stage) + SLOT.node] = -1
            touch(p.keys, p.keys_head, slot)


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
def mark(nodes: Any, ends: Any, marks: Any, first: int) -> None:
    """The nodes on the ways to these, from a first one on."""
    for i in range(len(ends)):
        node = ends[i]
        while node >= first and not marks[node - first]:
            marks[node - first] = True
            node = nodes[node].parent


@compiled
def link(keys: Any, waits: Any, numbers: Any) -> None:
    """The lists of waits by key, which are empty."""
    for number in numbers:
        append(waits, WAIT.before_wait, number, keys, waits[number, WAIT.key], KEY.first_wait)


@compiled
def unlink(keys: Any, waits: Any, numbers: Any) -> None:
    for number in numbers:
        take_out(waits, WAIT.before_wait, number, keys, waits[number, WAIT.key], KEY.first_wait)
