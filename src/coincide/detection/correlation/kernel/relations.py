"""The join tier's state as relations that are written (columns/codec.py), and from them again.

An event is written with the attributes that each source declares, which are its own or were looked up; which sources have matched
it stands in a table. Where detection is divided by a key, so does that, and portions can be read (columns/portion.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.columns.codec import Relations, Rows, compact, decode, kind_of
from coincide.detection.columns.store import NOTHING, picked
from coincide.detection.columns.tables import KEYED, Numbers, Shape
from coincide.detection.correlation.kernel.chunks import ENVELOPE_FIELDS, Chunk
from coincide.detection.correlation.kernel.rows import Messages, clocks, compacted, typed
from coincide.detection.correlation.kernel.state import Compact
from coincide.detection.correlation.kernel.trees import Attribute, Trees
from coincide.detection.keys import key_part
from coincide.detection.snapshots import damaged
from coincide.model.column import Column
from coincide.model.table import EventTable

MESSAGES = Shape("messages", "event>events", parts="matched")  # a part for each source
SHAPES = {"correlation": MESSAGES, "correlation by key": replace(MESSAGES, valued=True, use=KEYED)}
"""By kind, without keys and with these."""


def relations(state: Compact, key: str | None, since_last: bool = False) -> Relations:
    """All there is, which what is told next can be added to; or what has changed. New messages stand at the end."""
    chunk = state.since(state.written) if since_last else state.whole()
    numbers = chunk.numbers
    marks = np.zeros((len(chunk.messages), len(numbers)), np.int64)
    fields = dict(chunk.table.fields)
    for source, some in enumerate(chunk.messages):
        marks[source, some.rows] = 1
        for name, column in some.columns.items():
            fields[field_name(source, name)] = _spread(column, some.rows, len(numbers))
    columns = {"event": numbers, **{f"matched.{source}": column for source, column in enumerate(marks)}}
    freed = _freed(state, numbers) if since_last else numbers[:0]
    kind, shape = [*SHAPES.items()][key is not None]
    rows_told = Rows(shape, numbers, columns, state.count, len(marks), freed, None if key is None else _keys(chunk, key))
    events = replace(chunk.table, fields=fields, _columns={}) if len(numbers) else NOTHING
    notes = {"events": np.array([state.count]), "until": np.array([state.until])}
    return Relations(kind, {shape.name: rows_told}, numbers, events, notes, state.epoch if since_last else 0, state.epoch)


def _keys(chunk: Chunk, name: str) -> list[Any]:
    """Of each message: all sources that have matched it see the same."""
    keys: list[Any] = [None] * len(chunk)
    for some in chunk.messages:
        column = some.column(name) if len(some) else None
        for row, value in zip(some.rows.tolist(), column.values() if column is not None else (), strict=True):
            keys[row] = (key_part(value),)
    return keys


def field_name(source: int, attribute: str) -> str:
    return f"{source}:{attribute}"


def _spread(column: Column, rows: Numbers, size: int) -> pa.Array:
    index = np.full(size, -1, np.int64)
    index[rows] = np.arange(len(rows))
    return compacted(column).to_arrow().take(pa.array(index, mask=index < 0))


def _freed(state: Compact, numbers: Numbers) -> Numbers:
    """Of later ones than those written a snapshot in between may have told."""
    gone = np.sort(np.concatenate([np.zeros(0, np.int64), *state.removed]))
    return np.concatenate((gone, np.setdiff1d(np.arange(state.written, state.count), numbers)))


def read(trees: Trees, key: str | None, base: bytes, later: Sequence[bytes]) -> Compact:
    """A state to go on from; what changes from then on can be told in addition to these. Raises ValueError."""
    kind = kind_of(base)
    if kind not in SHAPES:
        damaged(f"it is {kind!r}")
    shape = SHAPES[kind]
    found, size, same = compact(decode((shape,), kind, base, *later))
    rows = found.rows[MESSAGES.name]
    event = rows.columns["event"]
    if rows.parts != len(trees.sources) or (np.diff(event) <= 0).any():
        damaged("its messages are of other sources, or not in order")
    at = np.searchsorted(found.refs, event)
    table = picked(found.events, at, ENVELOPE_FIELDS) if len(at) else NOTHING
    messages = [_messages(trees.declared[s], s, found.events, table, at, rows.columns[f"matched.{s}"]) for s in range(rows.parts)]
    if (np.diff(clocks(table)) < 0).any():
        damaged("its messages do not stand in order of arrival")
    if trees.dues and not (table.sortable and np.array_equal(clocks(table), table.place_matrix()[:, 0])):
        damaged("time events do not follow from its messages")
    state = Compact([Chunk(table, messages, event)], size, epoch=max(found.epoch, 1))
    until = found.notes.get("until", np.zeros(0, np.int64))
    state.until = max([state.until, *until.tolist()])
    state.renewed = not (same and np.array_equal(event, rows.numbers) and shape.valued == (key is not None))
    state.written = size
    return state


def _messages(declared: list[Attribute], source: int, events: EventTable, table: EventTable, at: Numbers, marks: Any) -> Messages:
    if not np.isin(marks, (0, 1)).all():
        damaged("a message is matched or not")
    rows = np.flatnonzero(marks)
    found = Messages(table, rows)
    for attribute in declared:
        column = events.column(field_name(source, attribute.name)).take(at[rows]) if len(rows) else Column(0)
        found.columns[attribute.name] = own = typed(column, attribute.kind, cut=False)
        if not attribute.optional and own.is_null.any():
            damaged("a message is none of its source")
    return found
