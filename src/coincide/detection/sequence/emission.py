"""From what the loop recorded to detections, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.columns.places import caused_places
from coincide.detection.keys import Key, key_value
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.ways import Ways, traces
from coincide.lang.eql.definition import HIDDEN
from coincide.model.batch import EventBatch
from coincide.model.column import column_of
from coincide.model.event import Place, caused
from coincide.model.table import EventTable, LazyPlaces

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Made:
    """Detections that rows have made, in order: the row, the rank of the key in it, the slot of the key, the events."""

    causes: Numbers
    ranks: Numbers
    slots: Numbers
    ways: Ways


@dataclass(frozen=True, eq=False)
class Fired:
    """Detections that timers have made: where these fire and when they are due."""

    places: Sequence[Place]
    due: Numbers
    slots: Numbers
    ways: Ways


class Emission:
    """Of one query. `chunks` hold the events by number, the batch at hand last; `keys` are those of
    some slots."""

    def __init__(self, program: Program, chunks: Sequence[EventTable], keys: Callable[[Numbers], Sequence[Key]]) -> None:
        self.program = program
        self.chunks = chunks
        self.keys = keys

    def of_rows(self, made: Made) -> EventBatch:
        table, order = self.chunks[-1], np.full(len(made.causes), self.program.order)
        places = LazyPlaces(lambda: caused_places(table, made.causes, order, made.ranks))
        return EventBatch(table=self._table(made.ways, made.slots, None, places, None))

    def of_timers(self, fired: Fired) -> EventBatch:
        """By place."""
        places = [caused(place, self.program.order, 0) for place in fired.places]
        order = np.array(sorted(range(len(places)), key=places.__getitem__), np.int64)
        foreign = tuple(places[n] for n in order.tolist())
        matrix = np.full((len(foreign), 3), -1, np.int64)
        matrix[:, 0], matrix[:, 2] = [place[0] for place in foreign], [place[3] for place in foreign]
        return EventBatch(table=self._table(fired.ways.take(order), fired.slots[order], fired.due[order], matrix, foreign))

    def _table(
        self,
        ways: Ways,
        slots: Numbers,
        due: Numbers | None,
        places: Numbers | LazyPlaces,
        foreign: tuple[Place, ...] | None,
    ) -> EventTable:
        of = traces(self.chunks, ways, self.program.fields)
        kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(slots), np.int32)), pa.array([self.program.query.name]))
        fields = {"type": kind, **of.shown, **self._keys(slots)}
        return EventTable(of.lo, of.hi if due is None else due, fields, 0, places, of.origins, foreign)

    def _keys(self, slots: Numbers) -> dict[str, pa.Array]:
        distinct, index = np.unique(slots, return_inverse=True)
        keys = self.keys(distinct)
        return {
            name: column_of([key_value(key[part]) for key in keys]).take(index).to_arrow()
            for part, name in enumerate(self.program.key_names)
            if name not in HIDDEN
        }
