"""The compiled loop over what rows do to keys: sections 5 and 6 in tables of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.linked import append, free, next_row, occupy, take_out, touch
from coincide.detection.columns.records import Integers, Mask, Records, record
from coincide.detection.columns.tables import KEYED, Numbers, Shape

DONE, FULL = 0, 1
GAP, CANCEL, LEAD, ADVANCE, DROP = range(5)  # what an item does
FOREVER = 2**63 - 1

COUNTERS = record("nodes made open open_made at due cancelled")
"""Numbers that change: the one record in `Pools.n`. `due`: no timer is due before; `cancelled`: whether any was cancelled since
that was found out. `open`, `open_made`: the first node and the first of what was made of the key `at` hand."""

LOW = 32
ROW = (1 << LOW) - 1  # the bits of an entry that are its row

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
    use=KEYED,
)
# A complete sequence that its last event has set a timer for, and its rank among what that did; `placed`: it fires at a place
# that is told, because it does not follow from the event.
WAITS = Shape("waits", "key>keys node>nodes first last lower due rank placed", "before_wait after_wait")

KEY, SLOT, WAIT = KEYS.columns, KEYS.part, WAITS.columns

NODE = record("parent event moved")
"""An event of a sequence, by its number, and the node of the one before (-1: it is the first); `moved` is 0 but while the nodes
of a key are put together."""

MADE_ONE = record("slot node cause step turn wait")
"""What a row has brought about, as which step, under which of its keys (counted): a detection, or a wait."""

Cause = tuple[int, int, int]
"""A row, a step, the rank of the key in the row."""


class Pools(NamedTuple):
    keys: Numbers
    keys_head: Numbers
    waits: Numbers
    waits_head: Numbers
    nodes: Records
    made: Records
    n: Records


class Rows(NamedTuple):
    """What rows do: of step s the entries from heads[s] to ends[s], in order, each the number of a key (whose slot stands in
    `slots`; below 0: nothing is known of the key) and a row; those of the first step count first in a row. Of each entry the
    row's hi, and, where rows have several keys, its rank in the row. Of each row when it is consumed; `base` is the number of
    the first one as an event.

    So all that concerns a key comes together, which is what makes this fast."""

    entries: Numbers
    hi: Numbers
    turns: Numbers
    heads: Numbers
    ends: Numbers
    slots: Numbers
    at: Numbers
    base: int


class Stages(NamedTuple):
    """A query: what its items do, how many stages it has, `maxspan`, whether it has leading and trailing items."""

    steps: Records
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
    """Entries key by key, and row by row. Stops at the end, or where there is no room for what one entry can bring about."""
    n = p.n[0]
    while True:
        if n.nodes + stages.number > len(p.nodes) or next_row(p.waits_head) >= len(p.waits) or n.made >= len(p.made):
            return FULL
        entry, which = FOREVER, -1
        for s in range(len(rows.heads)):
            head = rows.heads[s]
            if head < rows.ends[s] and rows.entries[head] < entry:
                entry, which = rows.entries[head], s
        if entry >> LOW != n.at or which < 0:
            if n.at >= 0:
                _put_together(p, rows.slots[n.at], stages.number - 1)
            n.at, n.open, n.open_made = entry >> LOW, n.nodes, n.made
        if which < 0:
            n.at = -1
            return DONE
        i, step = rows.heads[which], stages.steps[which]
        rows.heads[which] += 1
        slot, row, now = rows.slots[entry >> LOW], entry & ROW, rows.hi[i]
        if slot < 0:
            continue
        if step.kind == ADVANCE:
            cause = (row, which, rows.turns[i] if len(rows.turns) else 0)
            for stage in range(step.last, step.first - 1, -1):
                _advance(p, stages, slot, stage, cause, now, rows.base + row)
        elif step.kind == GAP:
            _note_gap(p, slot, pending_at(step.first), now)
        elif step.kind == CANCEL:
            _cancel(p, slot, now, rows.at[row])
        elif step.kind == LEAD:
            _lead(p, slot, now)
        else:
            _drop(p, slot, stages.number - 1)


@inner
def _put_together(p: Pools, slot: int, stages: int) -> None:
    """Of the nodes that entries of one key have made, those stay that something leads to, in order."""
    first, last = p.n[0].open, p.n[0].nodes
    if first == last or slot < 0:
        return
    for stage in range(stages):
        _note(p.nodes, p.keys[slot, pending_at(stage) + SLOT.node], first)
    for made in range(p.n[0].open_made, p.n[0].made):
        if p.made[made].wait < 0:
            _note(p.nodes, p.made[made].node, first)
    wait = p.keys[slot, KEY.first_wait]
    while wait >= 0:
        _note(p.nodes, p.waits[wait, WAIT.node], first)
        wait = p.waits[wait, WAIT.after_wait]
    following = first
    for node in range(first, last):
        if p.nodes[node].moved != 0:
            p.nodes[following].parent = _moved(p.nodes, p.nodes[node].parent, first)
            p.nodes[following].event = p.nodes[node].event
            following += 1
            p.nodes[node].moved = following
    for stage in range(stages):
        at = pending_at(stage) + SLOT.node
        p.keys[slot, at] = _moved(p.nodes, p.keys[slot, at], first)
    for made in range(p.n[0].open_made, p.n[0].made):
        if p.made[made].wait < 0:
            p.made[made].node = _moved(p.nodes, p.made[made].node, first)
    wait = p.keys[slot, KEY.first_wait]
    while wait >= 0:
        p.waits[wait, WAIT.node] = _moved(p.nodes, p.waits[wait, WAIT.node], first)
        wait = p.waits[wait, WAIT.after_wait]
    for node in range(first, last):
        p.nodes[node].moved = 0
    p.n[0].nodes = following


@inner
def _note(nodes: Records, node: int, first: int) -> None:
    while node >= first and nodes[node].moved == 0:
        nodes[node].moved = 1
        node = nodes[node].parent


@inner
def _moved(nodes: Records, node: int, first: int) -> Any:
    """The new number of a node: nodes from the first on know it, counted from 1."""
    return nodes[node].moved - 1 if node >= first else node


@inner
def _advance(p: Pools, stages: Stages, slot: int, stage: int, cause: Cause, now: int, event: int) -> None:
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
    node = p.n[0].nodes
    p.nodes[node].parent, p.nodes[node].event = parent, event
    if stage < stages.number - 1:
        p.n[0].nodes += 1
        after = pending_at(stage)
        own[after + SLOT.first], own[after + SLOT.last], own[after + SLOT.lower] = first, now, lower
        own[after + SLOT.gap], own[after + SLOT.spoilt], own[after + SLOT.node] = FOREVER, spoilt, node
        own[KEY.touched] = now
        touch(p.keys, p.keys_head, slot)
    elif spoilt == 0:
        _complete(p, stages, slot, node, cause, first, now, lower)


@inner
def _complete(p: Pools, stages: Stages, slot: int, node: int, cause: Cause, first: int, last: int, lower: int) -> None:
    due = lower + stages.maxspan if stages.leading or stages.trailing else last
    if stages.trailing and due > last:
        number = occupy(p.waits, p.waits_head)
        wait = p.waits[number]
        wait[WAIT.key], wait[WAIT.node], wait[WAIT.due], wait[WAIT.placed] = slot, node, due, 0
        wait[WAIT.first], wait[WAIT.last], wait[WAIT.lower] = first, last, lower
        append(p.waits, WAIT.before_wait, number, p.keys, slot, KEY.first_wait)
        p.n[0].due = min(p.n[0].due, due)
        p.keys[slot, KEY.touched] = last
        touch(p.keys, p.keys_head, slot)
        _brought_about(p, slot, node, cause, number)
    elif stages.trailing or not stages.leading or last > due:
        _brought_about(p, slot, node, cause, -1)


@inner
def _brought_about(p: Pools, slot: int, node: int, cause: Cause, wait: int) -> None:
    made = p.made[p.n[0].made]
    made.slot, made.node, made.wait = slot, node, wait
    made.cause, made.step, made.turn = cause
    p.n[0].made += 1
    p.n[0].nodes += 1


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
            p.n[0].cancelled = 1
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
def group(
    numbers: Integers, rows: Integers, hi: Numbers, starts: Numbers, order: Numbers, entries: Numbers, own_hi: Numbers
) -> None:
    """Entries of rows with numbers, by number; starts[n] is how many have a lower one than n, and is counted up."""
    for i in range(len(rows)):
        at = starts[numbers[i]]
        starts[numbers[i]] += 1
        order[at] = i
        entries[at] = (numbers[i] << LOW) | rows[i]
        own_hi[at] = hi[rows[i]]


@compiled
def walk(nodes: Records, ends: Numbers, offsets: Numbers, events: Numbers) -> None:
    """The events on the ways to these nodes, the way of i from offsets[i] to offsets[i + 1]."""
    for i in range(len(ends)):
        node = ends[i]
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            events[at] = nodes[node].event
            node = nodes[node].parent


@compiled
def depths(nodes: Records, ends: Numbers, found: Numbers) -> None:
    for i in range(len(ends)):
        node = ends[i]
        while node >= 0:
            found[i] += 1
            node = nodes[node].parent


@compiled
def mark(nodes: Records, ends: Numbers, marks: Mask, first: int) -> None:
    """The nodes on the ways to these, from a first one on."""
    for i in range(len(ends)):
        node = ends[i]
        while node >= first and not marks[node - first]:
            marks[node - first] = True
            node = nodes[node].parent


@compiled
def keep(nodes: Records, needed: Numbers, number: Numbers) -> None:
    """Only the nodes that are needed, in order; `number` becomes the new number of each. A node comes behind its parent."""
    for following in range(len(needed)):
        node = needed[following]
        number[node] = following
        parent = nodes[node].parent
        nodes[following].parent = number[parent] if parent >= 0 else -1
        nodes[following].event = nodes[node].event


@compiled
def link(keys: Numbers, waits: Numbers, numbers: Numbers) -> None:
    """The lists of waits by key, which are empty."""
    for number in numbers:
        append(waits, WAIT.before_wait, number, keys, waits[number, WAIT.key], KEY.first_wait)


@compiled
def unlink(keys: Numbers, waits: Numbers, numbers: Numbers) -> None:
    for number in numbers:
        take_out(waits, WAIT.before_wait, number, keys, waits[number, WAIT.key], KEY.first_wait)
