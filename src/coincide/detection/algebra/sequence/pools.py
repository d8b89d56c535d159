"""What the compiled loop works on: occurrences and the lists that they wait in, as arrays of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.detection.algebra.shape.shapes import ABSENT, AFTER, DELAYED, NEVER, SILENT, WITHOUT
from coincide.detection.columns import linked
from coincide.detection.columns.compiling import compiled, inlined, inner
from coincide.detection.columns.linked import put_after, rows_of, take_out
from coincide.detection.columns.operations import of_two
from coincide.detection.columns.records import Doubles, Mask, Numbers, Records, record
from coincide.detection.columns.worlds import borrowed

OCCURRENCE = record("lo hi left right event operator before after")
"""`event` is a leaf's, by number; `before` and `after` are its neighbours in the list that it waits in."""

OPERATOR = record(
    "kind left right leaf policy limit operand_limit length horizon gap register position step offset condition conditions"
    " reduces continues mixed made best store"
)
WAITING = record("first last count")

PORTION = record("begin count most")
"""Of an operator, what it makes in a group: where it begins in `Pools.new`, how many, at most how many."""
COUNTERS = record("occurrences made group due need written removed last_removed")
"""Of the first `written` occurrences those that waited were written; `removed` of them wait no more: the last of these, and
`before` it the others."""
BEFORE, FIRST = (OCCURRENCE.names or ()).index("before"), (WAITING.names or ()).index("first")
DONE, FULL = 0, 1
UNSET = -NEVER
"""What a register has before anything was kept in it."""


Rooms = tuple[Numbers, Numbers]
"""For the events of two occurrences."""


class Pools(NamedTuple):
    """`waiting[slot, store]` are lists of occurrences, oldest first; those that wait for a time, by that. `made` are those of the
    root, with their slot."""

    occurrences: Records
    waiting: Records
    made: Numbers
    new: Numbers  # what each operator makes in a group
    counts: Records  # by operator
    n: Records
    codes: Numbers  # of the primitive events under each event, where detections are read
    offsets: Numbers
    registers: Numbers  # by slot: numbers that operators count or remember
    conditions: Numbers  # the operators of two leaves, and how their values compare
    values: Doubles  # of each event, for both sides of each condition; nan: null


class Groups(NamedTuple):
    """Rows of one instant and key; group i has those from starts[i] to starts[i + 1]. `held`: a bit for each leaf."""

    starts: Numbers
    lo: Numbers
    hi: Numbers
    slot: Numbers
    held: Numbers
    event: Numbers


# Lists.


@inlined
def append(occurrences: Records, lists: Records, store: int, one: int) -> None:
    linked.append(rows_of(occurrences), BEFORE, one, rows_of(lists), store, FIRST)
    lists[store].count += 1


@inner
def insert(p: Pools, slot: int, store: int, one: int, o: np.record) -> None:
    """By when something is made of it; among equals as it comes."""
    lists, before, due = p.waiting[slot], p.waiting[slot, store].last, due_of(p.occurrences, o, one)
    while before >= 0 and due_of(p.occurrences, o, before) > due:
        before = p.occurrences[before].before
    put_after(rows_of(p.occurrences), BEFORE, before, one, rows_of(lists), store, FIRST)
    lists[store].count += 1


@inlined
def due_of(occurrences: Records, o: np.record, one: int) -> Any:
    x = occurrences[one]
    return max(x.hi, x.lo + o.length) if o.kind == AFTER else x.hi + o.length


@inlined
def is_timed(o: np.record) -> Any:
    return o.kind in (AFTER, SILENT, DELAYED)


@inner
def next_due(p: Pools, operators: Records, slot: int) -> Any:
    """When something is made in a slot though nothing comes."""
    due = NEVER
    for number in range(len(operators)):
        o = operators[number]
        if is_timed(o) and p.waiting[slot, o.store].first >= 0:
            due = min(due, due_of(p.occurrences, o, p.waiting[slot, o.store].first))
        elif o.kind == ABSENT and UNSET < p.registers[slot, o.register] < NEVER:
            due = min(due, p.registers[slot, o.register] + o.length)
    return due


@compiled
def dues(pools: Pools, operators: Records, slots: Numbers, found: Numbers) -> None:
    """Of each of these slots."""
    p = borrowed(pools)
    for i in range(len(slots)):
        found[i] = next_due(p, operators, slots[i])


@inlined
def remove(p: Pools, slot: int, store: int, one: int) -> None:
    take_out(rows_of(p.occurrences), BEFORE, one, rows_of(p.waiting[slot]), store, FIRST)
    p.waiting[slot, store].count -= 1
    if one < p.n[0].written:
        p.occurrences[one].before = p.n[0].last_removed
        p.n[0].last_removed = one
        p.n[0].removed += 1


@inlined
def keep_one(p: Pools, slot: int, store: int, one: int) -> None:
    other = p.waiting[slot, store].first
    while other >= 0:
        after = p.occurrences[other].after
        if other != one:
            remove(p, slot, store, other)
        other = after


