"""The state of one bucket, apart from how Spark stores it: a reorder buffer, and pages of detectors' state.

An event waits in the buffer until the clock (the latest hi that any task has seen, less the delay), or every source that is
waited for, has passed it; then it is consumed, in total order. What is older than what has been consumed is late and left out;
what is too far in the future is set aside (ahead.py). When nothing has come for a while, the clock may follow the wall.
The buffer is a list of *segments*, each written once, when its events came, and read when the clock reaches it. Keys are spread
over *pages* (pages.py); only the pages of the keys that have events, or timers that are due, are read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from coincide.detection.snapshots import check_numbers, opened, reading_state, sealed
from coincide.engines.ahead import Run
from coincide.engines.spark.division import Division
from coincide.engines.spark.marks import REACHED, Told, advance, broken, merged_marks
from coincide.engines.spark.packing import COUNTED, alike, counted, fitting, from_bytes, recovered, stored
from coincide.engines.spark.pages import CHECKPOINT, Page, Pages, PageStore, Portion, Step, Stepping, Work
from coincide.engines.spark.rejects import SHOWN
from coincide.engines.spark.timing import Timing
from coincide.errors import RunError
from coincide.model.batch import EMPTY
from coincide.model.bounds import Count, Word

VERSION = 1
NEVER = -(2**63)
FOREVER = 2**63 - 1
"""As the end of input: go on until nothing but recurring timers is pending."""
OPEN = -(2**63)
"""In place of the end of input: all events have come, but nothing ends."""


class Segment(msgspec.Struct, array_like=True):
    """Events that wait. Those with hi below what has been released are gone already."""

    number: Count
    first: Word
    last: Word
    count: Count = 0  # events that wait in it
    own: Count | None = None  # of these, those that no other group counts; None: all

    @classmethod
    def of(cls, number: int, table: pa.Table) -> Segment:
        hi = table.column("hi").to_numpy()
        return cls(number, int(hi.min()), int(hi.max()), len(table), counted(table))


class Meta(msgspec.Struct, array_like=True):
    """What a bucket knows of itself. `released`: all events below it are consumed or late."""

    division: Division
    version: int = VERSION
    clock: Word = NEVER
    released: Word = NEVER
    start: Word | None = None
    next: Count = 0
    segments: list[Segment] = []
    pages: dict[Count, Page] = {}
    rules: list[str] = []
    due: dict[Count, Word] = {}  # page → when its next timer is due
    marks: dict[str, Word] = {}
    mark: Word = NEVER  # the clock when something came last
    came: Word | None = None  # the wall clock then
    heard: dict[str, Word] = {}  # the wall clock when a source that is waited for said something last
    wakes: Word | None = None  # the timer of Spark's that is set, in milliseconds
    fed: dict[str, Word] = {}  # how far buckets of earlier stages have come


def read_meta(data: bytes) -> Meta:
    """Raises InputError or RunError."""
    with reading_state(CHECKPOINT):
        meta = msgspec.msgpack.decode(opened(data), type=Meta)
        check_numbers([segment.number for segment in meta.segments], meta.next)
        for page in meta.pages.values():
            check_numbers(page.log, page.next)
    if meta.version != VERSION:
        raise RunError(f"the checkpoint is of version {meta.version}; this release reads version {VERSION}")
    return meta


class Store(PageStore, Protocol):
    """Where a bucket keeps its parts."""

    def meta(self) -> bytes | None: ...
    def put_meta(self, data: bytes) -> None: ...
    def segment(self, number: int) -> bytes: ...
    def put_segment(self, number: int, data: bytes) -> None: ...
    def drop_segment(self, number: int) -> None: ...
    def wake(self, before: int | None, at: int | None) -> None:
        """Have time pass when the wall clock (milliseconds) comes there, instead of when it was to be before."""


@dataclass(frozen=True)
class Arrived:
    """What the tasks of a micro-batch have sent to a bucket; nothing, if it is time alone that has passed."""

    runs: Sequence[Run] = ()  # the times of all events, also of other buckets'
    blobs: Sequence[bytes] = ()
    closing: int | None = None  # the end of input: let time pass until then
    marks: Sequence[Sequence[Told]] = ()  # how far sources have come, where they are waited for
    wall: int | None = None  # what the wall clock says, if it matters
    fed: Mapping[str, int] = field(default_factory=dict)  # how far buckets of earlier stages have come
    firsts: Sequence[int] = ()  # when the first events were, also of other buckets'; heartbeats are none


@dataclass
class Outcome:
    made: list[Any] = field(default_factory=list)  # batches of what the work makes
    late: int = 0
    late_events: Any = EMPTY  # if they are wanted
    consumed: int = 0
    waiting: int = 0
    ahead: int = 0
    set_aside: Any = None  # rows that are too far in the future, if they are wanted
    reached: int = NEVER  # nothing more is made before this


class Bucket:
    """Takes a bucket through one micro-batch."""

    def __init__(
        self,
        task: Work,
        timing: Timing,
        timed: bool,
        division: Division,
        store: Store,
        sources: Sequence[str] = (),
        feeders: Sequence[str] = (),
    ) -> None:
        self.task = task
        self.timing = timing
        self.sources = sources
        self.feeders = feeders
        self.timed = timed
        self.store = store
        self.meta = self._meta(division)
        self.pages = Pages(task, store, self.meta.pages, self.meta.rules, division.key)
        self.outcome = Outcome()

    def _meta(self, division: Division) -> Meta:
        data = self.store.meta()
        if data is None:
            return Meta(division)
        meta = read_meta(data)
        if meta.division != division:
            raise RunError(f"the checkpoint divides its state otherwise ({meta.division}) than this query does ({division})")
        return meta

    def advance(self, arrived: Arrived) -> Outcome:
        meta = self.meta
        before = dict(meta.marks)
        limit = self._limit(arrived)
        meta.fed = {name: arrived.fed.get(name, meta.fed.get(name, NEVER)) for name in self.feeders}
        self._pass_time(arrived, [run for run in arrived.runs if run[1] <= limit], limit)
        bound = FOREVER if arrived.closing is not None else max(meta.released, self._passed(arrived.wall))
        released = self._released(arrived, bound, before, limit)
        meta.released = bound
        self.outcome.made = [*self._run(released, bound, arrived.closing)]
        self._wake_again(arrived.wall)
        self.outcome.waiting = sum(segment.count if segment.own is None else segment.own for segment in meta.segments)
        self.outcome.reached = self._reached()
        self.store.put_meta(sealed(msgspec.msgpack.encode(meta)))
        return self.outcome

    # The clock.

    def _limit(self, arrived: Arrived) -> int:
        """What is later than this is set aside. All buckets find the same."""
        guard = self.timing.guard
        if guard is None:
            return FOREVER
        clock = None if self.meta.clock == NEVER else self.meta.clock
        return guard.limit(guard.joined(arrived.runs, arrived.wall), arrived.wall, clock)

    def _pass_time(self, arrived: Arrived, runs: Sequence[Run], limit: int) -> None:
        meta, wall = self.meta, arrived.wall
        if runs:
            meta.clock = max(meta.clock, *(run[1] for run in runs))
            self._begin([first for first in arrived.firsts if first <= limit])
            meta.mark, meta.came = meta.clock, wall
        elif wall is not None and meta.came is not None and self._sleeps(meta.came, wall):
            meta.clock = max(meta.clock, meta.mark + wall - meta.came)
        told = merged_marks(arrived.marks, limit)
        advance(meta.marks, told)
        if wall is not None:
            meta.heard.update(dict.fromkeys(told, wall))

    def _begin(self, firsts: Sequence[int]) -> None:
        start = self.meta.start
        if firsts and (start is None or self.meta.released <= start):
            self.meta.start = min(firsts) if start is None else min(start, *firsts)

    def _sleeps(self, heard: int | None, wall: int | None) -> bool:
        """Has nothing been heard for so long that it is not waited for?"""
        return self.timing.idle is not None and heard is not None and wall is not None and wall - heard >= self.timing.idle

    def _passed(self, wall: int | None) -> int:
        """Nothing below this is waited for, neither from outside nor from earlier stages."""
        return min([self._clocked(wall), *self.meta.fed.values()])

    def _reached(self) -> int:
        """If nothing comes, nothing is made before what waits next, however long it takes to have its turn."""
        meta = self.meta
        if self.timing.idle is None:
            return meta.released
        return max(meta.released, min([*self._waiting(), *meta.fed.values()], default=FOREVER))

    def _waiting(self) -> list[int]:
        """When timers are due, or events that wait for the clock."""
        return [*self.meta.due.values(), *(segment.first for segment in self.meta.segments)]

    def _clocked(self, wall: int | None) -> int:
        """The clock of events that come from outside."""
        if self.sources:
            awake = [source for source in self.sources if not self._sleeps(self._heard(source), wall)]
            return min((self.meta.marks.get(source, NEVER) for source in awake), default=self.meta.clock)
        return self.meta.clock - self.timing.delay

    def _heard(self, source: str) -> int | None:
        """One that was never heard is waited for from when it is first asked."""
        if self.meta.came is not None:
            return self.meta.heard.setdefault(source, self.meta.came)
        return self.meta.heard.get(source)

    def _wake_again(self, wall: int | None) -> None:
        """If nothing comes, time is to pass when the next item has waited long enough."""
        at = None if (instant := self._wakes_at(wall)) is None else -(-instant // 1000)
        if self.meta.wakes is not None and wall is not None and self.meta.wakes * 1000 <= wall:
            self.meta.wakes = None  # it has gone off
        if at != self.meta.wakes:
            self.store.wake(self.meta.wakes, at)
            self.meta.wakes = at

    def _wakes_at(self, wall: int | None) -> int | None:
        """What waits for a source may go on when that has been silent for long; else when the wall clock has come there."""
        meta, idle = self.meta, self.timing.idle
        waiting = self._waiting()
        if idle is None or meta.came is None or not waiting:
            return None
        awake = [heard for source in self.sources if not self._sleeps(heard := meta.heard.get(source, meta.came), wall)]
        if awake:
            return min(awake) + idle
        clock = min(waiting) + 1 + (0 if self.sources else self.timing.delay)
        return max(meta.came + idle, meta.came + clock - meta.mark)

    # The buffer.

    def _released(self, arrived: Arrived, bound: int, marks: Mapping[str, int], limit: int) -> pa.Table | None:
        tables = [*self._old(bound)]
        if arrived.blobs:
            new = self._timely(pa.concat_tables([from_bytes(blob) for blob in arrived.blobs], promote_options="default"), limit)
            late = new.column("hi").to_numpy() < self.meta.released
            if self.sources:
                late |= broken(new, marks)
                new = new.drop_columns([REACHED])
            if late.any():
                self._note_late(new.filter(pa.array(late)))
                new = new.filter(pa.array(~late))
            hi = new.column("hi").to_numpy()
            tables.append(_between(new, hi, self.meta.released, bound))
            self._keep(_between(new, hi, bound, FOREVER))
        with reading_state(CHECKPOINT):  # what comes now is as the query has it
            table = pa.concat_tables(alike(tables), promote_options="default") if tables else None
        return table if table is not None and len(table) else None

    def _timely(self, new: pa.Table, limit: int) -> pa.Table:
        """What is not set aside."""
        ahead = new.column("hi").to_numpy() > limit
        self.outcome.ahead = counted(new.filter(pa.array(ahead))) if ahead.any() else 0
        if SHOWN in new.column_names:
            self.outcome.set_aside = new.column(SHOWN).filter(pa.array(ahead)).drop_null()
            new = new.drop_columns([SHOWN])
        return new.filter(pa.array(~ahead)) if ahead.any() else new

    def _note_late(self, late: pa.Table) -> None:
        self.outcome.late = len(late)
        if self.task.shows_late:
            self.outcome.late_events = self.task.batch(_uncounted(late))

    def _old(self, bound: int) -> Iterator[pa.Table]:
        """Events of segments that the clock has reached."""
        for segment in list(self.meta.segments):
            if segment.first < bound:
                with reading_state(CHECKPOINT):
                    table = recovered(self.store.segment(segment.number))
                    self.task.check_waiting(table)
                    table = fitting(table, "hi", "page")
                yield _between(table, table.column("hi").to_numpy(), self.meta.released, bound)
                if segment.last < bound:
                    self.store.drop_segment(segment.number)
                    self.meta.segments.remove(segment)
                else:
                    rest = _between(table, table.column("hi").to_numpy(), bound, FOREVER)
                    segment.first, segment.count, segment.own = bound, len(rest), counted(rest)

    def _keep(self, table: pa.Table) -> None:
        if len(table):
            self.store.put_segment(self.meta.next, stored(table))
            self.meta.segments.append(Segment.of(self.meta.next, table))
            self.meta.next += 1

    # The pages.

    def _run(self, released: pa.Table | None, bound: int, closing: int | None) -> Iterator[Any]:
        tables = {} if released is None else dict(self._by_page(_uncounted(released)))
        self.outcome.consumed = 0 if released is None else counted(released)
        due = {page for page, due in self.meta.due.items() if due < bound}
        ending = set() if closing is None else self.meta.pages.keys()  # tables end on every page
        for page in sorted(tables.keys() | due | ending):
            yield from self._run_page(page, tables.get(page), bound, closing)

    def _by_page(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Events in their order, page by page."""
        order = self.task.order(table)
        pages = table.column("page").to_numpy()
        order = np.arange(len(pages)) if order is None else order
        by_page = order[np.argsort(pages[order], kind="stable")]
        here, starts = np.unique(pages[by_page], return_index=True)
        arranged = table.drop_columns(["page"]).take(pa.array(by_page))
        for page, (start, stop) in zip(here.tolist(), pairwise([*starts.tolist(), len(pages)]), strict=True):
            yield page, arranged.slice(start, stop - start)

    def _finished(self, graph: Stepping, state: Any, closing: int) -> Any:
        if closing == OPEN:
            return graph.finish(state, None, closed=False)
        return graph.finish(state, inf if closing == FOREVER else closing)

    def _run_page(self, page: int, table: pa.Table | None, bound: int, closing: int | None) -> list[Any]:
        batch = self.task.batch(table)
        if closing is None:
            is_due = self.meta.due.get(page, bound) < bound
            portion = self.pages.load_touched(page, batch, bound if is_due else None)
            if portion is not None:
                return [self._step_touched(page, portion, table, batch, bound)]
        graph, state = self.pages.graph, self.pages.load(page)
        if self.timed:
            state.start = self.meta.start
        if closing is None:
            made = [graph.advance(state, batch, bound)]
        else:
            made = [graph.advance(state, batch)]
            state.hi = max(state.hi, self.meta.clock)
            made.append(self._finished(graph, state, closing))
        self._note_due(graph, state, page)
        self.pages.save(page, state, Step(table, bound, state.start) if closing is None else None)
        return made

    def _step_touched(self, page: int, portion: Portion, table: pa.Table | None, batch: Any, bound: int) -> Any:
        """With the keys alone that events touch, or whose timers are due."""
        graph, state = self.pages.graph, portion.state
        if self.timed:
            state.start = self.meta.start
        made = graph.advance(state, batch, bound)
        others = self.meta.due.get(page) if portion.following is None else portion.following
        dues = [due for due in (others, graph.due(state)) if self.timed and due is not None and due < FOREVER]
        if dues:
            self.meta.due[page] = min(dues)
        else:
            self.meta.due.pop(page, None)
        self.pages.save_step(page, portion, Step(table, bound, state.start))
        return made

    def _note_due(self, graph: Stepping, state: Any, page: int) -> None:
        due = graph.due(state) if self.timed else None
        if due is None:
            self.meta.due.pop(page, None)
        else:
            self.meta.due[page] = due


def _uncounted(table: pa.Table) -> pa.Table:
    """Events as rules see them."""
    return table.drop_columns([COUNTED]) if COUNTED in table.column_names else table


def _between(table: pa.Table, hi: Any, low: int, high: int) -> pa.Table:
    mask = (hi >= low) & (hi < high)
    return table if mask.all() else table.filter(pa.array(mask))
