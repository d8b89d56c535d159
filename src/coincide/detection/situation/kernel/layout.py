"""What the arrays of the compiled loop hold, by column.

- An event is its *ref*, its number in the order of arrival among the events that are kept.
- Candidates are stored once for each operand and cell (section 8): a *stream* of refs. A *cell* is a key of the lifespan and a
  local key.
- A *span* is an open lifespan. A *record* is a partition: what one situation has in one span and cell. What it has of a stream
  are a start and the positions consumed since, so an arriving candidate costs nothing in the spans that it only joins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NEVER = np.iinfo(np.int64).max


class World(NamedTuple):
    """All that the loop reads and changes. The last ones grow: another array takes their place."""

    lifespans: Any  # by definition d: columns below
    roles: Any  # d, which of the three below, number of the initiator or terminator
    situations: Any  # by situation s
    operands: Any  # by operand o, those of all situations one after another
    conjuncts: Any  # a comparison; operand and column on either side; how they are first combined (0: not), constant's column;
    # if it is an equality, the indexes of either side's candidates by it (-1: none)
    lists: Any  # numbers; list n is from list_starts[n] to list_starts[n + 1]: the lifespans that events of type t open or
    list_starts: Any  # close, then for all t the situations that read them, then for all d the situations of d
    events: Any  # by row: when, its type, and its hi
    of_lifespan: Any  # d, row: its key (-1: null), masks of initiators and terminators whose conditions hold
    of_situation: Any  # s, row: its cell (-1: null), masks of operands whose threshold holds, and whose override does
    keeps: Any  # s, ref: mask of operands that retain it
    values: Any  # column, ref: what conjuncts compare
    ranges: Any  # index: from and to, by ref: the candidates in `equal` whose value is that of the event on the other side
    equal: Any  # positions in streams, by cell and value
    streams: Any  # o, cell: where it begins in `stream`, how much of it has come, the records that wait for it
    stream: Any  # refs
    keys: Any  # d, key: oldest and newest open span, and how many
    cells: Any  # s, cell: records that lack no candidate; spans opened at this ref or later have none; rank of local key; how
    # many records are not done
    spans: Any
    counts: Any
    opened: Any  # d: the span that the event has opened, or -1
    scratch: Any  # a search among candidates: by operand, rows below
    closed: Any  # spans that the event has closed
    records: Any
    pool: Any  # bits of consumed candidates
    timers: Any  # of `after`
    held: Any  # detections that wait for the end of their lifespans (detectionMode `delayed`)
    held_events: Any  # operand and ref of their candidates
    made: Any  # detections
    selected: Any  # operand and ref of their candidates, one detection after another
    found: Any  # selections of a search: positions in streams, by operand


# lifespans, roles, situations, events, and what they are to lifespans and situations; keys, cells
INTERVAL, EXPIRY_DISCARDS, KEY_BASE, QUEUE_FIRST, QUEUE_LAST, INITIATED, TERMINATED, ORDER_OF_LIFESPAN = range(8)
ADDS, COVERS, DISCARDS = range(3)
KIND, MODE, ONCE, QUANTITY, LIFESPAN, LOCAL, COUNTING, FIRST_OPERAND, OPERANDS, CELL_BASE, CANDIDATES, DETECTIONS = range(12)
DELAY, CORRELATE, TIMERS_FIRST, TIMERS_LAST, ORDER, REPEATED, SITUATION_WIDTH = range(12, 19)  # `after`; order among definitions
WHEN, TYPE, HI = range(3)
KEY_NUMBER, INITIATORS, TERMINATORS = range(3)
CELL_NUMBER, ENTERED, OVERRIDDEN = range(3)
OLDEST, NEWEST, OPEN = range(3)
READY_FIRST, READY_LAST, SEEN, RANK, WAITING = range(5)

# operands
QUANTIFIER, STRICT, WEIGHT, CONJUNCTS_FROM, CONJUNCTS_TO, STREAM_BASE = range(6)
ALL, SEQUENCE, ATLEAST, ATMOST, NTH, NOT, UNLESS, PASSED = range(8)  # kinds; PASSED is `after`
IMMEDIATE, DEFERRED, DELAYED = range(3)  # modes
EACH, FIRST, LAST = range(3)  # quantifiers
ADD, IGNORE, REPLACE = range(3)  # how timers of `after` correlate
# streams
FROM, FILLED, WATCHED_FIRST, WATCHED_LAST = range(4)
# spans
DEFINITION, KEY, OPENED, DUE, INITIATOR, BEFORE, AFTER, QUEUE_BEFORE, QUEUE_AFTER, RECORDS, DISCARD, TERMINATOR = range(12)
HELD_FIRST, HELD_LAST, SPAN_WIDTH = range(12, 15)
# what is held: where it belongs, its part of held_events, and the next one of the span
HELD_SPAN, HELD_SITUATION, HELD_CELL, HELD_FROM, HELD_TO, HELD_BEFORE, HELD_AFTER, HELD_WIDTH = range(8)
# conjuncts
COMPARISON, LEFT, LEFT_COLUMN, RIGHT, RIGHT_COLUMN, COMBINATION, CONSTANT, LEFT_INDEX, RIGHT_INDEX, CONJUNCT_WIDTH = range(10)
# records; WATCHING is an operand for which there is no candidate (-1: it is with the ready ones); for each operand, from OPS on:
# where its candidates start in the stream, and which after that are consumed: bits in the pool (-1: none), the position of the
# first of them, how many words
SPAN, SITUATION, CELL, DONE, LIST_BEFORE, LIST_AFTER, NEXT_OF_SPAN, WATCHING, OPS = range(9)
START, BITS, BITS_FROM, WORDS, PER_OP = range(5)
# counts
SPANS, RECORD_COUNT, POOL, MADE, SELECTED, FOUND, CAUSE, FREE_SPAN, FREE_RECORD, FIRST_REF, TYPES = range(11)
TIMER, CAUSED_BY, CLOCK = 11, 12, 13  # what is being processed: of which kind, its ref (or of what set the timer), when
TIMER_COUNT, FREE_TIMER, NUMBER = 14, 15, 16  # NUMBER: how many timers were set there before it
CONDITIONS, HELD_COUNT, HELD_EVENTS = 17, 18, 19  # CONDITIONS: parts of `where` that were tested
RESUMED, COUNTS = 20, 21  # in a deferred decision that is repeated: where the first operand's last one was found; -1: nowhere
BY_EVENT, BY_EXPIRATION, BY_PASSING = range(3)  # kinds of causes
# timers of `after`: what they wait in, of which event they tell (which set them) and their number there, by due time, in a cell
DUE_AT, OF_SPAN, SPAN_OPENED, TIMER_SITUATION, TIMER_CELL, OPERAND, EVENT, SET_AS, NEXT, CELL_BEFORE, CELL_AFTER = range(11)
TIMER_WIDTH = 11
# scratch: the next position and where to stop, selections before, chosen refs and positions; are positions those of an index?
AT, STOP, FOUND_BEFORE, REFS, POSITIONS, INDEXED, SCRATCH_WIDTH = range(7)
# what is made
BY_TIMER, CAUSE_NUMBER, CAUSE_REF, NOW, OF_SITUATION, OF_CELL, OPENED_BY, OF_INITIATOR, OF_TERMINATOR, ENDED_BY = range(10)
CHOSEN, TIMER_NUMBER, OF_SPAN_NUMBER, MADE_WIDTH = range(10, 14)
