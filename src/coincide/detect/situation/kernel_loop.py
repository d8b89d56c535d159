"""The compiled loop over the rows that matter: lifespans, candidates and decisions as numbers.

- An event is its *ref*, its number in the order of arrival among the events that are kept.
- Candidates are stored once for each operand and key (section 8): a *stream* of refs. What a lifespan has of it are a start and
  the positions consumed since, so an arriving candidate costs nothing in the lifespans that it only joins.
- A *record* is a partition: what one situation has in one lifespan (and local key). Those that still wait for candidates are
  linked, oldest first; a lifespan that is done or closed leaves the list and is never looked at again.
- One interval a definition means that expirations come in the order of openings: a queue each, no heap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from coincide.detect.situation.kernel_pick import BITS, DONE, OPS, PER_OP, START, WORDS, consume, pick

ALL, SEQUENCE, ATLEAST, ATMOST, NTH, NOT = 0, 1, 2, 3, 4, 5
IMMEDIATE, DEFERRED = 0, 1
NEVER = np.iinfo(np.int64).max

# Columns of `spans`.
DEFINITION, KEY, OPENED, DUE, INITIATOR, BEFORE, AFTER, QUEUE_BEFORE, QUEUE_AFTER, RECORDS, DISCARD, TERMINATOR = range(12)
SPAN_WIDTH = 12
# Columns of `records` (kernel_pick has the others).
SPAN, SITUATION, CELL, ACTIVE_BEFORE, ACTIVE_AFTER, NEXT_OF_SPAN = 0, 1, 2, 4, 5, 6
# Counts.
SPANS, RECORD_COUNT, POOL, MADE, SELECTED, FOUND, CAUSE, FREE_SPAN, FREE_RECORD = range(9)
COUNTS = 9
# Columns of `made`.
BY_TIMER, CAUSE_NUMBER, CAUSE_REF, NOW, OF_SITUATION, OF_CELL, OPENED_BY, OF_INITIATOR, OF_TERMINATOR, ENDED_BY, FIRST = range(11)
MADE_WIDTH = 11


class Tables(NamedTuple):
    """The definitions: of lifespans (d), situations (s), operands (o) and event types (t)."""

    interval: Any  # d; 0: no expiration
    expiry_discards: Any
    initiator_adds: Any  # d, number
    terminator_quantifier: Any  # d, number; 0 each, 1 first, 2 last
    terminator_discards: Any
    situation_starts: Any  # of d in `situations`
    situations: Any
    kind: Any  # s
    mode: Any
    once: Any
    quantity: Any
    lifespan: Any
    operand_starts: Any
    local: Any
    counting: Any
    quantifier: Any  # o; 0 each, 1 first, 2 last
    strict: Any
    weight: Any
    conjunct_starts: Any
    conjuncts: Any  # code, operand and column on the left, on the right
    type_lifespan_starts: Any  # t
    type_lifespans: Any
    type_situation_starts: Any
    type_situations: Any


class Rows(NamedTuple):
    """The rows of a step, and the streams with those to come in them. Masks have a bit for each initiator, operand …"""

    first_ref: Any
    now: Any
    type: Any
    key: Any  # d, row; -1: null
    initiators: Any
    terminators: Any
    cell: Any  # s, row
    operands: Any
    overrides: Any
    keeps: Any  # s, ref
    values: Any  # column, ref
    key_base: Any  # of d in arrays over keys
    cell_base: Any  # of s in arrays over cells
    stream_base: Any  # of o in `filled` and `stream_starts`
    stream_starts: Any
    stream: Any
    cell_rank: Any


class Links(NamedTuple):
    """What is linked to what, and counters."""

    first_span: Any  # d, key
    last_span: Any
    open_spans: Any
    queue_first: Any  # d
    queue_last: Any
    active_first: Any  # s, cell
    active_last: Any
    seen: Any  # s, cell: spans opened at this ref or later have no record there
    filled: Any  # o, cell: how much of the stream has come
    candidates: Any  # s
    detections: Any
    initiated: Any  # d
    terminated: Any


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run(tables, rows, links, spans, records, pool, made, selected, found, counts, bound):  # type: ignore[no-untyped-def]
    """All rows, each after the expirations that come before it; then those due before `bound`."""
    closed = np.empty(16, np.int64)
    opened = np.full(len(tables.interval), -1, np.int64)
    scratch = np.empty((6, 1 + len(tables.quantifier)), np.int64)
    due = next_due(links, spans)
    for row in range(len(rows.now)):
        now = rows.now[row]
        while due < now:
            records, pool, made, selected, found = expire(
                tables, rows, links, spans, records, pool, made, selected, found, counts, scratch
            )
            due = next_due(links, spans)
        ref = rows.first_ref + row
        counts[CAUSE] += 1
        kind = rows.type[row]
        ended = 0
        for index in range(tables.type_lifespan_starts[kind], tables.type_lifespan_starts[kind + 1]):
            d = tables.type_lifespans[index]
            closed, ended = terminate(tables, rows, links, spans, records, d, row, closed, ended)
            opened[d] = initiate(tables, rows, links, spans, counts, d, row, ref, now)
            if opened[d] >= 0:
                due = min(due, spans[opened[d], DUE])
        for index in range(tables.type_situation_starts[kind], tables.type_situation_starts[kind + 1]):
            s = tables.type_situations[index]
            d = tables.lifespan[s]
            for number in range(ended):
                span = closed[number]
                if spans[span, DEFINITION] == d and not spans[span, DISCARD]:
                    pool, made, selected, found = end(
                        tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, s, span, False, ref, now
                    )
            begun = opened[d]
            if rows.cell[s, row] >= 0:
                records, pool, made, selected, found = collect(
                    tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, s, row, ref, now, begun
                )
            if begun >= 0 and not tables.local[s]:
                records, _ = new_record(tables, rows, links, records, spans, counts, begun, s, spans[begun, KEY])
        for index in range(tables.type_lifespan_starts[kind], tables.type_lifespan_starts[kind + 1]):
            opened[tables.type_lifespans[index]] = -1
        for number in range(ended):
            release(spans, records, counts, closed[number])
    while due < bound:
        records, pool, made, selected, found = expire(
            tables, rows, links, spans, records, pool, made, selected, found, counts, scratch
        )
        due = next_due(links, spans)
    return records, pool, made, selected, found


# Lifespans.


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def terminate(tables, rows, links, spans, records, d, row, closed, ended):  # type: ignore[no-untyped-def]
    """Quantifiers look at the lifespans open before the event; the first terminator in order decides (decision 25)."""
    mask, key = rows.terminators[d, row], rows.key[d, row]
    if mask == 0 or key < 0:
        return closed, ended
    place = rows.key_base[d] + key
    oldest, newest = links.first_span[place], links.last_span[place]
    span = oldest
    each = False
    for number in range(tables.terminator_quantifier.shape[1]):
        each |= (mask >> number) & 1 and tables.terminator_quantifier[d, number] == 0
    while span >= 0:
        following = spans[span, AFTER] if each or span != oldest or oldest == newest else newest
        for number in range(tables.terminator_quantifier.shape[1]):
            quantifier = tables.terminator_quantifier[d, number]
            covers = quantifier == 0 or (quantifier == 1 and span == oldest) or (quantifier == 2 and span == newest)
            if (mask >> number) & 1 and covers:
                spans[span, DISCARD] = tables.terminator_discards[d, number]
                spans[span, TERMINATOR] = number
                if ended == len(closed):
                    closed = np.concatenate((closed, closed))
                closed[ended] = span
                ended += 1
                close(rows, links, spans, records, span)
                break
        span = following
    return closed, ended


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def close(rows, links, spans, records, span):  # type: ignore[no-untyped-def]
    """Out of all lists; the slots are released once its situations have ended."""
    d = spans[span, DEFINITION]
    place = rows.key_base[d] + spans[span, KEY]
    before, after = spans[span, BEFORE], spans[span, AFTER]
    if before >= 0:
        spans[before, AFTER] = after
    else:
        links.first_span[place] = after
    if after >= 0:
        spans[after, BEFORE] = before
    else:
        links.last_span[place] = before
    links.open_spans[place] -= 1
    links.terminated[d] += 1
    if spans[span, DUE] != NEVER:
        before, after = spans[span, QUEUE_BEFORE], spans[span, QUEUE_AFTER]
        if before >= 0:
            spans[before, QUEUE_AFTER] = after
        else:
            links.queue_first[d] = after
        if after >= 0:
            spans[after, QUEUE_BEFORE] = before
        else:
            links.queue_last[d] = before
    record = spans[span, RECORDS]
    while record >= 0:
        if not records[record, DONE]:
            deactivate(rows, links, records, record)
        record = records[record, NEXT_OF_SPAN]


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def release(spans, records, counts, span):  # type: ignore[no-untyped-def]
    record = spans[span, RECORDS]
    while record >= 0:
        following = records[record, NEXT_OF_SPAN]
        records[record, SPAN] = -1
        records[record, NEXT_OF_SPAN] = counts[FREE_RECORD]
        counts[FREE_RECORD] = record
        record = following
    spans[span, DEFINITION] = -1
    spans[span, AFTER] = counts[FREE_SPAN]
    counts[FREE_SPAN] = span


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def initiate(tables, rows, links, spans, counts, d, row, ref, now):  # type: ignore[no-untyped-def]
    """`ignore` looks at the newest lifespan alone: it is the last to expire (decision 35: one that expires now is no hindrance)."""
    mask, key = rows.initiators[d, row], rows.key[d, row]
    if mask == 0 or key < 0:
        return -1
    newest = links.last_span[rows.key_base[d] + key]
    free = newest < 0 or spans[newest, DUE] <= now
    for number in range(tables.initiator_adds.shape[1]):
        if (mask >> number) & 1 and (free or tables.initiator_adds[d, number]):
            due = now + tables.interval[d] if tables.interval[d] else NEVER
            links.initiated[d] += 1
            return add_span(rows, links, spans, counts, d, key, ref, due, number)
    return -1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_span(rows, links, spans, counts, d, key, ref, due, initiator):  # type: ignore[no-untyped-def]
    span = counts[FREE_SPAN]
    if span >= 0:
        counts[FREE_SPAN] = spans[span, AFTER]
    else:
        span = counts[SPANS]
        counts[SPANS] += 1
    place = rows.key_base[d] + key
    before = links.last_span[place]
    spans[span, DEFINITION] = d
    spans[span, KEY] = key
    spans[span, OPENED] = ref
    spans[span, DUE] = due
    spans[span, INITIATOR] = initiator
    spans[span, BEFORE] = before
    spans[span, AFTER] = -1
    spans[span, QUEUE_BEFORE] = -1
    spans[span, QUEUE_AFTER] = -1
    spans[span, RECORDS] = -1
    spans[span, TERMINATOR] = -1
    if before >= 0:
        spans[before, AFTER] = span
    else:
        links.first_span[place] = span
    links.last_span[place] = span
    links.open_spans[place] += 1
    if due != NEVER:
        before = links.queue_last[d]
        spans[span, QUEUE_BEFORE] = before
        if before >= 0:
            spans[before, QUEUE_AFTER] = span
        else:
            links.queue_first[d] = span
        links.queue_last[d] = span
    return span


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def next_due(links, spans):  # type: ignore[no-untyped-def]
    due = NEVER
    for d in range(len(links.queue_first)):
        span = links.queue_first[d]
        if span >= 0:
            due = min(due, spans[span, DUE])
    return due


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def expire(tables, rows, links, spans, records, pool, made, selected, found, counts, scratch):  # type: ignore[no-untyped-def]
    """The expiration that is due first; at one instant, the one that was set first."""
    best = -1
    for d in range(len(links.queue_first)):
        span = links.queue_first[d]
        if span >= 0 and (
            best < 0
            or spans[span, DUE] < spans[best, DUE]
            or (spans[span, DUE] == spans[best, DUE] and spans[span, OPENED] < spans[best, OPENED])
        ):
            best = span
    d = spans[best, DEFINITION]
    counts[CAUSE] += 1
    close(rows, links, spans, records, best)
    if not tables.expiry_discards[d]:
        for index in range(tables.situation_starts[d], tables.situation_starts[d + 1]):
            s = tables.situations[index]
            pool, made, selected, found = end(
                tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, s, best,
                True, spans[best, OPENED], spans[best, DUE],
            )  # fmt: skip
    release(spans, records, counts, best)
    return records, pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def end(tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, s, span, timer, ref, now):  # type: ignore[no-untyped-def]
    """Deferred decisions, partition by partition in order of the local key's value."""
    if tables.mode[s] != DEFERRED:
        return pool, made, selected, found
    several = 0
    record = spans[span, RECORDS]
    while record >= 0:
        several += records[record, SITUATION] == s
        record = records[record, NEXT_OF_SPAN]
    parts = np.empty(several, np.int64)
    ranks = np.empty(several, np.int64)
    several = 0
    record = spans[span, RECORDS]
    while record >= 0:
        if records[record, SITUATION] == s:
            parts[several] = record
            ranks[several] = rows.cell_rank[rows.cell_base[s] + records[record, CELL]]
            several += 1
        record = records[record, NEXT_OF_SPAN]
    if several > 1:
        parts = parts[np.argsort(ranks)]
    for record in parts:
        while True:
            pool, made, selected, found, some = decide(
                tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, record, 0, timer, ref, now
            )
            if not some or tables.kind[s] > SEQUENCE:
                break
    return pool, made, selected, found


