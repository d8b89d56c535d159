"""Batches of events: one content, two faces.

`events` are objects, for interpreters and small inputs (which then never import NumPy or Arrow); `table` are columns,
for kernels. Each face is made from the other when it is first asked for. Rows stand in the order of processing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from coincide.model.event import Event, record

if TYPE_CHECKING:
    from coincide.model.table import EventTable


class EventBatch:
    """Rows in the order of processing."""

    __slots__ = ("_events", "_table")

    def __init__(self, events: Sequence[Event] | None = None, table: EventTable | None = None) -> None:
        self._events = events
        self._table = table

    @property
    def events(self) -> Sequence[Event]:
        if self._events is None:
            assert self._table is not None
            self._events = self._table.events()
        return self._events

    @property
    def table(self) -> EventTable:
        if self._table is None:
            from coincide.model.table import table_of

            assert self._events is not None
            self._table = table_of(self._events)
        return self._table

    @property
    def has_table(self) -> bool:
        return self._table is not None

    def __len__(self) -> int:
        return len(self._events) if self._events is not None else len(self.table)

    def records(self) -> list[dict[str, Any]]:
        """The rows as records of JSON Lines."""
        return [record(event) for event in self.events]

    def of_types(self, types: frozenset[str]) -> EventBatch:
        """The rows whose type is one of these."""
        if self._table is not None and self._events is None:
            return EventBatch(table=self._table.of_types(types))
        return EventBatch([e for e in self.events if e.type in types])

    def numbered(self, first: int, clock: int | None = None) -> EventBatch:
        """External events in total order (or, at a clock of arrival, as they came), numbered in that order from `first`."""
        if self._table is not None and clock is None:
            return EventBatch(table=self._table.numbered(first))
        return EventBatch([e.placed(first + i, clock) for i, e in enumerate(self.events)])


EMPTY = EventBatch(())


def merged(batches: Iterable[EventBatch]) -> EventBatch:
    """Several batches as one, ordered by place. A single one passes as it is."""
    filled = [b for b in batches if len(b)]
    if not filled:
        return EMPTY
    if len(filled) == 1:
        return filled[0]
    if all(b.has_table and b.table.sortable for b in filled):
        from coincide.model.table import merged_tables

        return EventBatch(table=merged_tables([b.table for b in filled]))
    return EventBatch(sorted((e for b in filled for e in b.events), key=lambda e: e.place))
