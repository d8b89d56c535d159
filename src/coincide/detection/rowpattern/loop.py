"""The search of section 4 over columns, compiled: segments of rows (one a partition), each with its scan.

The truth of every condition at every row is known before. A path is the states that took rows, one for each row from the start
on; ways that are still to be tried stand on a stack. While one of them is tried, the states before its row are those of its own
path, so one array of states serves all paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.compiling import compiled, inner
from coincide.detection.columns.tables import longer
from coincide.detection.rowpattern.instructions import DEPTH, holds, take
from coincide.detection.rowpattern.search import REMEMBERED

MATCHED, UNMATCHED, TIMED_OUT = 0, 1, 2

NO_TIME = 2**62
"""The time of a row that has none."""

NOTHING, TOO_MANY_STEPS, NO_ROW, FIRST_ROW, ROOM = 0, 1, 2, 3, 4
"""How a scan ends: well, with one of the errors of section 10, or for want of room."""


PASSES, FAILS, WAITS = 0, 1, 2
"""Of an anchor."""

NONE, UNDECIDED, TOO_LONG, NO_ROOM = -1, -2, -3, -4
"""Of a search, in place of the length of a match."""


@inner
def _anchored(anchor: int, at_beginning: bool, row: int, high: int, closed: bool, seen: Any) -> int:
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
def _note_cut(seen: Any, path: Any, cut_path: Any, size: int) -> None:
    """A path ran out of time; the first one that has a row is kept."""
    seen[2] = 1
    if seen[3] < 0 and size > 0:
        seen[3] = size
        for at in range(size):
            cut_path[at] = path[at]


@inner
def _asked(asks: Any, slots: Any, taker: int, last: int) -> int:
    """The last row that NEXT in a condition asks for."""
    for ask in range(len(asks)):
        if asks[ask, 0] == taker and slots[asks[ask, 1]] >= 0:
            last = max(last, int(slots[asks[ask, 1]]) + asks[ask, 2])
    return last


@inner
def _pushed(ways: Any, rows: Any, top: int, first: int, last: int, row: int) -> int:
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
def _entry(heads: Any, entries: Any, kept: int, mark: int, state: int, row: int, bits: Any, relevant: Any) -> int:
    """The number of the entry for a state at a row with these slots, as far as they may still be read: one of those kept, or the
    next, which is then written; -1: there is no room. Heads of another mark are those of another start."""
    if kept < REMEMBERED and (2 * kept >= len(heads) or kept >= len(entries)):
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
    if kept < REMEMBERED:
        heads[at, 0], heads[at, 1] = mark, kept
        entries[kept, 0], entries[kept, 1] = state, row
        for slot in range(len(bits)):
            entries[kept, slot + 2] = bits[slot]
    return kept


@inner
def _search(
    s: int, low: int, high: int, begins: bool, closed: bool, truth: Any, ahead: Any, times: Any, within: int, passed: int,
    variable: Any, offsets: Any, anchors: Any, targets: Any, tried: Any, widest: int, mark: int, path: Any, cut_path: Any,
    ways: Any, rows: Any, budget: int, seen: Any, number: int, program: Any, spans: Any, columns: Any, constants: Any,
    labels: Any, groups: Any, members: Any, relevant: Any, asks: Any, slots: Any, bits: Any, heads: Any, entries: Any, stack: Any,
) -> Any:  # fmt: skip
    """The first path from row s: its length, or NONE, UNDECIDED, TOO_LONG or NO_ROOM. `seen` gets the last row asked for, whether
    the end was, whether the bound was, and the length of the first path that ran out of time."""
    states, coded, bound = len(variable), slots.shape[1] > 0, times[s] + within
    seen[0], seen[1], seen[2], seen[3] = s, 0, 0, -1
    steps = kept = 0
    top = _pushed(ways, rows, 0, offsets[states], offsets[states + 1], s)
    while top > 0:
        top -= 1
        way, row = ways[top], rows[top]
        if anchors[way]:
            held = _anchored(anchors[way], begins and row == low, row, high, closed, seen)
            if held == WAITS:
                return UNDECIDED
            if held == FAILS:
                continue
        state = targets[way]
        if state < 0:
            if state == -1:
                return row - s
            continue
        if within >= 0 and (times[row] > bound or times[row] >= NO_TIME if row < high else bound <= passed):
            _note_cut(seen, path, cut_path, row - s)
            continue
        if row >= high:
            if not closed:
                return UNDECIDED
            seen[1] = 1
            continue
        taker, depth, place = variable[state], row - s, state * widest + row - low
        own = slots[depth + 1 if coded else 0]
        seen[0] = max(seen[0], row)
        if coded:
            entry = _entry(heads, entries, kept, mark, state, row, bits[depth], relevant[state])
            if entry < 0:
                return NO_ROOM
            if entry < kept:
                continue
            take(groups, members, columns, slots[depth], own, taker, row)
        elif tried[place] == mark:
            continue
        last = _asked(asks, own, taker, row + ahead[taker])
        if last >= high and not closed:
            return UNDECIDED
        seen[0], seen[1] = max(seen[0], min(last, high - 1)), max(seen[1], last >= high)
        steps += 1
        if steps > budget:
            return TOO_LONG
        kept = min(kept + 1, REMEMBERED)
        tried[place] = mark
        taken = truth[taker, row]
        if spans[taker] < spans[taker + 1]:
            code = program[spans[taker] : spans[taker + 1]]
            taken = holds(code, columns, constants, labels, own, stack, row, low, high, number)
        if taken:
            path[row - s] = state
            top = _pushed(ways, rows, top, offsets[state], offsets[state + 1], row + 1)
            if top < 0:
                return NO_ROOM
    return NONE


@inner
def _last_asked(asking: Any, askers: Any, variable: Any, shown: Any, current: int) -> int:
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
def _skipped(skip: int, members: Any, variable: Any, path: Any, length: int) -> int:
    """How far the next start is from this one; 0 if that is this one, -1 if there is no row to skip to."""
    if length == 0 or skip == 1:
        return 1
    if skip == 0:
        return length
    found = -1
    for at in range(length):
        if members[variable[path[at]]]:
            found = at
            if skip == 2:
                break
    return found


@inner
def _last_shown(path: Any, size: int, hidden: Any, shown_only: bool) -> int:
    current = size - 1
    while shown_only and current >= 0 and hidden[path[current]]:
        current -= 1
    return current


@inner
def _recorded(made: Any, labels: Any, counts: Any, row: Any, path: Any, size: int) -> bool:
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
def _trodden(trail: Any, s: int, length: int, skip: int, members: Any, variable: Any, path: Any, end: int) -> int:
    """Write the next start, whether there is a match, and the row after its last one. Returns where to go on: at the end, if
    nowhere."""
    onward = 0 if length < NONE else _skipped(skip, members, variable, path, max(length, 0))
    trail[s, 0] = s + onward if onward > 0 else STOPPED
    trail[s, 1], trail[s, 2] = length >= 0, s + max(length, 0)
    return s + onward if onward > 0 else end


@compiled
def _scan(
    lows: Any, highs: Any, ends: Any, trail: Any, begins: Any, starts: Any, numbers: Any, covered: Any, anew: Any, closed: bool,
    truth: Any, ahead: Any, times: Any, within: int, passed: int, variable: Any, offsets: Any, anchors: Any, targets: Any,
    shares: bool, forgets: bool, unmatched: bool, timed_out: bool, skip: int, members: Any, asking: Any, askers: Any, hidden:
    Any, shown_only: bool, budget: int, widest: int, cursor: Any, tried: Any, ways: Any, rows: Any, path: Any, cut_path: Any,
    made: Any, labels: Any, counts: Any, seen: Any, row: Any, program: Any, spans: Any, columns: Any, constants: Any, names:
    Any, groups: Any, takers: Any, relevant: Any, asks: Any, slots: Any, bits: Any, heads: Any, entries: Any, stack: Any,
) -> int:  # fmt: skip
    """Scan the segments from the one that the cursor is at on, until there is no room. Returns an outcome; the cursor then has
    the row, and the last mark of rows that were tried."""
    mark, trails = cursor[2], len(trail) > 0
    for segment in range(cursor[0], len(lows)):
        low, high = lows[segment], highs[segment]
        s = starts[segment]
        if cursor[0] != segment or cursor[1] < 0:
            row[4], row[5], row[6], row[7] = -1, -(2**63), -1, 0
        cursor[0], cursor[1] = segment, s
        mark += 1
        while s < ends[segment] and not (trails and trail[s, 0] != 0):
            mark += 0 if shares else 1
            cursor[1], cursor[2] = s, mark
            length = _search(
                s, low, high, begins[segment], closed, truth, ahead, times, within, passed, variable, offsets, anchors, targets,
                tried, widest, mark, path, cut_path, ways, rows, budget, seen, numbers[segment], program, spans, columns,
                constants, names, groups, takers, relevant, asks, slots, bits, heads, entries, stack,
            )  # fmt: skip
            if length == NO_ROOM or (length == TOO_LONG and not trails):
                return TOO_MANY_STEPS if length == TOO_LONG else ROOM
            if trails:
                s = starts[segment] = _trodden(trail, s, length, skip, members, variable, path, high)
                continue
            if length == UNDECIDED:
                break
            kind = MATCHED if length >= 0 else TIMED_OUT if timed_out and seen[3] >= 0 else UNMATCHED
            size = length if length >= 0 else seen[3] if kind == TIMED_OUT else 0
            shown = path if length >= 0 else cut_path
            asked = -1
            if len(asking) and kind != UNMATCHED:
                asked = _last_asked(asking, askers, variable, shown, _last_shown(shown, size, hidden, shown_only))
            if s + asked >= high:
                if not closed:
                    break
                seen[1] = 1
            elif asked >= 0:
                seen[0] = max(seen[0], s + asked)
            onward = _skipped(skip, members, variable, path, max(length, 0))
            if onward <= 0:
                return FIRST_ROW if onward == 0 else NO_ROW
            row[4], row[7] = max(row[4], seen[0]), max(row[7], seen[1])
            if seen[2] and times[s] + within > row[5]:
                row[5], row[6] = times[s] + within, s
            if kind != UNMATCHED or (unmatched and s >= covered[segment]):
                row[0], row[1], row[2], row[3] = kind, s, size, numbers[segment] if kind == MATCHED else -1
                if not _recorded(made, labels, counts, row, shown, size):
                    return ROOM
            if length >= 0:
                numbers[segment] += 1
                covered[segment] = max(covered[segment], s + length)
                for at in range(length if shares else 0):  # what led to the match did not fail
                    tried[path[at] * widest + s + at - low] = 0
            s += onward
            starts[segment] = s
            # Was all before this row decided before the row came? Then the partition was forgotten in between.
            if forgets and s < high and row[7] == 0 and row[4] < s and row[5] < times[s]:
                anew[segment], numbers[segment] = s, 1
        cursor[1] = -1
    cursor[0], cursor[2] = len(lows), mark
    return NOTHING


@compiled
def follow(trail: Any, first: int, end: int) -> None:
    """From each start of a trail to where it leaves the rows before `end`: that start, the matches on the way, and how far they
    come. Later starts first: those of a trail lead only onwards."""
    for s in range(end - 1, first - 1, -1):
        onward = trail[s, 0]
        if onward <= 0 or onward >= end:
            continue
        trail[s, 0] = trail[onward, 0]
        trail[s, 1] += trail[onward, 1]
        trail[s, 2] = max(trail[s, 2], trail[onward, 2])


def find(
    lows: Any,  # where each segment begins
    highs: Any,  # where it ends
    ends: Any,  # before which its starts lie
    trail: Any,  # by row, if not empty: where scans go from there is written here, and nothing is made (see `follow`)
    begins: Any,  # by segment: is its first row that of the partition?
    starts: Any,  # by segment: the row at which its scan begins; where it has come to is written here
    numbers: Any,  # by segment: of the next match; likewise
    covered: Any,  # by segment: rows before this one lie in a match; likewise
    anew: Any,  # by segment: the row with which it began anew after it had been forgotten is written here
    closed: bool,
    truth: Any,  # by variable and row
    ahead: Any,  # by variable: so many rows its condition looks ahead
    times: Any,  # microseconds
    within: int,  # -1: no bound
    passed: int,  # no row with such a time is to come
    variable: Any,
    offsets: Any,
    anchors: Any,
    targets: Any,
    shares: bool,  # does what failed from one start fail from every other?
    forgets: bool,  # is a partition forgotten while it has no undecided row?
    unmatched: bool,  # are unmatched rows told?
    timed_out: bool,  # are matches that ran out of time?
    skip: int,  # 0 past the last row, 1 to the next row, 2 to the first and 3 to the last of `members`
    members: Any,
    asking: Any,  # NEXT in measures: (first?, back, shift) …
    askers: Any,  # … of these variables
    hidden: Any,
    shown_only: bool,
    budget: int,
    code: Any,  # registers.Code
) -> tuple[int, int, Any, Any]:
    """The outcome, the row at which it stopped, and what was made: a row of `made` each (kind, start, length, number, last row
    asked for, last bound, its start, at the end?), with its states in `labels`. The loop allocates nothing: room is made here."""
    widest = int((highs - lows).max(initial=0)) + 1
    tried = np.zeros(len(variable) * widest, np.int32)
    ways, rows = np.empty((2, 4 * len(targets) + 1024), np.int64)
    path, cut_path = np.empty((2, widest), np.int32)
    made, labels = np.empty((1024 + len(times) // 8, 8), np.int64), np.empty(8192 + max(widest, len(times) // 2), np.int32)
    cursor, counts = np.array([0, -1, 0], np.int64), np.zeros(2, np.int64)
    seen, row = np.zeros(4, np.int64), np.zeros(8, np.int64)
    slots = np.zeros((widest + 1 if len(code.start) else 1, len(code.start)))
    slots[0] = code.start
    heads = np.full((2048 if len(code.start) else 0, 2), -1, np.int64)
    entries, stack = np.empty((len(heads) // 2, len(code.start) + 2), np.int64), np.empty(DEPTH)
    while True:
        outcome = _scan(
            lows, highs, ends, trail, begins, starts, numbers, covered, anew, closed, truth, ahead, times, within, passed,
            variable, offsets, anchors, targets, shares, forgets, unmatched, timed_out, skip, members, asking, askers, hidden,
            shown_only, budget, widest, cursor, tried, ways, rows, path, cut_path, made, labels, counts, seen, row, code.program,
            code.spans, code.columns, code.constants, code.labels, code.groups, code.members, code.relevant, code.asks, slots,
            slots.view(np.int64), heads, entries, stack,
        )  # fmt: skip
        if outcome != ROOM:
            return outcome, int(cursor[1]), made[: counts[0]], labels[: counts[1]]
        ways, rows, made, labels = (longer(array, 2 * len(array)) for array in (ways, rows, made, labels))
        if len(heads):
            heads = np.full((2 * len(heads), 2), -1, np.int64)
            entries = np.empty((len(heads) // 2, entries.shape[1]), np.int64)
