"""A run on several cores: events of different keys are consumed side by side, each by a thread; compiled loops let others run
meanwhile.

Detectors that feed one another stay together. Where all of these are independent by a key, each *lane* has the events of some of
its values; what has no such key is one lane. Events keep the places that they have among all, so what lanes detect is what one
engine would have detected, and put together by place, it is in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf
from zlib import crc32

import numpy as np
import numpy.typing as npt

from coincide.detection.snapshots import NEVER
from coincide.engines.embedded import Engine
from coincide.engines.graph import Border
from coincide.engines.spark.groups import Group, groups
from coincide.engines.stopping import Stop, up_to_a_stop
from coincide.errors import RunError
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.column import Column, Rows
from coincide.model.event import ENVELOPE, HEARTBEAT
from coincide.model.table import EventTable, merged_tables
from coincide.rulebook import Rulebook

Hashes = npt.NDArray[np.uint64]
ODD = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


def are_divided(book: Rulebook) -> bool:
    """Would there be several lanes? What acts of itself, again and again, is watched over all events."""
    return not any(plan.ticking for plan in book.compiled.plans) and any(group.key is not None for group in _groups(book))


def run_in_lanes(
    book: Rulebook, batches: Iterable[EventBatch], until: float | None, tier: str, closed: bool, jobs: int
) -> Iterator[EventBatch]:
    """Detections of a whole input, as those of `embedded.run`. What comes of a batch is gathered while the next is consumed."""
    with ExitStack() as threads:
        run = Lanes(book, tier, jobs, threads)
        running: list[Step] = []
        for batch in batches:
            if len(batch):
                before, running = running, run.begin(batch)
                yield from up_to_a_stop(partial(gathered, before))
        yield from up_to_a_stop(partial(gathered, running))
        yield from up_to_a_stop(partial(run.finish, until, closed))


Step = Future[EventBatch]


def gathered(steps: Sequence[Step]) -> EventBatch:
    """What lanes have detected, by place; up to the first place at which one of them could not go on."""
    made, stop = [], Stop()
    for step in steps:
        try:
            made.append(step.result())
        except RunError as error:
            made.append(stop.take(error))
    stop.raise_with(made)
    tables = [*_tables(made)]
    columns = len(tables) > 1 and all(table is not None for table in tables)
    return EventBatch(table=merged_tables([table for table in tables if table is not None])) if columns else merged(made)


def _tables(batches: Iterable[EventBatch]) -> Iterator[EventTable | None]:
    """What they are put together of, each in order; None: objects."""
    for batch in batches:
        if batch.parts != (batch,):
            yield from _tables(batch.parts)
        elif len(batch):
            yield batch.table if batch.has_table else None


class Lanes:
    """Each has a thread of its own, which lives as long as `threads` are open, and does one thing after the other."""

    def __init__(self, book: Rulebook, tier: str, jobs: int, threads: ExitStack) -> None:
        self._shares = [Share(book, group, tier, jobs) for group in _groups(book)]
        lanes = [lane for share in self._shares for lane in share.lanes]
        self._threads = {lane: threads.enter_context(ThreadPoolExecutor(1)) for lane in lanes}
        self._start: int | None = None
        self._hi = NEVER
        self._consumed = 0

    def begin(self, batch: EventBatch) -> list[Step]:
        """Has all lanes consume their parts of a batch."""
        table = batch.table.numbered(self._consumed)
        self._consumed += len(table)
        if self._start is None:
            if not len(external := EventBatch(table=table).without_type(HEARTBEAT)):
                return []
            self._start = int(external.table.hi[0])
        self._hi = int(table.hi[-1])
        parts = [part for share in self._shares for part in share.parts(table)]
        return [self._threads[lane].submit(lane.consume, table, rows, self._start, self._hi) for lane, rows in parts]

    def finish(self, until: float | None, closed: bool) -> EventBatch:
        if self._start is None:
            return EMPTY
        if until != inf:
            return self._all(lambda lane: lane.end(until, closed))
        made = [self._pass(bound := self._hi + 1)]
        try:
            while any(lane.waits for lane in self._threads):
                bound = min(due for lane in self._threads if (due := lane.due()) is not None) + 1
                made.append(self._pass(bound))
            if closed:
                made.append(self._pass(bound, closing=True))
        except RunError as error:
            error.detections = merged([*made, error.detections or EMPTY])
            raise
        return merged(made)

    def _pass(self, bound: int, closing: bool = False) -> EventBatch:
        """Time goes on until nothing is waited for."""
        return self._all(lambda lane: lane.pass_endlessly(bound, closing))

    def _all(self, step: Callable[[Lane], EventBatch]) -> EventBatch:
        return gathered([thread.submit(step, lane) for lane, thread in self._threads.items()])


class Share:
    """Detectors that run together, and the lanes that they run in."""

    def __init__(self, book: Rulebook, group: Group, tier: str, jobs: int) -> None:
        own = book.only(group.members)
        self.key = group.key
        self.lanes = [Lane(own, tier) for _ in range(1 if group.key is None else jobs)]
        external = [plan.inputs.external for plan in own.compiled.plans]
        self._types = None if None in external else frozenset().union(*(types for types in external if types is not None))

    def parts(self, table: EventTable) -> Iterator[tuple[Lane, Rows]]:
        """The rows of each lane, of types that it knows."""
        rows = np.arange(len(table)) if self._types is None else table.rows_of_types(self._types)
        if len(self.lanes) == 1:
            yield self.lanes[0], rows
            return
        numbers = self._numbers(table, rows)
        for number, lane in enumerate(self.lanes):
            yield lane, rows[numbers == number]

    def _numbers(self, table: EventTable, rows: Rows) -> npt.NDArray[np.uint8]:
        """For each of these rows, that of its lane."""
        jobs = len(self.lanes)
        if not self.key:  # each event is judged by itself
            return (np.arange(len(rows)) * jobs // max(len(rows), 1)).astype(np.uint8)
        columns = [table.column(name) for name in self.key]
        if len(columns) == 1 and columns[0].numbers is None and columns[0].codes is not None:
            return np.array([*(crc32(text.encode()) % jobs for text in columns[0].texts), 0], np.uint8)[columns[0].codes[rows]]
        hashed = np.zeros(len(rows), np.uint64)
        for column in columns:
            hashed = (hashed ^ _hashes(column.take(rows))) * ODD
        return ((hashed >> HALF) % np.uint64(jobs)).astype(np.uint8)


class Lane(Engine):
    """An engine for some of the events, which knows how far time has come with all of them."""

    def consume(self, table: EventTable, rows: Rows, start: int, last: int) -> EventBatch:
        if self._state.start is None:
            self._state.start = start
        batch = EMPTY if not len(rows) else EventBatch(table=self._narrow(table).take(rows))
        self._move(self._graphs.suited_to(len(table)))  # what suits all events suits the lanes that share them
        made = []
        if self._graphs.compiling:
            made.append(self._consume(batch))
            batch = EMPTY
        made.append(self._graph.advance(self._state, batch, last, border=Border()))
        self._state.hi = last
        return merged(made)

    def _step(self, batch: EventBatch) -> EventBatch:
        return self._graph.advance(self._state, batch, border=Border())

    def _narrow(self, table: EventTable) -> EventTable:
        wanted = self._graphs.book.attributes
        if wanted is None:
            return table
        return replace(table, fields={name: table.fields[name] for name in table.fields if name in wanted or name in ENVELOPE})

    def end(self, until: float | None, closed: bool) -> EventBatch:
        return self._graph.finish(self._state, until, closed, Border())

    def pass_endlessly(self, bound: int, closing: bool) -> EventBatch:
        return self._graph.advance(self._state, EMPTY, bound, until=inf, closing=closing, border=Border())

    @property
    def waits(self) -> bool:
        return self._graph.waits(self._state)


def _groups(book: Rulebook) -> list[Group]:
    """Which events have several values is not known before they come."""
    names = frozenset(name for detector in book.detectors for name in detector.partition or ())
    across = {d.order for d in book.detectors if book.compiled.languages[d.language].orders_across_keys}
    return [group if across.isdisjoint(group.members) else replace(group, key=None) for group in groups(book, names)]


def _hashes(column: Column) -> Hashes:
    """Equal for equal values; those that are null, or several, are all alike."""
    found = np.zeros(len(column), np.uint64)
    if column.numbers is not None:
        found ^= np.where(np.isnan(column.numbers), 0.0, column.numbers + 0.0).view(np.uint64)
    if column.codes is not None:
        found ^= np.array([*(crc32(text.encode()) for text in column.texts), 0], np.uint64)[column.codes]
    if column.flags is not None:
        found ^= (column.flags + 1).astype(np.uint64)
    return found
