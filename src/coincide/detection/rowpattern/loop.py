"""The search of section 4 over columns, compiled: segments of rows (one a partition), each with its scan.

The truth of every condition at every row is known before. A path is the states that took rows, one for each row from the start
on; ways that are still to be tried stand on a stack. While one of them is tried, the states before its row are those of its own
path, so one array of states serves all paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.detection.columns.compiling import compiled, inlined, inner
from coincide.detection.columns.records import Doubles, Integers, Mask
from coincide.detection.columns.tables import Numbers, longer
from coincide.detection.rowpattern.instructions import DEPTH, holds, take
from coincide.detection.rowpattern.layout import FIRST, NEXT, PAST, REMEMBERED

MATCHED, UNMATCHED, TIMED_OUT = 0, 1, 2

NO_TIME = 2**62
"""The time of a row that has none."""

NOTHING, TOO_MANY_STEPS, NO_ROW, FIRST_ROW, ROOM = 0, 1, 2, 3, 4
"""How a scan ends: well, with one of the errors of section 10, or for want of room."""

PASSES, FAILS, WAITS = 0, 1, 2
"""Of an anchor."""

NONE, UNDECIDED, TOO_LONG, NO_ROOM = -1, -2, -3, -4
"""Of a search, in place of the length of a match."""


class Scans(NamedTuple):
    """Usually there is one for a partition. Where a scan has come to is written to its start, number and what it covers."""

    lows: Any  # where its segment of the rows begins
    highs: Any  # where that ends
    ends: Any  # before which its starts lie
    trail: Any  # by row, if not empty: where scans go from there is written here, and nothing is made (see `follow`)
    begins: Any  # is its first row that of the partition?
    starts: Any  # the row at which it begins
    numbers: Any  # of the next match
    covered: Any  # rows before this one lie in a match
    anew: Any  # the row with which the partition began anew after it had been forgotten is written here


class Given(NamedTuple):
    """What is known of the rows."""

    closed: bool
    truth: Any  # by variable and row
    ahead: Any  # by variable: so many rows its condition looks ahead
    times: Any  # microseconds
    within: int  # -1: no bound
    passed: int  # no row with such a time is to come


class Wanted(NamedTuple):
    """What the query says beside its pattern."""

    shares: bool  # does what failed from one start fail from every other?
    forgets: bool  # is a partition forgotten while it has no undecided row?
    unmatched: bool  # are unmatched rows told?
    timed_out: bool  # are matches that ran out of time?
    skip: int  # its number in skipping.py; FIRST and LAST are those of `members`
    members: Any
    asking: Any  # NEXT in measures: (first?, back, shift) …
    askers: Any  # … of these variables
    shown_only: bool
    budget: int


class Work(NamedTuple):
    """Room for a search, and for what it finds. `bits` are the slots as whole numbers."""

    widest: int
    tried: Any
    ways: Any
    rows: Any
    path: Any
    cut_path: Any
    made: Any
    labels: Any
    cursor: Any
    counts: Any
    seen: Any
    row: Any
    slots: Any
    bits: Any
    heads: Any
    entries: Any
    stack: Any


@inner
def _anchored(anchor: int, at_beginning: bool, row: int, high: int, closed: bool, seen: Numbers) -> int:
    """Do the anchors of a way hold before this row?"""
    if (anchor & 1 and not at_beginning) or (anchor >= 2 and row < high):  # `^`, alone or before `$`
        held = FAILS
    elif anchor >= 2 and not closed:
        held = WAITS
    else:
        held = FAILS if anchor == 4 and not at_beginning else PASSES
    if anchor >= 2 and held != WAITS:
        if row < high:
            seen[0] = max(seen[0], row)
        else:
            seen[1] = 1
    return held


@inner
def _note_cut(seen: Numbers, path: Integers, cut_path: Integers, size: int) -> None:
    """A path ran out of time; the first one that has a row is kept."""
    seen[2] = 1
    if seen[3] < 0 and size > 0:
        seen[3] = size
        for at in range(size):
            cut_path[at] = path[at]


@inner
def _last_row_asked(asks: Integers, slots: Doubles, taker: int, last: int) -> int:
    """The last row that NEXT in a condition asks for."""
    for ask in range(len(asks)):
        if asks[ask, 0] == taker and slots[asks[ask, 1]] >= 0:
            last = max(last, int(slots[asks[ask, 1]]) + asks[ask, 2])
    return last


@inner
def _pushed(ways: Numbers, rows: Numbers, top: int, first: int, last: int, row: int) -> int:
    """The ways from `first` to `last` on the stack, the first on top; -1: there is no room."""
    if top + last - first > len(ways):
        return -1
    for way in range(last - 1, first - 1, -1):
        ways[top], rows[top] = way, row
        top += 1
    return top


MIXING = -7046029254386353131
"""An odd number with well-mixed bits; what goes beyond 64 of them is lost."""


@inner
def _entry(heads: Numbers, entries: Numbers, used: int, mark: int, state: int, row: int, bits: Numbers, relevant: Mask) -> int:
    """The number of the entry for a state at a row with these slots, as far as they may still be read: one of those kept, or the
    next, which is then written; -1: there is no room. Heads of another mark are those of another start."""
    if used < REMEMBERED and (2 * used >= len(heads) or used >= len(entries)):
        return -1
    mixed = (state * 1_000_003 + row) * MIXING
    for slot in range(len(bits)):
        if relevant[slot]:
            mixed = (mixed ^ (mixed >> 29) ^ bits[slot]) * MIXING
    at = (mixed ^ (mixed >> 29)) & (len(heads) - 1)
    while heads[at, 0] == mark:
        entry = heads[at, 1]
        same = entries[entry, 0] == state and entries[entry, 1] == row
        for slot in range(len(bits)):
            same = same and (not relevant[slot] or entries[entry, slot + 2] == bits[slot])
        if same:
            return entry  # type: ignore[no-any-return]
        at = (at + 1) & (len(heads) - 1)
    if used < REMEMBERED:
        heads[at, 0], heads[at, 1] = mark, used
        entries[used, 0], entries[used, 1] = state, row
        for slot in range(len(bits)):
            entries[used, slot + 2] = bits[slot]
    return used


@inlined
def _holds(taker: int, row: int, own: Doubles, low: int, high: int, number: int, given: Given, code: Any, work: Work) -> bool:
    """The condition of a variable, known beforehand or by its code."""
    if code.spans[taker] == code.spans[taker + 1]:
        return given.truth[taker, row]  # type: ignore[no-any-return]
    test = code.program[code.spans[taker] : code.spans[taker + 1]]
    return holds(test, code.columns, code.constants, code.labels, own, work.stack, row, low, high, number)


@inlined
def _search(
    s: int, segment: int, mark: int, budget: int, scans: Scans, given: Given, automaton: Any, code: Any, work: Work
) -> Any:
    """The first path from row s: its length, or NONE, UNDECIDED, TOO_LONG or NO_ROOM. `seen` gets the last row asked for, whether
    the end was, whether the bound was, and the length of the first path that ran out of time."""
    low, high, begins, number = scans.lows[segment], scans.highs[segment], scans.begins[segment], scans.numbers[segment]
    closed, times, within, seen, ways, rows = given.closed, given.times, given.within, work.seen, work.ways, work.rows
    states, coded, bound = len(automaton.variable), work.slots.shape[1] > 0, times[s] + within
    seen[0], seen[1], seen[2], seen[3] = s, 0, 0, -1
    steps = remembered = 0
    top = _pushed(ways, rows, 0, automaton.offsets[states], automaton.offsets[states + 1], s)
    while top > 0:
        top -= 1
        way, row = ways[top], rows[top]
        if automaton.anchors[way]:
            held = _anchored(automaton.anchors[way], begins and row == low, row, high, closed, seen)
            if held == WAITS:
                return UNDECIDED
            if held == FAILS:
                continue
        state = automaton.targets[way]
        if state < 0:
            if state == -1:
                return row - s
            continue
        if within >= 0 and (times[row] > bound or times[row] >= NO_TIME if row < high else bound <= given.passed):
            _note_cut(seen, work.path, work.cut_path, row - s)
            continue
        if row >= high:
            if not closed:
                return UNDECIDED
            seen[1] = 1
            continue
        taker, depth, place = automaton.variable[state], row - s, state * work.widest + row - low
        own = work.slots[depth + 1 if coded else 0]
        seen[0] = max(seen[0], row)
        if coded:
            entry = _entry(work.heads, work.entries, remembered, mark, state, row, work.bits[depth], code.relevant[state])
            if entry < 0:
                return NO_ROOM
            if entry < remembered:
                continue
            take(code.groups, code.members, code.columns, work.slots[depth], own, taker, row)
        elif work.tried[place] == mark:
            continue
        last = _last_row_asked(code.asks, own, taker, row + given.ahead[taker])
        if last >= high and not closed:
            return UNDECIDED
        seen[0], seen[1] = max(seen[0], min(last, high - 1)), max(seen[1], last >= high)
        steps += 1
        if steps > budget:
            return TOO_LONG
        remembered = min(remembered + 1, REMEMBERED)
        work.tried[place] = mark
        if _holds(taker, row, own, low, high, number, given, code, work):
            work.path[row - s] = state
            top = _pushed(ways, rows, top, automaton.offsets[state], automaton.offsets[state + 1], row + 1)
            if top < 0:
                return NO_ROOM
    return NONE


@inner
def _last_asked(asking: Integers, askers: Mask, variable: Integers, shown: Integers, current: int) -> int:
    """The last row that NEXT in measures asks for, counted from the start; -1: none."""
    last = -1
    for ask in range(len(asking)):
        back = asking[ask, 1]
        for step in range(current + 1):
            at = step if asking[ask, 0] else current - step
            if askers[ask, variable[shown[at]]]:
                if back == 0:
                    last = max(last, at + asking[ask, 2])
                    break
                back -= 1
    return last


@inner
def _skipped(skip: int, members: Mask, variable: Integers, path: Integers, length: int) -> int:
    """How far the next start is from this one; 0 if that is this one, -1 if there is no row to skip to."""
    if length == 0 or skip == NEXT:
        return 1
    if skip == PAST:
        return length
    found = -1
    for at in range(length):
        if members[variable[path[at]]]:
            found = at
            if skip == FIRST:
                break
    return found


@inner
def _last_shown(path: Integers, size: int, hidden: Mask, shown_only: bool) -> int:
    current = size - 1
    while shown_only and current >= 0 and hidden[path[current]]:
        current -= 1
    return current


@inner
def _recorded(made: Numbers, labels: Integers, counts: Numbers, row: Numbers, path: Integers, size: int) -> bool:
    """Write down what was found, if there is room."""
    count, written = counts[0], counts[1]
    if count == len(made) or written + size > len(labels):
        return False
    for field in range(len(row)):
        made[count, field] = row[field]
    for at in range(size):
        labels[written + at] = path[at]
    counts[0], counts[1] = count + 1, written + size
    return True


STOPPED = -1
"""In a trail, in place of the next start: the run cannot go on from here."""


@inner
def _next_start(trail: Numbers, s: int, length: int, wanted: Wanted, variable: Integers, path: Integers, end: int) -> int:
    """Write the next start, whether there is a match, and the row after its last one. Returns where to go on: at the end, if
    nowhere."""
    onward = 0 if length < NONE else _skipped(wanted.skip, wanted.members, variable, path, max(length, 0))
    trail[s, 0] = s + onward if onward > 0 else STOPPED
    trail[s, 1], trail[s, 2] = length >= 0, s + max(length, 0)
    return s + onward if onward > 0 else end


@inlined
def _note_match(s: int, segment: int, length: int, scans: Scans, shares: bool, work: Work) -> None:
    scans.numbers[segment] += 1
    scans.covered[segment] = max(scans.covered[segment], s + length)
    for at in range(length if shares else 0):  # what led to the match did not fail
        work.tried[work.path[at] * work.widest + s + at - scans.lows[segment]] = 0


@compiled
def _scan(scans: Scans, given: Given, automaton: Any, wanted: Wanted, code: Any, work: Work) -> int:
    """Scan the segments from the one that the cursor is at on, until there is no room. Returns an outcome; the cursor then has
    the row, and the last mark of rows that were tried."""
    cursor, seen, row, path, times = work.cursor, work.seen, work.row, work.path, given.times
    trail, starts, numbers, covered, variable = scans.trail, scans.starts, scans.numbers, scans.covered, automaton.variable
    mark, trails = cursor[2], len(trail) > 0
    for segment in range(cursor[0], len(scans.lows)):
        s, high = starts[segment], scans.highs[segment]
        if cursor[0] != segment or cursor[1] < 0:
            row[4], row[5], row[6], row[7] = -1, -(2**63), -1, 0
        cursor[0], cursor[1] = segment, s
        mark += 1
        while s < scans.ends[segment] and not (trails and trail[s, 0] != 0):
            mark += 0 if wanted.shares else 1
            cursor[1], cursor[2] = s, mark
            length = _search(s, segment, mark, wanted.budget, scans, given, automaton, code, work)
            if length == NO_ROOM or (length == TOO_LONG and not trails):
                return TOO_MANY_STEPS if length == TOO_LONG else ROOM
            if trails:
                s = starts[segment] = _next_start(trail, s, length, wanted, variable, path, high)
                continue
            if length == UNDECIDED:
                break
            kind = MATCHED if length >= 0 else TIMED_OUT if wanted.timed_out and seen[3] >= 0 else UNMATCHED
            size = length if length >= 0 else seen[3] if kind == TIMED_OUT else 0
            shown = path if length >= 0 else work.cut_path
            asked = -1
            if len(wanted.asking) and kind != UNMATCHED:
                current = _last_shown(shown, size, automaton.hidden, wanted.shown_only)
                asked = _last_asked(wanted.asking, wanted.askers, variable, shown, current)
            if s + asked >= high:
                if not given.closed:
                    break
                seen[1] = 1
            elif asked >= 0:
                seen[0] = max(seen[0], s + asked)
            onward = _skipped(wanted.skip, wanted.members, variable, path, max(length, 0))
            if onward <= 0:
                return FIRST_ROW if onward == 0 else NO_ROW
            row[4], row[7] = max(row[4], seen[0]), max(row[7], seen[1])
            if seen[2] and times[s] + given.within > row[5]:
                row[5], row[6] = times[s] + given.within, s
            if kind != UNMATCHED or (wanted.unmatched and s >= covered[segment]):
                row[0], row[1], row[2], row[3] = kind, s, size, numbers[segment] if kind == MATCHED else -1
                if not _recorded(work.made, work.labels, work.counts, row, shown, size):
                    return ROOM
            if length >= 0:
                _note_match(s, segment, length, scans, wanted.shares, work)
            s += onward
            starts[segment] = s
            # Was all before this row decided before the row came? Then the partition was forgotten in between.
            if wanted.forgets and s < high and row[7] == 0 and row[4] < s and row[5] < times[s]:
                scans.anew[segment], numbers[segment] = s, 1
        cursor[1] = -1
    cursor[0], cursor[2] = len(scans.lows), mark
    return NOTHING


@compiled
def follow(trail: Numbers, first: int, end: int) -> None:
    """From each start of a trail to where it leaves the rows before `end`: that start, the matches on the way, and how far they
    come. Later starts first: those of a trail lead only onwards."""
    for s in range(end - 1, first - 1, -1):
        onward = trail[s, 0]
        if onward <= 0 or onward >= end:
            continue
        trail[s, 0] = trail[onward, 0]
        trail[s, 1] += trail[onward, 1]
        trail[s, 2] = max(trail[s, 2], trail[onward, 2])


def find(scans: Scans, given: Given, automaton: Any, wanted: Wanted, code: Any) -> tuple[int, int, Any, Any]:
    """The outcome, the row at which it stopped, and what was made: a row of `made` each (kind, start, length, number, last row
    asked for, last bound, its start, at the end?), with its states in `labels`. The loop allocates nothing: room is made here."""
    work = _room(int((scans.highs - scans.lows).max(initial=0)) + 1, len(given.times), automaton, code.start)
    while True:
        outcome = _scan(scans, given, automaton, wanted, code, work)
        if outcome != ROOM:
            return outcome, int(work.cursor[1]), work.made[: work.counts[0]], work.labels[: work.counts[1]]
        work = _more_room(work)


def _room(widest: int, length: int, automaton: Any, start: Any) -> Work:
    ways, rows = np.empty((2, 4 * len(automaton.targets) + 1024), np.int64)
    path, cut_path = np.empty((2, widest), np.int32)
    slots = np.zeros((widest + 1 if len(start) else 1, len(start)))
    slots[0] = start
    heads = np.full((2048 if len(start) else 0, 2), -1, np.int64)
    return Work(
        widest=widest,
        tried=np.zeros(len(automaton.variable) * widest, np.int32),
        ways=ways,
        rows=rows,
        path=path,
        cut_path=cut_path,
        made=np.empty((1024 + length // 8, 8), np.int64),
        labels=np.empty(8192 + max(widest, length // 2), np.int32),
        cursor=np.array([0, -1, 0], np.int64),
        counts=np.zeros(2, np.int64),
        seen=np.zeros(4, np.int64),
        row=np.zeros(8, np.int64),
        slots=slots,
        bits=slots.view(np.int64),
        heads=heads,
        entries=np.empty((len(heads) // 2, len(start) + 2), np.int64),
        stack=np.empty(DEPTH),
    )


def _more_room(work: Work) -> Work:
    ways, rows, made, labels = (longer(array, 2 * len(array)) for array in (work.ways, work.rows, work.made, work.labels))
    heads = np.full((2 * len(work.heads), 2), -1, np.int64)
    entries = np.empty((len(heads) // 2, work.entries.shape[1]), np.int64)
    return work._replace(ways=ways, rows=rows, made=made, labels=labels, heads=heads, entries=entries)
