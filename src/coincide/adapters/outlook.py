"""What is known of the part of an input that has not been read yet: how early its events can be.

With that, events can be given out in total order before all of them are read (adapters/order.py)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from math import inf
from operator import itemgetter

from coincide.adapters.report import ReadReport
from coincide.errors import Diagnostic, InputError
from coincide.expr.quantities import duration_text
from coincide.model.batch import EMPTY, EventBatch

Floors = Sequence[tuple[int, float]]
"""Parts of a file one after another: at which record each ends, and the earliest time in it and the parts after it."""


class Outlook:
    """Of an input of one or several files. Times are microseconds.

    With a `delay`, events of a file come at most so much later than later ones of that file; what comes later still is *late*:
    left out and counted, as in a live run. Without, they may stand in any order, and only what files tell of themselves helps."""

    def __init__(self, delay: int | None = None) -> None:
        self.delay = delay
        self.keep: Callable[[EventBatch], object] = lambda late: None  # what becomes of late ones
        self.late = 0
        self.sufficient = 0  # the delay with which nothing had been late
        self.files: Sequence[tuple[Floors, float]] = ()  # and how early events of the files after each can be
        self._name = ""
        self._floor = -inf  # of what this file still has
        self._after = inf  # of the files after it
        self._mark = -inf  # the time of the latest event of this file
        self._promised = -inf  # the latest bound

    def watched(self, number: int, name: str, batches: Iterable[EventBatch], report: ReadReport) -> Iterator[EventBatch]:
        """The batches of one of the files, while it is read."""
        floors, self._after = self.files[number]
        self._name, self._floor, self._mark = name, -inf, -inf
        before = report.read
        for batch in batches:
            part = bisect_right(floors, report.read - before, key=itemgetter(0))
            self._floor = floors[part][1] if part < len(floors) else inf if floors else -inf
            yield batch

    @property
    def bound(self) -> float:
        """No event that is still to come is before it."""
        own = self._floor if self.delay is None else max(self._floor, self._mark - self.delay)
        return min(own, self._after)

    def timely(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        """Batches as they are read, without what is late in them."""
        for batch in filter(len, batches):
            timely = batch if self.delay is None else self._in_time(batch, self.delay)
            if self._promised > -inf and len(timely) and _earliest(timely) < self._promised:
                raise InputError(f"'{self._name}' has times that are earlier than its metadata, or its first record, have told")
            self._promised = max(self._promised, self.bound)
            yield timely

    def _in_time(self, batch: EventBatch, delay: int) -> EventBatch:
        timely, late, behind = (_parted_table if batch.has_table else _parted)(batch, self._mark, delay)
        self._mark = max(self._mark, int(batch.table.hi.max()) if batch.has_table else max(event.hi for event in batch.events))
        if len(late):
            self.late += len(late)
            self.sufficient = max(self.sufficient, int(behind))
            self.keep(late)
        return timely


def _earliest(batch: EventBatch) -> int:
    return int(batch.table.hi.min()) if batch.has_table else min(event.hi for event in batch.events)


Parted = tuple[EventBatch, EventBatch, float]
"""Events in time, the late ones, and by how much the latest of these is."""


def _parted(batch: EventBatch, mark: float, delay: int) -> Parted:
    events = batch.events
    before = list(accumulate((event.hi for event in events), max, initial=mark))
    late = [row for row, event in enumerate(events) if event.hi < before[row] - delay]
    if not late:
        return batch, EMPTY, 0
    timely = [event for row, event in enumerate(events) if event.hi >= before[row] - delay]
    return EventBatch(timely), EventBatch([events[row] for row in late]), max(before[row] - events[row].hi for row in late)


def _parted_table(batch: EventBatch, mark: float, delay: int) -> Parted:
    from coincide.adapters.tableorder import without_late

    timely, late, before = without_late(batch.table, None if mark == -inf else int(mark), delay)
    if not len(late):
        return batch, EMPTY, 0
    return EventBatch(table=timely), EventBatch(table=late), int((before - late.hi).max())


def late_warnings(late: int, sufficient: int, kept: str = "") -> list[Diagnostic]:
    """What is to be said in the end of events that came too late; `sufficient` is the delay with which none had."""
    if not late:
        return []
    came = "1 event" if late == 1 else f"{late:,} events"
    hint = f"a delay of {duration_text(sufficient)} would have sufficed"
    return [Diagnostic(f"{came} came too late: left out{kept}", severity="warning", hint=hint)]
