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
from coincide.detection.columns.tables import distinct
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
    spread: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for number, column in enumerate(running):
        for emitted, out in tables.blocks[column.program].outs.items():
            firsts = [(monitor, group.parts[monitor][part].first) for monitor, part in column.parts]
            spread[number, out] = [(m, first + o, first + k) for m, first in firsts for k, o in enumerate(emitted or ())]
    width = 1 + max((out for _, out in spread), default=0)
    starts = np.zeros(len(running) * width + 1, np.int64)
    for (number, out), pairs in spread.items():
        starts[number * width + out + 1] = len(pairs)
    starts = np.cumsum(starts)
    flat = [triple for key in sorted(spread) for triple in spread[key]]
    triples = np.array(flat, np.int64).reshape(-1, 3)
    cells = made.columns * width + made.outs
    sizes = starts[cells + 1] - starts[cells]
    if (sizes == 1).all():
        return Pushes(made.rows, *triples[starts[cells]].T)
    index = np.repeat(starts[cells] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    return Pushes(np.repeat(made.rows, sizes), *triples[index].T)


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
