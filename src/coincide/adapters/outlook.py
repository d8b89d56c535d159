"""What is known of the part of an input that has not been read yet: how early its events can be.

With that, events can be given out in total order before all of them are read (adapters/order.py)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import itemgetter

from coincide.adapters.report import ReadReport
from coincide.errors import Diagnostic, InputError
from coincide.expr.quantities import duration_text
from coincide.model.batch import EMPTY, EventBatch

Floors = Sequence[tuple[int, float]]
"""Parts of a file one after another: at which record each ends, and the earliest time in it and the parts after it."""


@dataclass(eq=False)
class Opened:
    """A file that is read. `mark` is the time of its latest event so far, `floor` of the earliest that it still has, as far as is
    known. Is it known how many records it has, and that their ids are their positions, they are `numbered`."""

    name: str
    floors: Floors = ()
    numbered: bool = False
    mark: float = -inf
    floor: float = -inf

    def __post_init__(self) -> None:
        self.has_read(0)

    def has_read(self, records: int) -> None:
        part = bisect_right(self.floors, records, key=itemgetter(0))
        self.floor = self.floors[part][1] if part < len(self.floors) else inf if self.floors else -inf

    def bound(self, delay: int | None) -> float:
        return self.floor if delay is None else max(self.floor, self.mark - delay)


class Outlook:
    """Of an input of one or several files. Times are microseconds.

    With a `delay`, events of a file come at most so much later than later ones of that file; what comes later still is *late*:
    left out and counted, as in a live run. Without, they may stand in any order, and only what files tell of themselves helps."""

    def __init__(self, delay: int | None = None) -> None:
        self.delay = delay
        self.keep: Callable[[EventBatch], object] = lambda late: None  # what becomes of late ones
        self.late = 0
        self.sufficient = 0  # the delay with which nothing had been late
        self._file = Opened("")  # the one that the last batch is of
        self._open = [self._file]
        self._after = inf  # nothing of files that are not open yet is before it
        self._promised = -inf  # the latest bound

    def begins(self, files: Iterable[Opened], after: float) -> None:
        """These files are read now, side by side; nothing of those after them is before this time."""
        self._open, self._after = list(files), after

    def watched(self, file: Opened, batches: Iterable[EventBatch], report: ReadReport) -> Iterator[EventBatch]:
        """The batches of an open file, while it is read."""
        before = report.read
        for batch in batches:
            self._file = file
            file.has_read(report.read - before)
            yield batch

    @property
    def bound(self) -> float:
        """No event that is still to come is before it."""
        return min(self._after, *(file.bound(self.delay) for file in self._open))

    def timely(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        """Batches as they are read, without what is late in them."""
        for batch in filter(len, batches):
            timely = batch if self.delay is None else self._in_time(batch, self.delay)
            if self._promised > -inf and len(timely) and _earliest(timely) < self._promised:
                raise InputError(
                    f"'{self._file.name}' has times that are earlier than its metadata, or its first record, have told"
                )
            self._promised = max(self._promised, self.bound)
            yield timely

    def _in_time(self, batch: EventBatch, delay: int) -> EventBatch:
        file = self._file
        timely, late, behind = (_parted_table if batch.has_table else _parted)(batch, file.mark, delay)
        file.mark = max(file.mark, int(batch.table.hi.max()) if batch.has_table else max(event.hi for event in batch.events))
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


def late_warnings(late: int, sufficient: int, where: str = "") -> list[Diagnostic]:
    """What is to be said in the end of events that came too late; `sufficient` is the delay with which none had."""
    if not late:
        return []
    came = "1 event" if late == 1 else f"{late:,} events"
    hint = f"a delay of {duration_text(sufficient)} would have sufficed"
    return [Diagnostic(f"{came} came too late: left out{where}", severity="warning", hint=hint)]