# Candidates.


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def new_record(tables, rows, links, records, spans, counts, span, s, cell):  # type: ignore[no-untyped-def]
    record = counts[FREE_RECORD]
    if record >= 0:
        counts[FREE_RECORD] = records[record, NEXT_OF_SPAN]
    else:
        record = counts[RECORD_COUNT]
        counts[RECORD_COUNT] += 1
        if record == len(records):
            more = np.empty((2 * len(records), records.shape[1]), np.int64)
            more[:record] = records
            records = more
    records[record, SPAN] = span
    records[record, SITUATION] = s
    records[record, CELL] = cell
    records[record, DONE] = 0
    records[record, NEXT_OF_SPAN] = spans[span, RECORDS]
    spans[span, RECORDS] = record
    for column in range(OPS, records.shape[1], PER_OP):
        records[record, column + BITS] = -1
    first = tables.operand_starts[s]
    for operand in range(tables.operand_starts[s + 1] - first):
        records[record, OPS + PER_OP * operand + START] = links.filled[rows.stream_base[first + operand] + cell]
    activate(rows, links, records, record)
    return records, record


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def activate(rows, links, records, record):  # type: ignore[no-untyped-def]
    place = rows.cell_base[records[record, SITUATION]] + records[record, CELL]
    before = links.active_last[place]
    records[record, ACTIVE_BEFORE] = before
    records[record, ACTIVE_AFTER] = -1
    if before >= 0:
        records[before, ACTIVE_AFTER] = record
    else:
        links.active_first[place] = record
    links.active_last[place] = record


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def deactivate(rows, links, records, record):  # type: ignore[no-untyped-def]
    place = rows.cell_base[records[record, SITUATION]] + records[record, CELL]
    before, after = records[record, ACTIVE_BEFORE], records[record, ACTIVE_AFTER]
    if before >= 0:
        records[before, ACTIVE_AFTER] = after
    else:
        links.active_first[place] = after
    if after >= 0:
        records[after, ACTIVE_BEFORE] = before
    else:
        links.active_last[place] = before


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def collect(tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, s, row, ref, now, begun):  # type: ignore[no-untyped-def]
    mask, cell = rows.operands[s, row], rows.cell[s, row]
    if mask == 0 and not (tables.counting[s] and tables.local[s]):
        return records, pool, made, selected, found
    d = tables.lifespan[s]
    if tables.local[s]:
        records = add_partitions(tables, rows, links, records, spans, counts, s, d, row, ref, cell)
    first, size = tables.operand_starts[s], 0
    for operand in range(tables.operand_starts[s + 1] - first):
        if (mask >> operand) & 1:
            links.filled[rows.stream_base[first + operand] + cell] += 1
            size += 1
    if size == 0:
        return records, pool, made, selected, found
    if tables.mode[s] == DEFERRED:
        place = rows.key_base[d] + rows.key[d, row]
        links.candidates[s] += size * (links.open_spans[place] - (begun >= 0))
        return records, pool, made, selected, found
    record = links.active_first[rows.cell_base[s] + cell]
    while record >= 0:
        following = records[record, ACTIVE_AFTER]
        links.candidates[s] += size
        if rows.overrides[s, row]:
            override(tables, rows, links, records, record, s, cell, mask & rows.overrides[s, row])
        pool, made, selected, found, _ = decide(
            tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, record, mask, False, ref, now
        )
        record = following
    return records, pool, made, selected, found


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def override(tables, rows, links, records, record, s, cell, mask):  # type: ignore[no-untyped-def]
    """The list is emptied before the new candidate enters it (decision 19)."""
    first = tables.operand_starts[s]
    for operand in range(tables.operand_starts[s + 1] - first):
        if (mask >> operand) & 1:
            column = OPS + PER_OP * operand
            records[record, column + START] = links.filled[rows.stream_base[first + operand] + cell] - 1
            records[record, column + BITS] = -1


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_partitions(tables, rows, links, records, spans, counts, s, d, row, ref, cell):  # type: ignore[no-untyped-def]
    """Partitions of this local key value in the lifespans that were opened since the last event with it, oldest first."""
    place = rows.cell_base[s] + cell
    span = links.last_span[rows.key_base[d] + rows.key[d, row]]
    oldest = -1
    while span >= 0 and spans[span, OPENED] >= links.seen[place]:
        if spans[span, OPENED] < ref:
            oldest = span
        span = spans[span, BEFORE]
    links.seen[place] = ref
    while oldest >= 0 and spans[oldest, OPENED] < ref:
        records, _ = new_record(tables, rows, links, records, spans, counts, oldest, s, cell)
        oldest = spans[oldest, AFTER]
    return records


