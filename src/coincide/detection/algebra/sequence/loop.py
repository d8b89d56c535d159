"""The compiled loop: operators over the rows of one instant and key, bottom-up, as the nodes do it (5.2, 5.4), for stamps
that are exact points and detections that last. Then an occurrence is a point iff its ends are equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.algebra.sequence.pools import (
    DONE,
    FULL,
    UNSET,
    Groups,
    Pools,
    Rooms,
    append,
    conflict,
    due_of,
    insert,
    is_timed,
    keep_one,
    last_hi,
    meets,
    new_occurrence,
    next_due,
    precedes,
    remove,
    starts_before,
    too_old,
)
from coincide.detection.algebra.shape.shapes import (
    ABSENT,
    AFTER,
    BOTH,
    BOUND,
    BY_ORDER,
    BY_START,
    CHRONICLE,
    CONTINUOUS,
    EITHER,
    LEAF,
    NEVER,
    NTH,
    ONCE,
    RECENT,
    SEQUENT,
    SHORTEST,
    SILENT,
    UNRESTRICTED,
    WITHOUT,
)
from coincide.detection.columns.compiling import compiled, inlined, inner
from coincide.detection.columns.records import Numbers, Records
from coincide.detection.columns.worlds import borrowed


@compiled
def run(pools: Pools, operators: Records, given: Groups, room: Rooms, timed: bool, waiting: Numbers, limit: int) -> Any:
    """All groups from the next one on, with what is due in their slots before them; then what is due before `limit` in slots that
    are `waiting`. Stops where there is no room. Slots have nothing to do with each other."""
    p, groups = borrowed(pools), borrowed(given)
    while p.n[0].group < len(groups.starts) - 1:
        first, end = groups.starts[p.n[0].group], groups.starts[p.n[0].group + 1]
        slot, now = groups.slot[first], groups.hi[first]
        if timed and not _until(p, operators, groups, slot, now, room):
            return FULL
        if not _evaluate(p, operators, groups, slot, now, first, end, room):
            return FULL
        p.n[0].group += 1
    while p.n[0].due < len(waiting):
        if not _until(p, operators, groups, waiting[p.n[0].due], limit, room):
            return FULL
        p.n[0].due += 1
    return DONE


@inner
def _until(p: Pools, operators: Records, groups: Groups, slot: int, limit: int, room: Rooms) -> Any:
    """What is due in a slot before an instant. Was there room?"""
    now = next_due(p, operators, slot)
    while now < limit:
        if not _evaluate(p, operators, groups, slot, now, 0, 0, room):
            return False
        now = next_due(p, operators, slot)
    return True


@inner
def _evaluate(p: Pools, operators: Records, groups: Groups, slot: int, now: int, first: int, end: int, room: Rooms) -> Any:
    """One instant of one slot, with the rows from `first` to `end`. Was there room?"""
    need = _most(p, operators, slot, now, end - first)
    if max(p.n[0].occurrences, p.n[0].made) + need > len(p.occurrences) or need > len(p.new):
        p.n[0].need = need
        return False
    for number in range(len(operators)):
        if operators[number].kind == LEAF:
            _take(p, groups, operators[number].leaf, number, first, end)
        else:
            _advance(p, operators, slot, now, number, room)
    root = len(operators) - 1
    for i in range(p.counts[root].count):
        p.made[p.n[0].made, 0] = p.new[p.counts[root].begin + i]
        p.made[p.n[0].made, 1] = slot
        p.n[0].made += 1
    return True


@inner
def _most(p: Pools, operators: Records, slot: int, now: int, rows: int) -> Any:
    """At most so many occurrences come of an instant with so many rows."""
    total = 0
    for number in range(len(operators)):
        o = operators[number]
        left = p.counts[o.left].most if o.left >= 0 else 0
        right = p.counts[o.right].most if o.right >= 0 else 0
        if o.kind == LEAF:
            most = rows
        elif o.kind == EITHER:
            most = left + right
        elif o.kind in (WITHOUT, BOUND, ONCE, NTH):
            most = left
        elif o.kind == ABSENT:
            most = 1
        elif is_timed(o):
            most = left + _due_now(p, o, slot, now)
        elif o.policy in (UNRESTRICTED, CONTINUOUS):
            most = right * (p.waiting[slot, o.store].count + left)
            if o.kind == BOTH:
                most += left * p.waiting[slot, o.store + 1].count
        else:
            most = right if o.kind == SEQUENT else left + right
        p.counts[number].begin = total
        p.counts[number].count = 0
        p.counts[number].most = most
        total += most
    return total


@inner
def _due_now(p: Pools, o: np.record, slot: int, now: int) -> Any:
    count, one = 0, p.waiting[slot, o.store].first
    while one >= 0 and due_of(p.occurrences, o, one) <= now:
        count += 1
        one = p.occurrences[one].after
    return count


@inner
def _take(p: Pools, groups: Groups, leaf: int, number: int, first: int, end: int) -> None:
    for row in range(first, end):
        if groups.held[row] >> leaf & 1:
            _add(p, number, new_occurrence(p, number, groups.lo[row], groups.hi[row], -1, -1, groups.event[row]))


@inner
def _advance(p: Pools, operators: Records, slot: int, now: int, number: int, room: Rooms) -> None:
    o = operators[number]
    left = p.counts[o.left].count
    right = p.counts[o.right].count if o.right >= 0 else 0
    if is_timed(o):
        _at_its_time(p, o, number, slot, now)
    elif o.kind == ABSENT:
        _absent(p, o, number, slot, now)
    elif left + right == 0:
        pass
    elif o.kind == BOUND:
        for i in range(left):
            one = p.new[p.counts[o.left].begin + i]
            if now - p.occurrences[one].lo <= o.limit:
                _add(p, number, one)
    elif o.kind == ONCE:
        _once(p, o, number, slot, now)
    elif o.kind == NTH:
        _nth(p, o, number, slot, now)
    elif o.kind == EITHER:
        for i in range(left):
            _add(p, number, p.new[p.counts[o.left].begin + i])
        for i in range(right):
            _add(p, number, p.new[p.counts[o.right].begin + i])
    elif o.kind == WITHOUT:
        _without(p, o, number, slot)
    elif o.kind == SEQUENT:
        for i in range(left):
            append(p.occurrences, p.waiting[slot], o.store, p.new[p.counts[o.left].begin + i])
        for i in range(right):
            _combine(p, operators, number, slot, o.store, p.new[p.counts[o.right].begin + i], True, room)
        _keep_best(p, o, slot, o.store)
    else:
        _both(p, operators, number, slot, room)
    if o.gap >= 0:
        _note_between(p, o, slot)
    if p.counts[number].count > 1:
        if o.reduces:
            _reduce(p, o.kind in (SEQUENT, BOTH, SILENT), number, room)
        else:
            _sort(p, number, room)


@inlined
def _add(p: Pools, number: int, one: int) -> None:
    p.new[p.counts[number].begin + p.counts[number].count] = one
    p.counts[number].count += 1


@inner
def _without(p: Pools, o: np.record, number: int, slot: int) -> None:
    """Of what is negated the latest start is enough: whatever has come ended by now."""
    for i in range(p.counts[o.right].count):
        one = p.new[p.counts[o.right].begin + i]
        best = p.waiting[slot, o.store].first
        if best < 0 or p.occurrences[best].lo <= p.occurrences[one].lo:
            append(p.occurrences, p.waiting[slot], o.store, one)
            keep_one(p, slot, o.store, one)
    best = p.waiting[slot, o.store].first
    for i in range(p.counts[o.left].count):
        one = p.new[p.counts[o.left].begin + i]
        if best < 0 or p.occurrences[best].lo < p.occurrences[one].lo:
            _add(p, number, one)


# What waits for a time.


@inner
def _at_its_time(p: Pools, o: np.record, number: int, slot: int, now: int) -> None:
    """What comes may take others away that wait; then what is due is made. It ended together, where a policy chooses."""
    if o.right >= 0:
        for i in range(p.counts[o.right].count):
            _negate(p, o, slot, p.new[p.counts[o.right].begin + i])
    for i in range(p.counts[o.left].count):
        one = p.new[p.counts[o.left].begin + i]
        if o.kind != AFTER or not _is_hit(p, o, slot, one):
            insert(p, slot, o.store, one, o)
    chosen = -1
    one = p.waiting[slot, o.store].first
    while one >= 0 and due_of(p.occurrences, o, one) <= now:
        after = p.occurrences[one].after
        remove(p, slot, o.store, one)
        if o.kind != SILENT or _silence_fits(p.occurrences[one], o, now):
            if o.policy == RECENT or (o.policy == CHRONICLE and chosen < 0):
                chosen = one
            elif o.policy != CHRONICLE:
                _add(p, number, new_occurrence(p, number, p.occurrences[one].lo, now, one, -1, -1))
        one = after
    if chosen >= 0:
        _add(p, number, new_occurrence(p, number, p.occurrences[chosen].lo, now, chosen, -1, -1))


@inner
def _silence_fits(x: np.record, o: np.record, now: int) -> Any:
    return now - x.lo <= o.limit and o.length <= o.operand_limit


@inner
def _negate(p: Pools, o: np.record, slot: int, b: int) -> None:
    x = p.occurrences[b]
    one = p.waiting[slot, o.store].first
    while one >= 0:
        after = p.occurrences[one].after
        if _hits(x, p.occurrences[one], o):
            remove(p, slot, o.store, one)
        one = after
    if o.kind == AFTER:
        _keep_negated(p, o, slot, b)


@inner
def _hits(b: np.record, a: np.record, o: np.record) -> Any:
    """Does what is negated take away what waits?"""
    if o.kind == AFTER:
        return a.lo <= b.lo and b.hi <= a.lo + o.horizon
    return a.hi < b.lo and b.hi <= a.hi + o.length


@inner
def _keep_negated(p: Pools, o: np.record, slot: int, b: int) -> None:
    """An A that comes later may have begun before. Of points no further apart than a B counts, the first and the last do."""
    now = p.occurrences[b].hi
    first = p.waiting[slot, o.store + 1].first
    while first >= 0 and too_old(p.occurrences, o, first, now):
        remove(p, slot, o.store + 1, first)
        first = p.waiting[slot, o.store + 1].first
    last = p.waiting[slot, o.store + 1].last
    if last >= 0 and p.occurrences[last].before >= 0:
        x, y, z = p.occurrences[b], p.occurrences[last], p.occurrences[p.occurrences[last].before]
        if x.lo == x.hi and y.lo == y.hi and z.lo == z.hi and x.hi - z.hi <= o.horizon:
            remove(p, slot, o.store + 1, last)
    append(p.occurrences, p.waiting[slot], o.store + 1, b)


@inner
def _is_hit(p: Pools, o: np.record, slot: int, a: int) -> Any:
    x = p.occurrences[a]
    one = p.waiting[slot, o.store + 1].last
    while one >= 0 and p.occurrences[one].hi >= x.lo:
        if _hits(p.occurrences[one], x, o):
            return True
        one = p.occurrences[one].before
    return False


# What is counted or remembered for each key.


@inner
def _absent(p: Pools, o: np.record, number: int, slot: int, now: int) -> None:
    """Once per silence, after the last operand or the start of observation (5.4)."""
    since = p.registers[slot, o.register]
    if p.counts[o.left].count > 0 or since == UNSET:
        p.registers[slot, o.register] = now
    elif since != NEVER and now - since >= o.length:
        p.registers[slot, o.register] = NEVER
        _add(p, number, new_occurrence(p, number, since, now, -1, -1, -1))


@inner
def _once(p: Pools, o: np.record, number: int, slot: int, now: int) -> None:
    """The register has the end of the last one that passed. All that comes ends now."""
    if o.right >= 0 and p.counts[o.right].count > 0:
        p.registers[slot, o.register] = UNSET
    for i in range(p.counts[o.left].count):
        last = p.registers[slot, o.register]
        if last == UNSET or now - last >= o.length:
            p.registers[slot, o.register] = now
            _add(p, number, p.new[p.counts[o.left].begin + i])


@inner
def _nth(p: Pools, o: np.record, number: int, slot: int, now: int) -> None:
    """Registers have how many there were, and in which window. Windows `(O + kS, O + kS + T]` do not overlap."""
    window = 0
    if o.step > 0:
        window = -((o.offset - now) // o.step) - 1
        if now > o.offset + window * o.step + o.length:
            return
    if p.registers[slot, o.register + 1] != window:
        p.registers[slot, o.register] = 0
        p.registers[slot, o.register + 1] = window
    for i in range(p.counts[o.left].count):
        p.registers[slot, o.register] += 1
        if p.registers[slot, o.register] == o.position:
            _add(p, number, p.new[p.counts[o.left].begin + i])


# Gaps.


@inner
def _broken_before(p: Pools, o: np.record, slot: int) -> Any:
    """Prefixes that ended before are broken by what has come between, for an operand that is a point."""
    last = p.waiting[slot, o.store + 1].last if o.gap >= 0 else -1
    if last < 0:
        return -NEVER
    if p.occurrences[last].lo == p.occurrences[last].hi:
        return p.occurrences[last].lo
    return p.occurrences[_latest_start(p, slot, o.store + 1)].lo


@inner
def _note_between(p: Pools, o: np.record, slot: int) -> None:
    """For the instants after this one. It matters if a prefix ended after the start of the last one and before its own."""
    first = p.waiting[slot, o.store + 1].first
    while first >= 0 and not _breaks_first(p, o, slot, first):
        remove(p, slot, o.store + 1, first)
        first = p.waiting[slot, o.store + 1].first
    for i in range(p.counts[o.gap].count):
        one = p.new[p.counts[o.gap].begin + i]
        last = p.waiting[slot, o.store + 1].last
        prefix = p.waiting[slot, o.store].last
        while prefix >= 0 and last_hi(p.occurrences, o, p.occurrences[prefix]) >= p.occurrences[one].lo:
            prefix = p.occurrences[prefix].before
        if prefix >= 0 and (last < 0 or last_hi(p.occurrences, o, p.occurrences[prefix]) >= p.occurrences[last].lo):
            append(p.occurrences, p.waiting[slot], o.store + 1, one)


@inner
def _breaks_first(p: Pools, o: np.record, slot: int, n: int) -> Any:
    prefix = p.waiting[slot, o.store].first
    return prefix >= 0 and last_hi(p.occurrences, o, p.occurrences[prefix]) < p.occurrences[n].lo


@inner
def _both(p: Pools, operators: Records, number: int, slot: int, room: Rooms) -> None:
    """New ones of both sides in ascending order; on equal order right ones first."""
    o = operators[number]
    i = j = 0
    while i < p.counts[o.left].count or j < p.counts[o.right].count:
        from_left = j == p.counts[o.right].count
        if not from_left and i < p.counts[o.left].count:
            from_left = precedes(p, p.new[p.counts[o.left].begin + i], p.new[p.counts[o.right].begin + j], room)
        if from_left:
            one, own, others = p.new[p.counts[o.left].begin + i], o.store, o.store + 1
            i += 1
        else:
            one, own, others = p.new[p.counts[o.right].begin + j], o.store + 1, o.store
            j += 1
        used = _combine(p, operators, number, slot, others, one, not from_left, room)
        if not (used and o.policy in (CHRONICLE, CONTINUOUS)):
            append(p.occurrences, p.waiting[slot], own, one)
    _keep_best(p, o, slot, o.store)
    _keep_best(p, o, slot, o.store + 1)


@inner
def _keep_best(p: Pools, o: np.record, slot: int, store: int) -> None:
    """Where one is enough (section 8)."""
    if o.best == BY_ORDER and p.waiting[slot, store].count > 1:
        keep_one(p, slot, store, p.waiting[slot, store].last)
    elif o.best == BY_START and p.waiting[slot, store].count > 1:
        keep_one(p, slot, store, _latest_start(p, slot, store))


@inner
def _latest_start(p: Pools, slot: int, store: int) -> Any:
    best = one = p.waiting[slot, store].last
    while one >= 0:
        if p.occurrences[one].lo > p.occurrences[best].lo:
            best = one
        one = p.occurrences[one].before
    return best


@inner
def _combine(p: Pools, operators: Records, number: int, slot: int, store: int, x: int, is_right: bool, room: Rooms) -> Any:
    """Partners of x by policy, as pairs. Is there any?"""
    o = operators[number]
    now = p.occurrences[x].hi
    first = p.waiting[slot, store].first
    while first >= 0 and too_old(p.occurrences, o, first, now):
        remove(p, slot, store, first)
        first = p.waiting[slot, store].first
    broken = _broken_before(p, o, slot)
    if o.policy in (RECENT, SHORTEST):
        return _latest(p, operators, number, slot, store, x, is_right, broken, room)
    used = False
    one = first if broken == -NEVER else _first_after(p, o, slot, broken)
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
def _first_after(p: Pools, o: np.record, slot: int, broken: int) -> Any:
    """The first prefix that is not broken; they wait as they ended."""
    found, one = -1, p.waiting[slot, o.store].last
    while one >= 0 and last_hi(p.occurrences, o, p.occurrences[one]) >= broken:
        found, one = one, p.occurrences[one].before
    return found


@inner
def _latest(
    p: Pools, operators: Records, number: int, slot: int, store: int, x: int, is_right: bool, broken: int, room: Rooms
) -> Any:
    """The last that fits (recent), or that with the greatest (lo, order) (subset)."""
    o = operators[number]
    now = p.occurrences[x].hi
    best = -1
    one = p.waiting[slot, store].last
    while one >= 0:
        y = p.occurrences[one]
        if now - y.hi > o.limit or (best >= 0 and y.hi <= p.occurrences[best].lo):
            break
        if broken != -NEVER and last_hi(p.occurrences, o, y) < broken:
            break
        if (best < 0 or y.lo > p.occurrences[best].lo) and _fits(p, operators, number, one, x, room):
            best = one
            if o.policy == RECENT:
                break
        one = y.before
    if best >= 0:
        _pair(p, number, best, x, is_right)
    return best >= 0


@inlined
def _fits(p: Pools, operators: Records, number: int, partner: int, x: int, room: Rooms) -> Any:
    o = operators[number]
    y, new = p.occurrences[partner], p.occurrences[x]
    if new.hi - min(y.lo, new.lo) > o.limit:
        return False
    if o.kind == SEQUENT and not _follows(p, o, y, new):
        return False
    if o.conditions > 0 and not meets(p, o, partner, x, room):
        return False
    return not (o.mixed and conflict(p, operators, partner, x, room))


@inlined
def _follows(p: Pools, o: np.record, y: np.record, new: np.record) -> Any:
    """Is it in sequence, soon enough, after the last operand of a prefix?"""
    last = p.occurrences[y.right] if o.continues and y.right >= 0 else y
    if last.hi > new.lo or (last.hi == new.lo and last.lo == last.hi and new.lo == new.hi):
        return False
    return new.hi - last.hi <= o.operand_limit


@inlined
def _pair(p: Pools, number: int, partner: int, x: int, is_right: bool) -> None:
    y, new = p.occurrences[partner], p.occurrences[x]
    left, right = (partner, x) if is_right else (x, partner)
    _add(p, number, new_occurrence(p, number, min(y.lo, new.lo), new.hi, left, right, -1))


# Order and subset among what is made at once.


@inner
def _sort(p: Pools, number: int, room: Rooms) -> None:
    begin = p.counts[number].begin
    for i in range(1, p.counts[number].count):
        one = p.new[begin + i]
        at = i
        while at > 0 and precedes(p, one, p.new[begin + at - 1], room):
            p.new[begin + at] = p.new[begin + at - 1]
            at -= 1
        p.new[begin + at] = one


@inner
def _reduce(p: Pools, is_step: bool, number: int, room: Rooms) -> None:
    begin = p.counts[number].begin
    best = p.new[begin]
    for i in range(1, p.counts[number].count):
        one = p.new[begin + i]
        if not _outranks(p, is_step, best, one, room):
            best = one
    p.new[begin] = best
    p.counts[number].count = 1


@inner
def _outranks(p: Pools, is_step: bool, a: int, b: int, room: Rooms) -> Any:
    """Does a stay rather than b, which ends with it? Of steps the prefix decides, then the right operand."""
    if not is_step or p.occurrences[a].lo != p.occurrences[b].lo:
        return starts_before(p, b, a, room)
    left, other = p.occurrences[a].left, p.occurrences[b].left
    if left != other and (starts_before(p, left, other, room) or starts_before(p, other, left, room)):
        return starts_before(p, other, left, room)
    if p.occurrences[a].right < 0:
        return False
    return starts_before(p, p.occurrences[b].right, p.occurrences[a].right, room)
