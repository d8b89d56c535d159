"""The compiled loop: operators over the rows of one instant and key, bottom-up, as the nodes do it (5.2, 5.4), for stamps
that are exact points and detections that last. Then an occurrence is a point iff its ends are equal."""

from __future__ import annotations

from typing import Any

from coincide.detection.algebra.sequence.pools import (
    DONE,
    FULL,
    GROUP,
    MADE,
    NEED,
    OCCURRENCES,
    Groups,
    Pools,
    append,
    conflict,
    keep_one,
    new_occurrence,
    precedes,
    remove,
    starts_before,
    too_old,
)
from coincide.detection.algebra.shape.shapes import (
    BOTH,
    BY_ORDER,
    BY_START,
    CHRONICLE,
    CONTINUOUS,
    EITHER,
    LEAF,
    RECENT,
    SEQUENT,
    SHORTEST,
    UNRESTRICTED,
    WITHOUT,
)
from coincide.detection.columns.compiling import compiled, inner

BEGIN, COUNT, MOST = range(3)  # of `counts`


@compiled
def run(p: Pools, operators: Any, groups: Groups, room: Any) -> Any:
    """All groups from the next one on; stops before one that there is no room for."""
    while p.n[GROUP] < len(groups.starts) - 1:
        group = p.n[GROUP]
        need = _most(p, operators, groups, group)
        if max(p.n[OCCURRENCES], p.n[MADE]) + need > len(p.occurrences) or need > len(p.new):
            p.n[NEED] = need
            return FULL
        for number in range(len(operators)):
            _advance(p, operators, groups, group, number, room)
        root = len(operators) - 1
        for i in range(p.counts[root, COUNT]):
            p.made[p.n[MADE], 0] = p.new[p.counts[root, BEGIN] + i]
            p.made[p.n[MADE], 1] = group
            p.n[MADE] += 1
        p.n[GROUP] += 1
    return DONE


@inner
def _most(p: Pools, operators: Any, groups: Groups, group: Any) -> Any:
    """At most so many occurrences come of a group."""
    rows = groups.starts[group + 1] - groups.starts[group]
    slot = groups.slot[groups.starts[group]]
    total = 0
    for number in range(len(operators)):
        o = operators[number]
        left = p.counts[o.left, MOST] if o.left >= 0 else 0
        right = p.counts[o.right, MOST] if o.right >= 0 else 0
        if o.kind == LEAF:
            most = rows
        elif o.kind == EITHER:
            most = left + right
        elif o.kind == WITHOUT:
            most = left
        elif o.policy in (UNRESTRICTED, CONTINUOUS):
            most = right * (p.waiting[slot, o.store].count + left)
            if o.kind == BOTH:
                most += left * p.waiting[slot, o.store + 1].count
        else:
            most = right if o.kind == SEQUENT else left + right
        p.counts[number, BEGIN] = total
        p.counts[number, COUNT] = 0
        p.counts[number, MOST] = most
        total += most
    return total


@inner
def _advance(p: Pools, operators: Any, groups: Groups, group: Any, number: Any, room: Any) -> None:
    o = operators[number]
    start = groups.starts[group]
    slot, now = groups.slot[start], groups.hi[start]
    if o.kind == LEAF:
        for row in range(start, groups.starts[group + 1]):
            if groups.held[row] >> o.leaf & 1:
                _add(p, number, new_occurrence(p, number, groups.lo[row], now, -1, -1, groups.event[row]))
        return
    left = p.counts[o.left, COUNT]
    right = p.counts[o.right, COUNT] if o.right >= 0 else 0
    if left + right == 0:
        return
    if o.kind == EITHER:
        for i in range(left):
            _add(p, number, p.new[p.counts[o.left, BEGIN] + i])
        for i in range(right):
            _add(p, number, p.new[p.counts[o.right, BEGIN] + i])
    elif o.kind == WITHOUT:
        _without(p, o, number, slot)
    elif o.kind == SEQUENT:
        for i in range(left):
            append(p, slot, o.store, p.new[p.counts[o.left, BEGIN] + i])
        for i in range(right):
            _combine(p, operators, number, slot, o.store, p.new[p.counts[o.right, BEGIN] + i], True, room)
        _keep_best(p, o, slot, o.store)
    else:
        _both(p, operators, number, slot, room)
    if p.counts[number, COUNT] > 1:
        if o.reduces:
            _reduce(p, o.kind in (SEQUENT, BOTH), number, room)
        else:
            _sort(p, number, room)


@inner
def _add(p: Pools, number: Any, one: Any) -> None:
    p.new[p.counts[number, BEGIN] + p.counts[number, COUNT]] = one
    p.counts[number, COUNT] += 1


@inner
def _without(p: Pools, o: Any, number: Any, slot: Any) -> None:
    """Of what is negated the latest start is enough: whatever has come ended by now."""
    for i in range(p.counts[o.right, COUNT]):
        one = p.new[p.counts[o.right, BEGIN] + i]
        best = p.waiting[slot, o.store].first
        if best < 0 or p.occurrences[best].lo <= p.occurrences[one].lo:
            keep_one(p, slot, o.store, one)
    best = p.waiting[slot, o.store].first
    for i in range(p.counts[o.left, COUNT]):
        one = p.new[p.counts[o.left, BEGIN] + i]
        if best < 0 or p.occurrences[best].lo < p.occurrences[one].lo:
            _add(p, number, one)


