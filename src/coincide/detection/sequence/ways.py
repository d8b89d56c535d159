"""The events of sequences, and what is shown of them, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.origins import coded
from coincide.detection.columns.store import gathered
from coincide.detection.sequence.loop import depths, walk
from coincide.detection.sequence.program import shown_value
from coincide.lang.eql.definition import TIMESTAMP
from coincide.model.column import column_from_arrow, column_of
from coincide.model.table import EventTable, Origins

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ways:
    """The events of sequence i, in order, are those from offsets[i] to offsets[i + 1]."""

    events: Numbers
    offsets: Numbers

    def take(self, rows: Numbers) -> Ways:
        starts, sizes = self.offsets[rows], np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        return Ways(self.events[np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])], offsets)


def ways_to(nodes: Any, ends: Numbers) -> Ways:
    sizes = np.zeros(len(ends), np.int64)
    depths(nodes, ends, sizes)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    events = np.empty(offsets[-1], np.int64)
    walk(nodes, ends, offsets, events)
    return Ways(events, offsets)


def shown_table(table: EventTable, fields: Sequence[str]) -> EventTable:
    """Of a batch what sequences keep: the fields that detections show."""
    columns = {"id": table.fields.get("id", pa.nulls(len(table), pa.string()))}
    for name in fields:
        if name == TIMESTAMP:
            columns[name] = table.column("time").to_arrow()
        elif name in table.fields:
            columns[name] = table.fields[name]
    return replace(table, fields=columns, hidden=None, _columns={})


@dataclass(frozen=True, eq=False)
class Traces:
    """What is kept of the events of sequences: their times, the primitive events below them, the first value of each field."""

    lo: Numbers
    hi: Numbers
    origins: Origins
    shown: dict[str, pa.Array]


def traces(chunks: Sequence[EventTable], ways: Ways, fields: Sequence[str]) -> Traces:
    """Of events that are numbered through."""
    numbers, index = np.unique(ways.events, return_inverse=True)
    table = gathered(chunks, numbers, frozenset({"id", *fields}))
    starts = ways.offsets[:-1]
    return Traces(
        np.minimum.reduceat(table.lo[index], starts),
        np.maximum.reduceat(table.hi[index], starts),
        _origins(table, index, ways.offsets),
        {name: _first_values(table, name, index, ways.offsets) for name in fields if name in table.fields},
    )


def _origins(table: EventTable, index: Numbers, offsets: Numbers) -> Origins:
    """In total order, without repeats: as primitive events of a sequence are."""
    origins = table.origin()
    if not (table.generation > 0).any():
        return replace(origins.take(index), offsets=offsets)
    return coded([table]).united(index, offsets).origins()


def _first_values(table: EventTable, name: str, index: Numbers, offsets: Numbers) -> pa.Array:
    """Of each way the value of the first event that has one."""
    array = table.fields[name]
    column = column_from_arrow(array)
    if column.compounds is not None:
        column = column_of([shown_value(column.value(row)) for row in range(len(column))])
        array = column.to_arrow()
    there = ~column.is_null
    if column.compounds is not None:
        there |= np.array([compound is not None for compound in column.compounds])
    places = np.where(there[index], np.arange(len(index)), len(index))
    first = np.minimum.reduceat(places, offsets[:-1])
    absent = first == len(index)
    return array.take(pa.array(np.where(absent, 0, index[np.where(absent, 0, first)]), mask=absent))