@inlined
def new_occurrence(p: Pools, operator: int, lo: int, hi: int, left: int, right: int, event: int) -> Any:
    one = p.n[0].occurrences
    p.n[0].occurrences += 1
    o = p.occurrences[one]
    o.lo, o.hi, o.left, o.right, o.event, o.operator, o.before, o.after = lo, hi, left, right, event, operator, -1, -1
    return one


# Order (section 3): hi, lo, then the events in ascending order.


@inner
def events_of(p: Pools, one: int, room: Numbers) -> Any:
    """The events of an occurrence, ascending, written to `room`; how many they are."""
    waiting, count = 1, 0
    half = len(room) // 2
    room[half] = one
    while waiting > 0:
        waiting -= 1
        o = p.occurrences[room[half + waiting]]
        if o.left < 0:
            if o.event < 0:
                pass
            elif len(p.offsets) == 0:
                count = _insert(room, count, o.event)
            else:
                for i in range(p.offsets[o.event], p.offsets[o.event + 1]):
                    count = _insert(room, count, p.codes[i])
        else:
            room[half + waiting] = o.left
            room[half + waiting + 1] = o.right
            waiting += 1 if o.right < 0 else 2
    return count


@inner
def _insert(room: Numbers, count: int, number: int) -> Any:
    """Into numbers that ascend, once."""
    at = count
    while at > 0 and room[at - 1] > number:
        at -= 1
    if at > 0 and room[at - 1] == number:
        return count
    for i in range(count, at, -1):
        room[i] = room[i - 1]
    room[at] = number
    return count + 1


@inner
def precedes(p: Pools, a: int, b: int, room: Rooms) -> Any:
    """Is a before b in order?"""
    x, y = p.occurrences[a], p.occurrences[b]
    if x.hi != y.hi:
        return x.hi < y.hi
    if x.lo != y.lo:
        return x.lo < y.lo
    some = events_of(p, a, room[0])
    others = events_of(p, b, room[1])
    for at in range(min(some, others)):
        if room[0][at] != room[1][at]:
            return room[0][at] < room[1][at]
    return some < others


@inner
def starts_before(p: Pools, a: int, b: int, room: Rooms) -> Any:
    """By (lo, order)."""
    if p.occurrences[a].lo != p.occurrences[b].lo:
        return p.occurrences[a].lo < p.occurrences[b].lo
    return precedes(p, a, b, room)


# One event fills one role.


@inner
def conflict(p: Pools, operators: Records, a: int, b: int, room: Rooms) -> Any:
    """Is an event of one in a detection of the other?"""
    some = _leaves(p, a, room[0])
    others = _leaves(p, b, room[1])
    for i in range(some):
        for j in range(others):
            x, y = p.occurrences[room[0][i]], p.occurrences[room[1][j]]
            if operators[x.operator].made != operators[y.operator].made:
                event, detection = (y.event, x.event) if operators[x.operator].made else (x.event, y.event)
                if _contains(p, p.offsets[detection], p.offsets[detection + 1], p.codes[p.offsets[event]]):
                    return True
    return False


@inner
def _contains(p: Pools, first: int, last: int, code: int) -> Any:
    end = last
    while first < end:
        middle = (first + end) // 2
        if p.codes[middle] < code:
            first = middle + 1
        else:
            end = middle
    return first < last and p.codes[first] == code


@inner
def _leaves(p: Pools, one: int, room: Numbers) -> Any:
    """The occurrences of its leaves, written to `room`; how many."""
    waiting, count = 1, 0
    half = len(room) // 2
    room[half] = one
    while waiting > 0:
        waiting -= 1
        at = room[half + waiting]
        if p.occurrences[at].left < 0:
            room[count] = at
            count += 1
        else:
            room[half + waiting] = p.occurrences[at].left
            room[half + waiting + 1] = p.occurrences[at].right
            waiting += 1 if p.occurrences[at].right < 0 else 2
    return count


# What operands are compared by.


@inner
def meets(p: Pools, o: np.record, a: int, b: int, room: Rooms) -> Any:
    """Do all conditions hold of two occurrences together? What is null is neither more nor less."""
    for number in range(o.condition, o.condition + o.conditions):
        x = _value(p, 2 * number, p.conditions[number, 0], a, b, room)
        y = _value(p, 2 * number + 1, p.conditions[number, 1], a, b, room)
        if of_two(p.conditions[number, 2], x, y) != 1:
            return False
    return True


@inner
def _value(p: Pools, side: int, leaf: int, a: int, b: int, room: Rooms) -> Any:
    event = max(_event(p, leaf, a, room[0]), _event(p, leaf, b, room[0]))
    return p.values[side, event] if event >= 0 else np.nan


@inner
def _event(p: Pools, leaf: int, one: int, room: Numbers) -> Any:
    """That of a leaf, by the leaf's operator; -1: there is none."""
    for i in range(_leaves(p, one, room)):
        if p.occurrences[room[i]].operator == leaf:
            return p.occurrences[room[i]].event
    return -1


