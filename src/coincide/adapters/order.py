"""Total order: (hi, lo, id), ids that are whole numbers first, as numbers, the others by code point.

Records that are equal in all of these keep the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING

from coincide.model.batch import EventBatch

if TYPE_CHECKING:
    from coincide.adapters.outlook import Outlook
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


def in_total_order(
    batches: Iterable[EventBatch], outlook: Outlook | None = None, *, memory_rows: int = MEMORY_ROWS, target: int = TARGET
) -> Iterator[EventBatch]:
    """All events, in total order over all batches given out, of about `target` rows each.

    Nothing can be given out before all was read, since the last record may be the first in time; unless an outlook tells how
    early what is still to come can be. Then no more waits than twice as many as may have to stand behind that, and `target` rows.
    Up to `memory_rows` of usual size are sorted in memory; beyond that, sorted runs go to temporary files and are merged."""
    if outlook is None:
        yield from _sorted(batches, memory_rows, target)
        return
    unread = iter(batches)
    waiting: list[EventBatch] = []
    rows = 0
    for batch in unread:
        waiting.append(batch)
        rows += weight(batch)
        if rows > target and (freed := _freed(waiting, outlook.bound, target)) is not None:
            given_out, waiting = freed
            yield from given_out
            rows = sum(map(weight, waiting))
        if rows > memory_rows:
            break
    yield from _sorted(chain(waiting, unread), memory_rows, target)


def _freed(waiting: list[EventBatch], bound: float, target: int) -> tuple[Iterator[EventBatch], list[EventBatch]] | None:
    """Events before the bound, and what has to wait on; None: so many would have to that it does not pay to look."""
    if bound == -inf:
        return None
    from coincide.adapters.tableorder import freed, pieces

    if (parts := freed([batch.table for batch in waiting if len(batch)], bound)) is None:
        return None
    given_out = (EventBatch(table=piece) for table in parts[0] for piece in pieces(table, target))
    return given_out, [EventBatch(table=table) for table in parts[1]]


def _sorted(batches: Iterable[EventBatch], memory_rows: int, target: int) -> Iterator[EventBatch]:
    """When all are read."""
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
