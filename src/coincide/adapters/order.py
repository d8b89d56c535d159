"""Total order: (hi, lo, id), ids that are whole numbers first, as numbers, the others by code point.

Records that are equal in all of these keep the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from coincide.model.batch import EventBatch

if TYPE_CHECKING:
    from coincide.adapters.spill import Runs

MEMORY_ROWS = 2_000_000
TARGET = 262_144
"""Rows of a batch: so many that its size tells which tier suits the whole input."""
USUAL = 128
"""Bytes of a row; a larger one counts as several."""
LOOKED_AT = 16
"""Objects of a batch by which the size of the others is judged."""

_key = attrgetter("origin")


def sort_batch(batch: EventBatch) -> EventBatch:
    """External events in total order; the same batch if they stand so already."""
    if batch.has_table:
        from coincide.adapters.tableorder import sorted_table

        table = batch.table
        arranged = sorted_table(table)
        return batch if arranged is table else EventBatch(table=arranged)
    events = batch.events
    arranged_events = sorted(events, key=_key)
    return batch if all(a is b for a, b in zip(events, arranged_events, strict=True)) else EventBatch(arranged_events)


def in_total_order(batches: Iterable[EventBatch], memory_rows: int = MEMORY_ROWS, target: int = TARGET) -> Iterator[EventBatch]:
    """All events, in total order over all batches given out, of about `target` rows each.

    Up to `memory_rows` of usual size are sorted in memory; beyond that, sorted runs go to temporary files and are merged.
    Nothing can be given out before all was read, since the last record may be the first in time."""
    held: list[EventBatch] = []
    rows = 0
    runs: Runs | None = None
    try:
        for batch in batches:
            held.append(batch)
            rows += weight(batch)
            if rows > memory_rows:
                runs = runs or _runs(memory_rows, target)
                runs.add(_arranged(held, target))
                held, rows = [], 0
        if runs is None:
            yield from _arranged(held, target)
        else:
            runs.add(_arranged(held, target))
            held = []
            yield from runs.merged()
    finally:
        if runs is not None:
            runs.close()


def weight(batch: EventBatch) -> int:
    """As how many rows of usual size it fills memory."""
    if batch.has_table:
        from coincide.model.fields import bytes_of

        return max(len(batch), bytes_of(batch.table.fields) // USUAL)
    some = batch.events[:: max(1, len(batch) // LOOKED_AT)]
    texts = sum(len(value) for event in some for value in event.attributes.values() if isinstance(value, str))
    return len(batch) + len(batch) * texts // (USUAL * max(1, len(some)))


def _runs(memory_rows: int, target: int) -> Runs:
    from coincide.adapters.spill import Runs

    return Runs(memory_rows, target)


def _arranged(batches: list[EventBatch], target: int) -> Iterator[EventBatch]:
    """What is in memory, in order. Objects stay objects where all are."""
    filled = [batch for batch in batches if len(batch)]
    if any(batch.has_table for batch in filled):
        from coincide.adapters.tableorder import arranged_tables

        yield from (EventBatch(table=table) for table in arranged_tables([batch.table for batch in filled], target))
        return
    events = sorted((event for batch in filled for event in batch.events), key=_key)
    yield from (EventBatch(events[i : i + target]) for i in range(0, len(events), target))