@inlined
def too_old(occurrences: Records, o: np.record, one: int, now: int) -> Any:
    """Can whatever comes, which ends now or later, never join it?"""
    x = occurrences[one]
    if now - x.lo > o.limit:
        return True
    return now - last_hi(occurrences, o, x) > o.operand_limit


@inlined
def last_hi(occurrences: Records, o: np.record, x: np.record) -> Any:
    """When the last operand of a prefix ended; a silence is none, and ends with the prefix."""
    return occurrences[x.right].hi if o.continues and x.right >= 0 else x.hi


# Between batches.


@compiled
def sweep(pools: Pools, operators: Records, now: int, copies: Records) -> Any:
    """Writes occurrences that wait, and their parts, to `copies`, and links them there; what is too old goes. How many."""
    p = borrowed(pools)
    count = 0
    for slot in range(p.waiting.shape[0]):
        for k in range(len(operators)):
            store = operators[k].store
            if store < 0:
                continue
            for side in range(_stores(operators[k])):
                waits_for_time = side == 0 and is_timed(operators[k])
                own = p.waiting[slot, store + side]
                one = own.first
                own.first, own.last, own.count = -1, -1, 0
                while one >= 0:
                    if waits_for_time or not too_old(p.occurrences, operators[k], one, now):
                        count, moved = _copied(p, one, copies, count)
                        append(copies, p.waiting[slot], store + side, moved)
                    one = p.occurrences[one].after
    return count


@inlined
def _stores(o: np.record) -> Any:
    return 1 if o.kind in (WITHOUT, SILENT, DELAYED) else 2


@inner
def _copied(p: Pools, one: int, copies: Records, count: int) -> Any:
    """With all its parts; parts that others share are copied for each."""
    root = count
    copies[count] = p.occurrences[one]
    count += 1
    at = root
    while at < count:
        if copies[at].left >= 0:
            right = copies[at].right
            copies[count] = p.occurrences[copies[at].left]
            copies[at].left = count
            count += 1
            if right >= 0:
                copies[count] = p.occurrences[right]
                copies[at].right = count
                count += 1
        at += 1
    return count, root


# What is told of them.


@compiled
def tell_waiting(p: Pools, slots: Numbers, first: int, by_time: Mask, found: Numbers) -> Any:
    """Writes occurrences from number `first` on that wait in some slots to `found`, with slot and store; each list backwards.
    Returns how many they are. Lists of the stores `by_time` need not ascend."""
    count = 0
    for i in range(len(slots)):
        for store in range(p.waiting.shape[1]):
            one = p.waiting[slots[i], store].last
            while one >= first or (one >= 0 and by_time[store]):
                if one >= first:
                    found[count, 0], found[count, 1], found[count, 2] = one, slots[i], store
                    count += 1
                one = p.occurrences[one].before
    return count


@compiled
def tell_removed(p: Pools, found: Numbers) -> None:
    one = p.n[0].last_removed
    for i in range(len(found)):
        found[i] = one
        one = p.occurrences[one].before


@compiled
def mark_parts(p: Pools, some: Numbers, first: int, marks: Mask, room: Numbers) -> None:
    """Marks these occurrences and all their parts, from number `first` on: the parts of earlier ones are earlier."""
    for i in range(len(some)):
        waiting = 1
        room[0] = some[i]
        while waiting > 0:
            waiting -= 1
            one = room[waiting]
            if one >= first and not marks[one - first]:
                marks[one - first] = True
                if p.occurrences[one].left >= 0:
                    room[waiting], room[waiting + 1] = p.occurrences[one].left, p.occurrences[one].right
                    waiting += 1 if p.occurrences[one].right < 0 else 2


@compiled
def leaves_of(occurrences: Records, operators: Records, made: Numbers, found: Numbers, room: Numbers) -> None:
    """`found[i, leaf]`: the event that a leaf of occurrence `made[i]` holds."""
    for i in range(len(made)):
        waiting = 1
        room[0] = made[i]
        while waiting > 0:
            waiting -= 1
            o = occurrences[room[waiting]]
            if o.left < 0 and o.event >= 0:
                found[i, operators[o.operator].leaf] = o.event
            elif o.left < 0:
                pass  # a silence
            else:
                room[waiting], room[waiting + 1] = o.left, o.right
                waiting += 1 if o.right < 0 else 2


def empty_pools(operators: int, stores: int, registers: int) -> Pools:
    return Pools(
        np.zeros(0, OCCURRENCE),
        np.zeros((0, max(stores, 1)), WAITING),
        np.zeros((0, 2), np.int64),
        np.zeros(0, np.int64),
        np.zeros(operators, PORTION),
        np.zeros(1, COUNTERS),
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, max(registers, 1)), np.int64),
        np.zeros((0, 3), np.int64),
        np.zeros((0, 0)),
    )