# Decisions.


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def decide(tables, rows, links, spans, records, pool, made, selected, found, counts, scratch, record, mask, timer, ref, now):  # type: ignore[no-untyped-def]
    """`detect` of section 4. A mask says which operands the arriving event has entered; none: a deferred decision."""
    if records[record, DONE]:
        return pool, made, selected, found, False
    s = records[record, SITUATION]
    first, cell = tables.operand_starts[s], records[record, CELL]
    operands = tables.operand_starts[s + 1] - first
    if tables.kind[s] <= SEQUENCE:
        for operand in range(operands):
            filled = links.filled[rows.stream_base[first + operand] + cell]
            if records[record, OPS + PER_OP * operand + START] >= filled:
                return pool, made, selected, found, False
        found = pick(tables, rows, links, records, pool, found, counts, scratch, record, mask, ref)
        several = counts[FOUND]
        if several and tables.once[s]:
            several = 1
        for number in range(several):
            made = report(links, spans, records, made, counts, record, timer, ref, now)
            for operand in range(operands):
                stream = rows.stream_starts[rows.stream_base[first + operand] + cell]
                selected = select(selected, counts, operand, rows.stream[stream + found[number, operand]])
        pool = consume(rows, records, pool, found, counts, record, s, first, operands, several)
    else:
        total, several = 0, 1
        for operand in range(operands):
            length = links.filled[rows.stream_base[first + operand] + cell] - records[record, OPS + PER_OP * operand + START]
            total += length if tables.kind[s] == NOT else tables.weight[first + operand] * length
        if not satisfied(tables.kind[s], total, tables.quantity[s]):
            return pool, made, selected, found, False
        made = report(links, spans, records, made, counts, record, timer, ref, now)
        for operand in range(operands if tables.kind[s] != NOT else 0):
            stream = rows.stream_base[first + operand] + cell
            column = OPS + PER_OP * operand + START
            for position in range(records[record, column], links.filled[stream]):
                selected = select(selected, counts, operand, rows.stream[rows.stream_starts[stream] + position])
            records[record, column] = links.filled[stream]
    if several and tables.once[s]:
        records[record, DONE] = 1
        if mask:
            deactivate(rows, links, records, record)
    return pool, made, selected, found, several > 0


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def satisfied(kind, total, quantity):  # type: ignore[no-untyped-def]
    if kind == ATLEAST:
        return total >= quantity
    if kind == ATMOST:
        return total < quantity
    return total == (0 if kind == NOT else quantity)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def report(links, spans, records, made, counts, record, timer, ref, now):  # type: ignore[no-untyped-def]
    number, span = counts[MADE], records[record, SPAN]
    if number == len(made):
        more = np.empty((2 * number, made.shape[1]), np.int64)
        more[:number] = made
        made = more
    made[number, BY_TIMER] = timer
    made[number, CAUSE_NUMBER] = counts[CAUSE]
    made[number, CAUSE_REF] = ref
    made[number, NOW] = now
    made[number, OF_SITUATION] = records[record, SITUATION]
    made[number, OF_CELL] = records[record, CELL]
    made[number, OPENED_BY] = spans[span, OPENED]
    made[number, OF_INITIATOR] = spans[span, INITIATOR]
    made[number, OF_TERMINATOR] = spans[span, TERMINATOR]
    made[number, ENDED_BY] = ref if spans[span, TERMINATOR] >= 0 else -1
    made[number, FIRST] = counts[SELECTED]
    counts[MADE] += 1
    links.detections[records[record, SITUATION]] += 1
    return made


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def select(selected, counts, operand, ref):  # type: ignore[no-untyped-def]
    number = counts[SELECTED]
    if number == len(selected):
        more = np.empty((2 * number, 2), np.int64)
        more[:number] = selected
        selected = more
    selected[number, 0] = operand
    selected[number, 1] = ref
    counts[SELECTED] += 1
    return selected


