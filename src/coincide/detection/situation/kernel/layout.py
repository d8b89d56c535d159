"""What the arrays of the compiled loop hold. Those of a state are tables (columns/tables.py): shapes and columns by name.

- An event is its *ref*, its number in the order of arrival among the events that are kept.
- Candidates are stored once for each operand and cell (section 8): a *stream* of refs, by position. A *cell* is a situation, a
  key of its lifespan and a local key.
- A *span* is an open lifespan. A *record* is a partition: what one situation has in one span and cell. What it has of a stream
  are a start and the positions consumed since, so an arriving candidate costs nothing in the spans that it only joins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.detection.columns.records import Doubles, columns
from coincide.detection.columns.tables import KEYED, Numbers, Shape

NEVER = np.iinfo(np.int64).max


# The tables of a state. A key of a lifespan has its values, and by situation without a local key the one cell there is. Of
# situations that are stepped as one (families.py), `whose` it is, and its values begin with that; of others it is 0.
KEYS = Shape("keys", "definition", "oldest newest open whose", part_links="cell", valued=True, use=KEYED)
# `seen`: spans opened at this ref or later have no record of the cell. By operand, the stream: how far it is filled, from where
# on somebody may ask for it, what to add to positions to get those in `stream`, where its room ends, how much of it was written.
CELLS = Shape(
    "cells",
    "situation key>keys seen<events",
    "ready_first ready_last rank waiting used indexed",
    parts="filled low",
    part_links="origin limit written watched_first watched_last",
    valued=True,
)
SPANS = Shape(
    "spans",
    "definition key>keys opened>events due initiator?",
    "before after queue_before queue_after records discard terminator held_first held_last timers_first timers_last",
)
# `watching` is an operand for which there is no candidate (-1: it is with the ready ones). By operand: where its candidates
# start in the stream, and which after that are consumed: bits in the pool (-1: none), the position of the first, how many words.
RECORDS = Shape(
    "records",
    "span>spans situation cell>cells done",
    "list_before list_after next_of_span watching",
    parts="start",
    part_links="bits bits_from words",
)
# Of `after`: in what it waits, of which event it tells (which set it) and its number there. Of `every`: the event that has opened
# the lifespan, the number that the first tick had there and, as operand, which tick it is.
TIMERS = Shape(
    "timers",
    "span>spans situation cell>cells operand event>events due number",
    "queue_before queue_after cell_before cell_after span_before span_after",
)
# Detections that wait for the end of their lifespans (detectionMode `delayed`), and from where to where their events are.
HELD = Shape("held", "span>spans situation cell>cells first", "last before after")
CANDIDATES = Shape("candidates", "cell>cells operand position event>events", owner="cell", grows=True)
CONSUMED = Shape("consumed", "record>records operand position word", owner="record")
CHOSEN = Shape("chosen", "held>held operand event>events", owner="held")
SHAPES = (KEYS, CELLS, SPANS, RECORDS, TIMERS, HELD, CANDIDATES, CONSUMED, CHOSEN)

TABLES = (KEYS, CELLS, SPANS, RECORDS, TIMERS, HELD)  # of the kernel
KEY, CELL, SPAN, RECORD, TIMER, WAITING = (shape.columns for shape in TABLES)
STREAM, TAKEN = CELLS.part, RECORDS.part
OF = columns("of", " ".join(shape.name for shape in TABLES))  # numbers of heads


class World(NamedTuple):
    """All that the loop reads and changes. The last ones grow: another array takes their place."""

    lifespans: Numbers  # by definition d
    roles: Numbers  # d, which of the three below, number of the initiator or terminator
    situations: Numbers  # by situation s
    operands: Numbers  # by operand o, those of all situations one after another
    conjuncts: Numbers  # by part of `where`
    instructions: Numbers  # of those that are programs: an operation and its arguments
    constants: Doubles  # of these, nan for null
    stack: Doubles  # on which they work
    lists: Numbers  # numbers; list n is from list_starts[n] to list_starts[n + 1]: the lifespans that events of type t open or
    list_starts: Numbers  # close, then for all t the situations that read them, then for all d the situations of d
    events: Numbers  # by row: when, its type, and its hi
    of_lifespan: Numbers  # d, row: its key (-1: null), masks of initiators and terminators whose conditions hold
    of_situation: Numbers  # s, row: its cell (-1: null), masks of operands whose threshold holds, and whose override does
    keeps: Numbers  # s, ref: mask of operands that retain it
    values: Doubles  # column, ref: what conjuncts compare
    ranges: Numbers  # index: from and to, by ref: the candidates in `equal` whose value is that of the event on the other side
    equal: Numbers  # positions in streams, by cell and value
    stream: Numbers  # refs
    keys: Numbers
    cells: Numbers
    counts: Numbers
    heads: Numbers  # of tables
    counted: Numbers  # by situation or definition; of those that are stepped as one, by which of them
    opened: Numbers  # d: the span that the event has opened, or -1
    scratch: Numbers  # a search among candidates: by operand, rows below
    closed: Numbers  # spans that the event has closed
    idle: Numbers  # keys that lifespans, and cells that records have left: whether it is a cell, and its number
    spans: Numbers
    records: Numbers
    pool: Numbers  # bits of consumed candidates
    timers: Numbers  # of `after` and `every`
    held: Numbers
    held_events: Numbers  # operand and ref of their candidates
    made: Numbers  # detections
    selected: Numbers  # operand and ref of their candidates, one detection after another
    found: Numbers  # selections of a search: positions in streams, by operand


LIFESPAN = columns("lifespan", "interval expiry_discards queue_first queue_last order")
ADDS, COVERS, DISCARDS = range(3)  # roles
SITUATION = columns(
    "situation",
    "kind mode once quantity lifespan local counting first_operand operands delay correlate timers_first"
    " timers_last order repeated among joined",  # `among`: its number among the situations of the lifespan without a local key;
    # `joined`: has it a `where`?
)
COUNTED = columns("counted", "candidates detections initiated terminated")
OPERAND = columns("operand", "quantifier strict weight conjuncts_from conjuncts_to flag")
# A comparison; operand and column on either side; how they are first combined (0: not), with which constant compared; if it is an
# equality, the indexes of either side's candidates by it (-1: none). Of a program: its last operand, on either side, and as
# columns where its instructions begin and end.
CONJUNCT = columns("conjunct", "comparison left left_column right right_column combination constant left_index right_index")
EVENT = columns("event", "when type hi")
ROLE = columns("role", "key initiators terminators")
ENTRY = columns("entry", "cell entered overridden")
# Rows, selections, work; what is being processed: its number, of which kind, its ref (or of what set the timer), when, how many
# timers were set there before it; parts of `where` that were tested; in a deferred decision that is repeated: where the first
# operand's last one was found (-1: nowhere); which step this is
COUNT = columns(
    "count",
    "pool made selected found idle held_events cause cause_kind caused_by clock number conditions resumed first_ref types step",
)
# The next position and where to stop, selections before, chosen refs and positions; are positions those of an index?
SCRATCH = columns("scratch", "at stop found_before refs positions indexed")
MADE = columns(
    "made",
    "by_timer cause_number cause_ref now situation cell opened_by initiator terminator ended_by chosen timer_number span",
)

ALL, SEQUENCE, ATLEAST, ATMOST, NTH, NOT, UNLESS, PASSED, TICKING = range(9)  # kinds; PASSED is `after`, TICKING `every`
IMMEDIATE, DEFERRED, DELAYED = range(3)  # modes
EACH, FIRST, LAST = range(3)  # quantifiers
ADD, IGNORE, REPLACE = range(3)  # how timers of `after` correlate
BY_EVENT, BY_EXPIRATION, BY_PASSING, BY_TICK = range(4)  # kinds of causes
# What a program puts on its stack: a constant; the clock; the value (column) of an operand's candidate; of the event that has
# opened or ends the lifespan, if its number is in a mask, else a constant. And it puts two numbers, with what the second is more
# than its double, in order: -1, 0, 1. Other operations: columns/operations.py.
CONSTANT, CLOCK, CANDIDATE, INITIATOR, TERMINATOR, ORDER = range(6)
