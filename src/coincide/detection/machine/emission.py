"""From what the loop recorded to detections, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.places import caused_places
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.tables import distinct, taken
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.state import Column
from coincide.detection.machine.tables import Tables
from coincide.expr.vector import evaluate
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import concatenated, single_values
from coincide.model.table import EventTable, LazyPlaces

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Made:
    """At `rows[i]` the column `columns[i]` made the outputs numbered `outs[i]` in its program's table."""

    rows: Numbers
    columns: Numbers
    outs: Numbers

    def where(self, mask: npt.NDArray[np.bool_]) -> Made:
        return self if mask.all() else Made(self.rows[mask], self.columns[mask], self.outs[mask])


@dataclass(frozen=True, eq=False)
class Pushes:
    """One push a row: by which monitor, which of its outputs, its number among the monitor's at that event."""

    rows: Numbers
    monitors: Numbers
    outputs: Numbers
    ranks: Numbers

    def take(self, index: Any) -> Pushes:
        return Pushes(self.rows[index], self.monitors[index], self.outputs[index], self.ranks[index])


def detections(group: MonitorGroup, running: Sequence[Column], tables: Tables, table: EventTable, made: Made) -> EventBatch:
    pushes = _pushes(group, running, tables, made)
    if not len(pushes.rows):
        return EMPTY
    order = np.array([detector.order for detector in group.detectors])[pushes.monitors]
    if len(running) > 1 or len(running[0].parts) > 1:
        place = (pushes.rows * (order.max() + 1) + order) * (pushes.ranks.max() + 1) + pushes.ranks
        index = np.argsort(place)
        pushes, order = pushes.take(index), order[index]
    rows = pushes.rows
    places = LazyPlaces(lambda: caused_places(table, rows, order, pushes.ranks))
    origins = table.origin().take(rows)
    return EventBatch(table=EventTable(table.lo[rows], table.hi[rows], _fields(group, table, pushes), 0, places, origins))


def _pushes(group: MonitorGroup, running: Sequence[Column], tables: Tables, made: Made) -> Pushes:
    """Each record spread out over the parts that share the column and the outputs that it stands for."""
    width = 1 + int(made.outs.max(initial=0))
    cells = made.columns * width + made.outs
    found = distinct(cells)
    spread = [_spread(group, running[cell // width], tables, cell % width) for cell in found.tolist()]
    starts = np.cumsum([0, *map(len, spread)])
    triples = np.array([triple for triples in spread for triple in triples], np.int64).reshape(-1, 3)
    at = np.searchsorted(found, cells)
    sizes = np.diff(starts)[at]
    return Pushes(np.repeat(made.rows, sizes), *triples[taken(starts[at], sizes)].T)


def _spread(group: MonitorGroup, column: Column, tables: Tables, out: int) -> list[tuple[int, int, int]]:
    """The pushes of an output of a column: monitor, number and rank."""
    emitted = next(emitted for emitted, number in tables.blocks[column.program].outs.items() if number == out)
    firsts = [(monitor, group.parts[monitor][part].first) for monitor, part in column.parts]
    return [(monitor, first + o, first + k) for monitor, first in firsts for k, o in enumerate(emitted or ())]


def _fields(group: MonitorGroup, table: EventTable, pushes: Pushes) -> dict[str, pa.Array]:
    tokens, kinds = _tokens(group, pushes)
    index = pa.array(pushes.rows)
    fields = {"type": pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int32()), pa.array(tokens, pa.string()))}
    fields.update((key, single_values(table.fields[key]).take(index)) for key in group.keys)
    names = dict.fromkeys(name for emitters in group.emitters for e in emitters for name, _ in e.expressions)
    fields.update((name, _attribute(group, table, pushes, name)) for name in names)
    return fields


def _tokens(group: MonitorGroup, pushes: Pushes) -> tuple[list[str], Numbers]:
    """The texts that there are, and the number of each push's."""
    width = 1 + int(pushes.outputs.max())
    cells = pushes.monitors * width + pushes.outputs
    found = distinct(cells)
    numbers: dict[str, int] = {}
    tokens = [group.emitters[cell // width][cell % width].token for cell in found.tolist()]
    codes = np.array([numbers.setdefault(token, len(numbers)) for token in tokens], np.int64)
    return list(numbers), codes[np.searchsorted(found, cells)]


def _attribute(group: MonitorGroup, table: EventTable, pushes: Pushes, name: str) -> pa.Array:
    """The attribute over all pushes: each push's expression over its rows, put back in order."""
    pieces, index = [], []
    width = 1 + int(pushes.outputs.max())
    cells = pushes.monitors * width + pushes.outputs
    for cell in distinct(cells).tolist():
        where = np.flatnonzero(cells == cell)
        expression = dict(group.emitters[cell // width][cell % width].expressions).get(name)
        rows = TableRows(table.take(pushes.rows[where]))
        pieces.append(evaluate(expression, rows) if expression is not None else rows.nothing())
        index.append(where)
    back = np.empty(len(cells), np.int64)
    back[np.concatenate(index)] = np.arange(len(cells))
    return concatenated(pieces).take(back).to_arrow()
