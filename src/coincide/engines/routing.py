"""Which events of a batch concern a plan: where there are many rules, each is shown the events of its own types only."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from coincide.detection.base import DetectorPlan
from coincide.model.batch import EMPTY, EventBatch

if TYPE_CHECKING:
    from coincide.model.column import Rows

MANY = 4
"""From so many plans on, looking for a plan's rows costs less than having it pass over those of others."""
SHARE = 4
"""A plan that reads more than one row in so many gets them all."""


class Routes:
    """A batch by type."""

    def __init__(self, batch: EventBatch, plans: int) -> None:
        self._batch = batch
        self._is_worth_it = plans >= MANY and len(batch) > 1

    @cached_property
    def latest(self) -> int | None:
        """The hi of its last event, where a plan may not be shown it."""
        if not self._is_worth_it:
            return None
        events = self._batch.has_events or not self._batch.has_table
        return max(event.hi for event in self._batch.events) if events else int(self._batch.table.hi.max())

    def to(self, plan: DetectorPlan) -> EventBatch:
        types = plan.inputs.external
        if not self._is_worth_it or types is None or plan.relevant is None:  # all that comes may matter, if only by its time
            return self._batch
        if self._batch.has_events or not self._batch.has_table:
            return self._events(types)
        return self._rows(plan, types) if self._batch.table.sortable and self._batch.table.hidden is None else self._batch

    def _rows(self, plan: DetectorPlan, types: frozenset[str]) -> EventBatch:
        import numpy as np

        found = [self._by_type[kind] for kind in types if kind in self._by_type]
        size = sum(map(len, found))
        if size * SHARE > len(self._batch):
            return self._batch
        if not size:
            return EMPTY
        rows = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
        return EventBatch(table=self._batch.table.narrowed(rows, ("type", *(plan.columns or ()))))

    @cached_property
    def _by_type(self) -> dict[str, Rows]:
        return self._batch.table.column("type").by_text()

    def _events(self, types: frozenset[str]) -> EventBatch:
        found = sorted(chain.from_iterable(self._events_by_type.get(kind, ()) for kind in types))
        return EventBatch([self._batch.events[row] for row in found]) if found else EMPTY

    @cached_property
    def _events_by_type(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = defaultdict(list)
        for row, event in enumerate(self._batch.events):
            rows[event.type].append(row)
        return rows