# Between two steps.


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def relink(rows, links, old, spans, records, counts):  # type: ignore[no-untyped-def]
    """Lists of the spans and records that are open, both oldest first."""
    for number in range(len(old)):
        span = old[number]
        add_span(rows, links, spans, counts, span[DEFINITION], span[KEY], span[OPENED], span[DUE], span[INITIATOR])
    for record in range(counts[RECORD_COUNT]):
        span = records[record, SPAN]
        records[record, NEXT_OF_SPAN] = spans[span, RECORDS]
        spans[span, RECORDS] = record
        if not records[record, DONE]:
            activate(rows, links, records, record)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def compacted_pool(records, pool):  # type: ignore[no-untyped-def]
    """The bits that records still refer to."""
    size = 16
    for record in range(len(records)):
        for column in range(OPS, records.shape[1], PER_OP):
            if records[record, column + BITS] >= 0:
                size += records[record, column + WORDS]
    out, used = np.zeros(size, np.int64), 0
    for record in range(len(records)):
        for column in range(OPS, records.shape[1], PER_OP):
            bits, words = records[record, column + BITS], records[record, column + WORDS]
            if bits >= 0:
                out[used : used + words] = pool[bits : bits + words]
                records[record, column + BITS] = used
                used += words
    return out[: max(used, 1)]
