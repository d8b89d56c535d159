"""From complete combinations to detections, as columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.places import ranks_of
from coincide.detection.correlation.kernel.join import Combinations, Joiner, in_order
from coincide.detection.correlation.kernel.memory import Ragged, one_after_another, side_by_side
from coincide.detection.correlation.kernel.rows import typed
from coincide.detection.correlation.kernel.trees import Published
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column, column_of, concatenated
from coincide.model.table import EventTable, Origins

Numbers = npt.NDArray[np.int64]
Placed = Callable[[EventTable, Numbers, Numbers], EventTable]


@dataclass(frozen=True, eq=False)
class Piece:
    """One event of one group: the group's combinations in order, with their rows of the working table, a column a source; and
    those of members."""

    joiner: Joiner
    combinations: Combinations
    rows: Numbers
    members: Ragged
    event: Published

    def column(self, name: str) -> Column:
        for own, kind, tree in self.event.attributes:
            if own == name:
                return typed(self.joiner.scope(self.combinations).evaluate(tree), kind, cut=True)
        return Column(len(self.rows))

    @property
    def messages(self) -> Ragged:
        """The rows of all messages."""
        width = self.rows.shape[1]
        own = Ragged(self.rows.reshape(-1), np.full(len(self.rows), width))
        return side_by_side([own, self.members]) if len(self.members.numbers) else own


def pieces(joiner: Joiner, combinations: Combinations, members: Ragged) -> list[Piece]:
    rows = joiner.rows(combinations)
    order = in_order(rows, joiner.selection.pos)
    taken, rows, members = combinations.take(order), rows[order], members.take(order)
    return [Piece(joiner, taken, rows, members, event) for event in joiner.trees.published[joiner.selection.trigger]]


def published(found: list[list[Piece]], table: EventTable, placed: Placed) -> EventBatch:
    """Detections by place. `found` are the pieces group by group; `placed` gives them the places of what the rows of the table
    lead to, by row and rank."""
    flat = [piece for group in found for piece in group if len(piece.rows)]
    if not flat:
        return EMPTY
    newest = np.concatenate([piece.rows.max(axis=1) for piece in flat])
    order = np.lexsort((_sequence(found), newest))
    messages = one_after_another([piece.messages for piece in flat]).take(order)
    starts = np.cumsum(messages.sizes) - messages.sizes
    lo = np.minimum.reduceat(table.lo[messages.numbers], starts)
    hi = np.maximum.reduceat(table.hi[messages.numbers], starts)
    made = EventTable(lo, hi, _fields(flat, order), origins=_origins(table, messages), hidden=_hidden(flat, order))
    return EventBatch(table=placed(made, newest[order], ranks_of(newest[order])))


def _hidden(flat: list[Piece], order: Numbers) -> npt.NDArray[np.bool_] | None:
    if not any(piece.event.hidden for piece in flat):
        return None
    return np.repeat([piece.event.hidden for piece in flat], [len(piece.rows) for piece in flat])[order]


def _sequence(found: list[list[Piece]]) -> Numbers:
    """Numbers that order the detections of one cause: by group, by combination, by event."""
    numbers, first = [], 0
    for group in found:
        for number, piece in enumerate(group):
            if len(piece.rows):
                numbers.append(first + np.arange(len(piece.rows)) * len(group) + number)
        first += len(group) * max((len(piece.rows) for piece in group), default=0)
    return np.concatenate(numbers)


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


def _origins(table: EventTable, messages: Ragged) -> Origins:
    """The primitive events under all messages of each detection, in total order, without repeats."""
    owners = np.repeat(np.arange(len(messages.sizes)), messages.sizes)
    order = np.lexsort((messages.numbers, owners))
    rows, owners = messages.numbers[order], owners[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (rows[1:] != rows[:-1]) | (owners[1:] != owners[:-1])
    rows, owners = rows[first], owners[first]
    offsets = np.searchsorted(owners, np.arange(len(messages.sizes) + 1))
    if _are_plain(table):
        taken = table.origin().take(rows)
        return Origins(taken.lo, taken.hi, taken.ids, offsets if taken.offsets is None else taken.offsets[offsets])
    keys = table.origin().take(rows).keys()
    united = [sorted({key for some in keys[a:b] for key in some}) for a, b in itertools.pairwise(offsets.tolist())]
    flat = [key for some in united for key in some]
    hi, lo = (np.array([key[end] for key in flat], np.int64) for end in (0, 1))
    ids = pa.array([key[4] for key in flat], pa.string())
    return Origins(lo, hi, ids, np.concatenate(([0], np.cumsum([len(some) for some in united]))))


def _are_plain(table: EventTable) -> bool:
    """External events, no two of them with one origin, and time events: these stand in total order, each its own origin."""
    origins = table.origin()
    if (table.generation > 0).any() or (origins.offsets is not None and (np.diff(origins.offsets) > 1).any()):
        return False
    same = np.flatnonzero((origins.lo[1:] == origins.lo[:-1]) & (origins.hi[1:] == origins.hi[:-1]))
    ids = origins.ids.cast(pa.string())
    return not pc.any(pc.equal(ids.take(pa.array(same)), ids.take(pa.array(same + 1)))).as_py()
