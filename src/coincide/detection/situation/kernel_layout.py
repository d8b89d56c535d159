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
    """All that the loop reads, and all that it changes in place: the fewer arrays, the sooner it is compiled."""

    lifespans: Any  # by definition d: columns below
    roles: Any  # d, which of the three below, number of the initiator or terminator
    situations: Any  # by situation s
    operands: Any  # by operand o, those of all situations one after another
    conjuncts: Any  # a comparison, operand and column on either side, how they are first combined (0: not), constant's column
    lists: Any  # numbers; list n is from list_starts[n] to list_starts[n + 1]: the lifespans that events of type t open or
    list_starts: Any  # close, then for all t the situations that read them, then for all d the situations of d
    events: Any  # by row: when, and its type
    of_lifespan: Any  # d, row: its key (-1: null), masks of initiators and terminators whose conditions hold
    of_situation: Any  # s, row: its cell (-1: null), masks of operands whose threshold holds, and whose override does
    keeps: Any  # s, ref: mask of operands that retain it
    values: Any  # column, ref: what conjuncts compare
    streams: Any  # o, cell: where it begins in `stream`, how much of it has come
    stream: Any  # refs
    keys: Any  # d, key: oldest and newest open span, and how many
    cells: Any  # s, cell: oldest and newest record that waits; spans opened at this ref or later have none; rank of local key
    spans: Any
    counts: Any


# lifespans, roles, situations, events, and what they are to lifespans and situations; keys, cells
INTERVAL, EXPIRY_DISCARDS, KEY_BASE, QUEUE_FIRST, QUEUE_LAST, INITIATED, TERMINATED = range(7)
ADDS, COVERS, DISCARDS = range(3)
KIND, MODE, ONCE, QUANTITY, LIFESPAN, LOCAL, COUNTING, FIRST_OPERAND, OPERANDS, CELL_BASE, CANDIDATES, DETECTIONS = range(12)
WHEN, TYPE = range(2)
KEY_NUMBER, INITIATORS, TERMINATORS = range(3)
CELL_NUMBER, ENTERED, OVERRIDDEN = range(3)
OLDEST, NEWEST, OPEN = range(3)
ACTIVE_FIRST, ACTIVE_LAST, SEEN, RANK = range(4)

# operands
QUANTIFIER, STRICT, WEIGHT, CONJUNCTS_FROM, CONJUNCTS_TO, STREAM_BASE = range(6)
ALL, SEQUENCE, ATLEAST, ATMOST, NTH, NOT = range(6)  # kinds
IMMEDIATE, DEFERRED = range(2)  # modes
EACH, FIRST, LAST = range(3)  # quantifiers
# streams
FROM, FILLED = range(2)
# spans
DEFINITION, KEY, OPENED, DUE, INITIATOR, BEFORE, AFTER, QUEUE_BEFORE, QUEUE_AFTER, RECORDS, DISCARD, TERMINATOR = range(12)
SPAN_WIDTH = 12
# records; for each operand, from OPS on: where its candidates start in the stream, and which after that are consumed: bits in
# the pool (-1: none), the position of the first of them, how many words
SPAN, SITUATION, CELL, DONE, ACTIVE_BEFORE, ACTIVE_AFTER, NEXT_OF_SPAN, OPS = range(8)
START, BITS, BITS_FROM, WORDS, PER_OP = range(5)
# counts
SPANS, RECORD_COUNT, POOL, MADE, SELECTED, FOUND, CAUSE, FREE_SPAN, FREE_RECORD, FIRST_REF, TYPES = range(11)
TIMER, CAUSED_BY, CLOCK = 11, 12, 13  # what is being processed: is it an expiration, its ref (or of what opened), when
COUNTS = 14
# what is made
BY_TIMER, CAUSE_NUMBER, CAUSE_REF, NOW, OF_SITUATION, OF_CELL, OPENED_BY, OF_INITIATOR, OF_TERMINATOR, ENDED_BY, CHOSEN = range(
    11
)
MADE_WIDTH = 11
