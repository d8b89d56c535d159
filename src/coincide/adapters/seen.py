"""What was there: types and attributes of the events that went by, counted, and of what kinds the values were. Columns are
counted as columns, which costs next to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from coincide.expr.typing import KINDS
from coincide.model.batch import EventBatch
from coincide.model.event import HEARTBEAT, OWN_TYPE

if TYPE_CHECKING:
    from coincide.model.table import EventTable


class Seen:
    """Counts of events, by type and by attribute (or `source`) that they have."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.earliest: int | None = None  # hi of events, in microseconds
        self.latest: int | None = None
        self._kinds: set[tuple[str, str | type | None]] = set()

    @property
    def kinds(self) -> dict[str, str | None]:
        """Attributes with the one kind of all their values; None: they were of several, or sets and the like."""
        found: dict[str, str | None] = {}
        for name, value in self._kinds:
            kind = KINDS.get(value) if isinstance(value, type) else value
            found[name] = kind if found.get(name, kind) == kind else None
        return found

    @property
    def events(self) -> int:
        return self.types.total()

    def watch(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        """The batches as they come, each looked at when it passes."""
        for batch in batches:
            self.add(batch)
            yield batch

    def add(self, batch: EventBatch) -> None:
        if len(batch):
            self._add_times(batch)
        if batch.has_table:
            self._add_columns(batch.table)
        else:
            self.types.update(event.type for event in batch.events)
            attributes = [event.attributes for event in batch.events]
            self.attributes.update(chain.from_iterable(attributes))
            self._kinds.update(chain.from_iterable(zip(a, map(type, a.values()), strict=True) for a in attributes))
            self.attributes["source"] += sum(event.source is not None for event in batch.events)
        del self.types[HEARTBEAT]
        del self.attributes[OWN_TYPE]

    def _add_times(self, batch: EventBatch) -> None:
        if batch.has_table:
            first, last = int(batch.table.hi.min()), int(batch.table.hi.max())
        else:
            moments = [event.hi for event in batch.events]
            first, last = min(moments), max(moments)
        self.earliest = first if self.earliest is None else min(first, self.earliest)
        self.latest = last if self.latest is None else max(last, self.latest)

    def _add_columns(self, table: EventTable) -> None:
        import pyarrow.compute as pc

        from coincide.adapters.frames import kind_of

        for entry in pc.value_counts(table.fields["type"]).to_pylist():
            self.types[entry["values"]] += entry["counts"]
        for name in (*table.attributes, *({"source"} & table.fields.keys())):
            column = table.fields[name]
            if there := len(column) - column.null_count:
                self.attributes[name] += there
                self._kinds.add((name, kind_of(column.type)))
