"""Batches of events: one content, two faces.

`events` are objects, for interpreters and small inputs (which then never import NumPy or Arrow); `table` are columns,
for kernels. Each face is made from the other when it is first asked for. Rows stand in the order of processing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from coincide.model.event import Event, record

if TYPE_CHECKING:
    from coincide.model.table import EventTable, Instants


class EventBatch:
    """Rows in the order of processing."""

    __slots__ = ("_events", "_parts", "_table")

    def __init__(
        self, events: Sequence[Event] | None = None, table: EventTable | None = None, parts: Sequence[EventBatch] = ()
    ) -> None:
        self._events = events
        self._table = table
        self._parts = tuple(parts)

    @property
    def events(self) -> Sequence[Event]:
        if self._events is None:
            self._events = self.table.events() if self.has_table else self._sorted_events()
        return self._events

    @property
    def table(self) -> EventTable:
        if self._table is None:
            from coincide.model.table import merged_tables, table_of

            columns = self._events is None and self.has_table
            self._table = merged_tables([p.table for p in self._parts]) if columns else table_of(self.events)
        return self._table

    @property
    def has_table(self) -> bool:
        """Is it held as columns that can be ordered by place?"""
        merge = self._table is None and self._events is None and bool(self._parts)
        return self._table is not None or (merge and all(p.has_table and p.table.sortable for p in self._parts))

    @property
    def has_events(self) -> bool:
        """Is it held as objects?"""
        return self._events is not None

    @property
    def parts(self) -> tuple[EventBatch, ...]:
        """The batches that this one is merged of, itself if it is not a merger: a reader of few rows picks them first."""
        return self._parts or (self,)

    def _sorted_events(self) -> list[Event]:
        return sorted((e for p in self._parts for e in p.events), key=lambda e: e.place)

    def __len__(self) -> int:
        if self._events is None and self._table is None:
            return sum(map(len, self._parts))
        return len(self._events) if self._events is not None else len(self.table)

    def records(self) -> list[dict[str, Any]]:
        """The rows as records of JSON Lines."""
        return [record(event) for event in self.events]

    def of_types(self, types: frozenset[str]) -> EventBatch:
        """The rows whose type is one of these."""
        if self.has_table and self._events is None:
            return EventBatch(table=self.table.of_types(types))
        return EventBatch([e for e in self.events if e.type in types])

    def without_type(self, kind: str) -> EventBatch:
        """The rows of all other types."""
        if self._table is not None and self._events is None:
            texts = self._table.column("type").texts
            return self.of_types(frozenset(texts) - {kind}) if kind in texts else self
        others = [e for e in self.events if e.type != kind]
        return self if len(others) == len(self.events) else EventBatch(others)

    def split(self, at: int) -> tuple[EventBatch, EventBatch]:
        """The first rows, so many, and the others."""
        return self.rows(0, at), self.rows(at, len(self))

    def rows(self, first: int, end: int) -> EventBatch:
        """Those from one number up to another, as far as there are so many."""
        return EventBatch(table=self.table.rows(first, end)) if self.has_table else EventBatch(self.events[first:end])

    def given_out(self) -> EventBatch:
        """Without detections that only other detectors see (internal ones of CDL and Amit)."""
        if self._events is not None:
            shown = [e for e in self._events if not e.hidden]
            return self if len(shown) == len(self._events) else EventBatch(shown)
        if self._table is None:
            return merged([part.given_out() for part in self._parts])
        hidden = self._table.hidden
        return self if hidden is None else EventBatch(table=self._table.take((~hidden).nonzero()[0]))

    def numbered(self, first: int, clock: int | Instants | None = None) -> EventBatch:
        """External events in total order (or, at a clock of arrival or at one for each row, as they came), numbered in that order
        from `first`."""
        if clock is not None and not isinstance(clock, int):
            return EventBatch(table=self.table.numbered(first, clock))
        if self.has_table and clock is None:
            return EventBatch(table=self.table.numbered(first))
        return EventBatch([e.placed(first + i, clock) for i, e in enumerate(self.events)])


EMPTY = EventBatch(())


def merged(batches: Iterable[EventBatch]) -> EventBatch:
    """Several batches as one, ordered by place; the work is done when somebody reads it. A single one passes as it is."""
    filled = [b for b in batches if len(b)]
    if not filled:
        return EMPTY
    return filled[0] if len(filled) == 1 else EventBatch(parts=filled)