@inner
def _both(p: Pools, operators: Any, number: Any, slot: Any, room: Any) -> None:
    """New ones of both sides in ascending order; on equal order right ones first."""
    o = operators[number]
    i = j = 0
    while i < p.counts[o.left, COUNT] or j < p.counts[o.right, COUNT]:
        from_left = j == p.counts[o.right, COUNT]
        if not from_left and i < p.counts[o.left, COUNT]:
            from_left = precedes(p, p.new[p.counts[o.left, BEGIN] + i], p.new[p.counts[o.right, BEGIN] + j], room)
        if from_left:
            one, own, others = p.new[p.counts[o.left, BEGIN] + i], o.store, o.store + 1
            i += 1
        else:
            one, own, others = p.new[p.counts[o.right, BEGIN] + j], o.store + 1, o.store
            j += 1
        used = _combine(p, operators, number, slot, others, one, not from_left, room)
        if not (used and o.policy in (CHRONICLE, CONTINUOUS)):
            append(p, slot, own, one)
    _keep_best(p, o, slot, o.store)
    _keep_best(p, o, slot, o.store + 1)


@inner
def _keep_best(p: Pools, o: Any, slot: Any, store: Any) -> None:
    """Where one is enough (section 8)."""
    if o.best == BY_ORDER and p.waiting[slot, store].count > 1:
        keep_one(p, slot, store, p.waiting[slot, store].last)
    elif o.best == BY_START and p.waiting[slot, store].count > 1:
        keep_one(p, slot, store, _latest_start(p, slot, store))


@inner
def _latest_start(p: Pools, slot: Any, store: Any) -> Any:
    best = one = p.waiting[slot, store].last
    while one >= 0:
        if p.occurrences[one].lo > p.occurrences[best].lo:
            best = one
        one = p.occurrences[one].before
    return best


@inner
def _combine(p: Pools, operators: Any, number: Any, slot: Any, store: Any, x: Any, is_right: Any, room: Any) -> Any:
    """Partners of x by policy, as pairs. Is there any?"""
    o = operators[number]
    now = p.occurrences[x].hi
    first = p.waiting[slot, store].first
    while first >= 0 and too_old(p.occurrences, o, first, now):
        remove(p, slot, store, first)
        first = p.waiting[slot, store].first
    if o.policy in (RECENT, SHORTEST):
        return _latest(p, operators, number, slot, store, x, is_right, room)
    used = False
    one = first
    while one >= 0:
        after = p.occurrences[one].after
        if _fits(p, operators, number, one, x, room):
            _pair(p, number, one, x, is_right)
            used = True
            if o.policy != UNRESTRICTED:
                remove(p, slot, store, one)
            if o.policy == CHRONICLE:
                break
        one = after
    return used


@inner
def _latest(p: Pools, operators: Any, number: Any, slot: Any, store: Any, x: Any, is_right: Any, room: Any) -> Any:
    """The last that fits (recent), or that with the greatest (lo, order) (subset)."""
    o = operators[number]
    now = p.occurrences[x].hi
    best = -1
    one = p.waiting[slot, store].last
    while one >= 0:
        y = p.occurrences[one]
        if now - y.hi > o.limit or (best >= 0 and y.hi <= p.occurrences[best].lo):
            break
        if (best < 0 or y.lo > p.occurrences[best].lo) and _fits(p, operators, number, one, x, room):
            best = one
            if o.policy == RECENT:
                break
        one = y.before
    if best >= 0:
        _pair(p, number, best, x, is_right)
    return best >= 0


@inner
def _fits(p: Pools, operators: Any, number: Any, partner: Any, x: Any, room: Any) -> Any:
    o = operators[number]
    y, new = p.occurrences[partner], p.occurrences[x]
    if new.hi - min(y.lo, new.lo) > o.limit:
        return False
    if o.kind == SEQUENT and not _follows(p, o, y, new):
        return False
    return not (o.mixed and conflict(p, operators, partner, x, room))


@inner
def _follows(p: Pools, o: Any, y: Any, new: Any) -> Any:
    """Is it in sequence, soon enough, after the last operand of a prefix?"""
    last = p.occurrences[y.right] if o.continues else y
    if last.hi > new.lo or (last.hi == new.lo and last.lo == last.hi and new.lo == new.hi):
        return False
    return new.hi - last.hi <= o.operand_limit


@inner
def _pair(p: Pools, number: Any, partner: Any, x: Any, is_right: Any) -> None:
    y, new = p.occurrences[partner], p.occurrences[x]
    left, right = (partner, x) if is_right else (x, partner)
    _add(p, number, new_occurrence(p, number, min(y.lo, new.lo), new.hi, left, right, -1))


# Order and subset among what is made at once.


@inner
def _sort(p: Pools, number: Any, room: Any) -> None:
    begin = p.counts[number, BEGIN]
    for i in range(1, p.counts[number, COUNT]):
        one = p.new[begin + i]
        at = i
        while at > 0 and precedes(p, one, p.new[begin + at - 1], room):
            p.new[begin + at] = p.new[begin + at - 1]
            at -= 1
        p.new[begin + at] = one


@inner
def _reduce(p: Pools, is_step: Any, number: Any, room: Any) -> None:
    begin = p.counts[number, BEGIN]
    best = p.new[begin]
    for i in range(1, p.counts[number, COUNT]):
        one = p.new[begin + i]
        if not _outranks(p, is_step, best, one, room):
            best = one
    p.new[begin] = best
    p.counts[number, COUNT] = 1


@inner
def _outranks(p: Pools, is_step: Any, a: Any, b: Any, room: Any) -> Any:
    """Does a stay rather than b, which ends with it? Of steps the prefix decides, then the right operand."""
    if not is_step or p.occurrences[a].lo != p.occurrences[b].lo:
        return starts_before(p, b, a, room)
    left, other = p.occurrences[a].left, p.occurrences[b].left
    if left != other and (starts_before(p, left, other, room) or starts_before(p, other, left, room)):
        return starts_before(p, other, left, room)
    return starts_before(p, p.occurrences[b].right, p.occurrences[a].right, room)
