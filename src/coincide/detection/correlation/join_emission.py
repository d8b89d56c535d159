"""From complete combinations to detections, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.places import caused_places, ranks_of
from coincide.detection.correlation.join import Combinations, Joiner, in_order
from coincide.detection.correlation.join_rows import typed
from coincide.detection.correlation.join_trees import Published
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column, column_of, concatenated
from coincide.model.table import EventTable, LazyPlaces, Origins

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Piece:
    """One event of one group: the group's combinations in order, with their rows of the working table, a column a source."""

    joiner: Joiner
    combinations: Combinations
    rows: Numbers
    event: Published

    def column(self, name: str) -> Column:
        for own, kind, tree in self.event.attributes:
            if own == name:
                return typed(self.joiner.scope(self.combinations).evaluate(tree), kind, cut=True)
        return Column(len(self.rows))


def pieces(joiner: Joiner, combinations: Combinations) -> list[Piece]:
    sources = joiner.selection.pos
    rows = np.stack([joiner.buffers[s].messages.rows[combinations.at[s]] for s in sources], axis=1)
    order = in_order(rows, sources)
    taken, rows = combinations.take(order), rows[order]
    return [Piece(joiner, taken, rows, event) for event in joiner.trees.published[joiner.selection.trigger]]


def published(found: list[list[Piece]], definition: int, table: EventTable, batch: EventTable, causes: Numbers) -> EventBatch:
    """Detections by place. `found` are the pieces group by group; `table` has the kept rows and then the batch's; `causes`
    tells of each of its rows which row of the batch it is."""
    flat = [piece for group in found for piece in group if len(piece.rows)]
    if not flat:
        return EMPTY
    newest = np.concatenate([piece.rows.max(axis=1) for piece in flat])
    order = np.lexsort((_sequence(found), newest))
    cause = causes[newest[order]]
    rows = _padded([piece.rows for piece in flat])[order]
    lo = np.where(rows < 0, np.iinfo(np.int64).max, table.lo[rows]).min(axis=1)
    hi = np.where(rows < 0, np.iinfo(np.int64).min, table.hi[rows]).max(axis=1)
    ranks, definitions = ranks_of(cause), np.full(len(cause), definition)
    places = LazyPlaces(lambda: caused_places(batch, cause, definitions, ranks))
    return EventBatch(table=EventTable(lo, hi, _fields(flat, order), 0, places, _origins(table, rows)))


def _sequence(found: list[list[Piece]]) -> Numbers:
    """Numbers that order the detections of one cause: by group, by combination, by event."""
    numbers, first = [], 0
    for group in found:
        for number, piece in enumerate(group):
            if len(piece.rows):
                numbers.append(first + np.arange(len(piece.rows)) * len(group) + number)
        first += len(group) * max((len(piece.rows) for piece in group), default=0)
    return np.concatenate(numbers)


def _padded(rows: list[Numbers]) -> Numbers:
    """One under another, filled up with -1."""
    width = max(r.shape[1] for r in rows)
    return np.concatenate([np.pad(r, ((0, 0), (0, width - r.shape[1])), constant_values=-1) for r in rows])


def _fields(flat: list[Piece], order: Numbers) -> dict[str, pa.Array]:
    sizes = [len(piece.rows) for piece in flat]
    classes = list(dict.fromkeys(piece.event.message_class for piece in flat))
    kinds = np.repeat([classes.index(piece.event.message_class) for piece in flat], sizes)[order]
    fields = {"type": pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int32()), pa.array(classes, pa.string()))}
    if any(piece.event.source is not None for piece in flat):
        sources = [column_of([piece.event.source] * size) for piece, size in zip(flat, sizes, strict=True)]
        fields["source"] = concatenated(sources).take(order).to_arrow()
    for name in dict.fromkeys(name for piece in flat for name, _, _ in piece.event.attributes):
        fields[name] = concatenated([piece.column(name) for piece in flat]).take(order).to_arrow()
    return fields


def _origins(table: EventTable, rows: Numbers) -> Origins:
    """The primitive events under all messages of each detection, in total order, without repeats."""
    rows = np.sort(rows, axis=1)
    there = rows >= 0
    offsets = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
    if _are_plain(table):
        taken = table.origin().take(rows[there])
        return Origins(taken.lo, taken.hi, taken.ids, offsets)
    keys = table.origin().keys()
    united = [sorted({key for row in some if row >= 0 for key in keys[row]}) for some in rows.tolist()]
    flat = [key for some in united for key in some]
    hi, lo = (np.array([key[end] for key in flat], np.int64) for end in (0, 1))
    ids = pa.array([key[4] for key in flat], pa.string())
    return Origins(lo, hi, ids, np.concatenate(([0], np.cumsum([len(some) for some in united]))))


def _are_plain(table: EventTable) -> bool:
    """External events only, no two of them with one origin: then they stand in total order, each its own origin."""
    origins = table.origin()
    if (table.generation > 0).any() or len(origins.lo) != len(table):
        return False
    same = np.flatnonzero((origins.lo[1:] == origins.lo[:-1]) & (origins.hi[1:] == origins.hi[:-1]))
    ids = origins.ids.cast(pa.string())
    return not pc.any(pc.equal(ids.take(pa.array(same)), ids.take(pa.array(same + 1)))).as_py()
