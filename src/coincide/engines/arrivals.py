"""Stages over columns: what arrives in a large batch is judged, ordered and handed on as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.adapters.tableorder import joined, key_of, sliced, sorted_table, taken
from coincide.model.batch import EventBatch
from coincide.model.column import Rows
from coincide.model.event import HEARTBEAT
from coincide.model.table import EventTable, Instants, table_of
from coincide.stages import NEVER, BestEffort, Guaranteed, Moment

FOREVER = 2**63 - 1
STRETCH = 1_000
Flags = npt.NDArray[np.bool_]


def arrive(stage: Guaranteed, table: EventTable) -> None:
    """Have all of it arrive at a stage that is settled. Where an event comes after items that have become stable and before
    others, only the consumer knows which timers have fired in between: a stretch from there on goes event by event."""
    while len(table):
        first = Arrivals(stage, table).doubtful
        stop = int(first.argmax()) if first.any() else len(table)
        if stop:
            _arrive_together(stage, sliced(table, 0, stop))
        end = min(stop + STRETCH, len(table))
        for event in sliced(table, stop, end).events() if end > stop else ():
            stage.arrive(event)
        stage.settle()
        table = sliced(table, end, len(table))


class Receiver(Protocol):
    """What takes many events at once as they have arrived."""

    def takes_arrivals(self, delay: int) -> bool:
        """Even if one is so much after its hi?"""

    def consume_arrivals(
        self, batch: EventBatch, clocks: Instants, bound: int, moment: Callable[[int | None, int], Moment]
    ) -> None:
        """Each event at its clock, and the timers due before the bound. What is done with a row (or, without one, by a timer) at
        a clock is done at that moment."""


def arrive_unordered(stage: BestEffort, receiver: Receiver, table: EventTable) -> None:
    """Have all of it arrive where nothing waits; event by event, if timers may be due already when they are set."""
    clocks = clocks_of(table, stage.clock)
    rows = np.flatnonzero(are_events(table))
    if not len(rows) or not receiver.takes_arrivals(int((clocks - table.hi)[rows].max())):
        for event in table.events():
            stage.arrive(event)
        return
    before = stage.number

    def moment(row: int | None, clock: int) -> Moment:
        """A timer fires before what comes at a later clock."""
        return clock, before + int(np.searchsorted(clocks, clock, "right") if row is None else rows[row] + 1)

    events = table if len(rows) == len(table) else taken(table, rows)
    receiver.consume_arrivals(EventBatch(table=events), clocks[rows], int(clocks[-1]), moment)
    stage.clock, stage.number = int(clocks[-1]), before + len(table)


def _arrive_together(stage: Guaranteed, table: EventTable) -> None:
    arrivals = Arrivals(stage, table)
    late = arrivals.late | arrivals.gone_by
    _keep_late(stage, taken(table, np.flatnonzero(late)))
    in_time = taken(table, np.flatnonzero(arrivals.is_event & ~late))
    _release(stage, _with_waiting(stage, in_time), arrivals)


def arrival_instants(hi: Instants, given: pa.Array | None) -> Instants:
    """When each record came; one that does not say came at its hi."""
    if given is None:
        return hi
    instants: Instants = np.where(given.is_null().to_numpy(zero_copy_only=False), hi, given.fill_null(0).to_numpy())
    return instants


def clocks_of(table: EventTable, clock: int) -> Instants:
    """The clock of arrivals at each record; it stood at `clock` before."""
    arrival = arrival_instants(table.hi, table.fields.get("arrival"))
    clocks: Instants = np.maximum(np.maximum.accumulate(arrival), clock)
    return clocks


def are_events(table: EventTable) -> Flags:
    """Or heartbeats?"""
    column = table.column("type")
    codes = column.codes
    assert codes is not None
    heartbeat = column.texts.index(HEARTBEAT) if HEARTBEAT in column.texts else -1
    others: Flags = codes != heartbeat
    return others


@dataclass(frozen=True)
class Arrivals:
    """A batch in the order of arrival, as the stage sees it. Arrays have a value a record: what holds once it has come."""

    stage: Guaranteed
    table: EventTable

    @cached_property
    def is_event(self) -> Flags:
        return are_events(self.table)

    @cached_property
    def clock(self) -> Instants:
        return clocks_of(self.table, self.stage.clock)

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """The records of each source."""
        column = self.table.column("source")
        if column.codes is None:
            return {"": np.arange(len(self.table))}
        order = np.argsort(column.codes, kind="stable")
        ends = np.searchsorted(column.codes[order], np.arange(-1, len(column.texts) + 1))
        found: dict[str, list[Rows]] = {}
        for text, start, stop in zip(["", *column.texts], ends[:-1], ends[1:], strict=True):
            if stop > start:
                found.setdefault(text, []).append(order[start:stop])
        return {text: rows[0] if len(rows) == 1 else np.sort(np.concatenate(rows)) for text, rows in found.items()}

    @cached_property
    def marks(self) -> dict[str, Instants]:
        """By source, after each of its records."""
        return {
            source: np.maximum(np.maximum.accumulate(self.table.hi[rows]), self.stage.marks.get(source, NEVER))
            for source, rows in self.rows.items()
        }

    @cached_property
    def heard(self) -> dict[str, int]:
        """From which record on a source is heard."""
        first = dict.fromkeys(self.stage.heard, 0)
        for source, rows in self.rows.items():
            telling = rows if source else rows[self.is_event[rows]]
            if len(telling):
                first.setdefault(source, int(telling[0]))
        return first

    @cached_property
    def late(self) -> Flags:
        """Events that break the order of their source."""
        late = np.zeros(len(self.table), np.bool_)
        for source, rows in self.rows.items():
            before = np.concatenate(([self.stage.marks.get(source, NEVER)], self.marks[source][:-1]))
            late[rows] = self.table.hi[rows] < before
        return late & self.is_event

    @cached_property
    def passed(self) -> Instants:
        """What lies below has been passed by all known sources."""
        low = np.full(len(self.table), FOREVER)
        known = dict.fromkeys(self.stage.declared, 0) if self.stage.declared else self.heard
        for source, first in known.items():
            mark = np.full(len(self.table), self.stage.marks.get(source, NEVER))
            if source in self.rows:
                mark[self.rows[source]] = self.marks[source]
            np.minimum(low[first:], np.maximum.accumulate(mark)[first:], out=low[first:])
        passed: Instants = np.maximum.accumulate(low)
        return passed

    @cached_property
    def doubtful(self) -> Flags:
        before = np.concatenate(([NEVER], self.passed[:-1]))
        return self.is_event & ~self.late & (self.table.hi < before)

    @cached_property
    def gone_by(self) -> Flags:
        """Events that come before what was consumed last."""
        gone = np.zeros(len(self.table), np.bool_)
        last = self.stage.last
        if last:
            for row in np.flatnonzero(self.is_event & ~self.late & (self.table.hi <= last[0])).tolist():
                gone[row] = key_of(self.table, row) < last
        return gone

    def moment(self, time: int) -> Moment:
        """When an item of this time becomes stable."""
        at = min(int(np.searchsorted(self.passed, time, "right")), len(self.table) - 1)
        return int(self.clock[at]), self.stage.number + at + 1


def _keep_late(stage: Guaranteed, late: EventTable) -> None:
    stage.late += late.events() if len(late) else []
    stage.refused += len(late)


def _with_waiting(stage: Guaranteed, new: EventTable) -> EventTable:
    """In total order; of equal ones, those first that came first."""
    waiting = [event for _, _, event in sorted(stage.buffer)]
    return sorted_table(joined([taken(table_of(waiting), np.arange(len(waiting))), new]) if waiting else new)


def _release(stage: Guaranteed, table: EventTable, arrivals: Arrivals) -> None:
    stable = int(np.searchsorted(table.hi, arrivals.passed[-1], "left"))
    rest = taken(table, np.arange(stable, len(table)))
    stage.buffer = [(e.origin[0], stage.arrived + i, e) for i, e in enumerate(rest.events() if len(rest) else ())]
    stage.arrived += len(rest)
    if stable:
        stage.last = key_of(table, stable - 1)
        stage.consumer.consume(EventBatch(table=taken(table, np.arange(stable))), arrivals.moment)
    stage.fire_below(int(arrivals.passed[-1]), arrivals.moment)
    marks = {source: int(marks[-1]) for source, marks in arrivals.marks.items()}
    stage.advance(marks, arrivals.heard, int(arrivals.clock[-1]), stage.number + len(arrivals.table))
