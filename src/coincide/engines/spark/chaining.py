"""A stream in stages: detectors whose keys differ and that feed one another, each spread by its own key.

    pack                         rows for the buckets of all groups (packing.py)
    groupBy.transformWithState   the groups of stage 1; rows for later stages pass
    groupBy.transformWithState   the groups of stage 2 …
    unpack

A bucket sends every bucket of the groups that read its detections what it has made for it, and how far it has come: nothing
before that will follow. A bucket goes no further than the slowest of those that feed it. A detection waits, if it must, in the
buffer with the events, is late like them, and stands in the log of its page. What is given out goes through the later stages as
rows that no group wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engines.graph import Border, Graph, GraphState
from coincide.engines.spark.crossing import HERE, NO_EVENTS, Numbering, Reader, received, roots_of, sent
from coincide.engines.spark.division import Division
from coincide.engines.spark.packing import MADE, Road, sender, to_bytes
from coincide.engines.spark.staging import Groups, readers
from coincide.engines.spark.worker import Task
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event
from coincide.model.table import EventTable

ARRIVING = pa.schema([("hi", pa.int64()), ("page", pa.int32()), (MADE, pa.binary())])


@dataclass(frozen=True)
class Listener:
    """A group of a later stage that reads detections of an earlier one, and how its state is divided."""

    reader: Reader
    road: Road
    division: Division

    def place(self, event: Event) -> tuple[int, int]:
        """The bucket, as its number among the group's, and the page."""
        return self.division.place_of(self.reader.spread(event))


@dataclass(frozen=True)
class Meeting:
    """What a page consumes in one step: its events, and detections of earlier stages."""

    events: EventTable
    given: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Made:
    """What comes of it: detections to be given out, and those that others read."""

    shown: EventBatch
    leaving: list[Event] = field(default_factory=list)


class StageGraph:
    """A graph of detectors that takes part in a chain. Its states are those of the graph."""

    def __init__(self, graph: Graph, read: frozenset[str] = frozenset()) -> None:
        self._graph = graph
        self._read = read
        self.initial, self.encode, self.decode = graph.initial, graph.encode, graph.decode
        self.tells_changes, self.changes, self.with_changes = graph.tells_changes, graph.changes, graph.with_changes
        self.due = graph.due

    def advance(self, state: GraphState, batch: Meeting, bound: int | None = None) -> Made:
        numbering = Numbering(batch.events, roots_of(batch.given), state.consumed)
        arrived = sorted(map(numbering.arrived, batch.given), key=lambda event: event.place)
        border = Border(EventBatch(arrived))
        shown = self._graph.advance(state, numbering.placed(batch.events), bound, border=border)
        state.consumed = numbering.end
        return self._made(shown, border, numbering)

    def finish(self, state: GraphState, until: float | None = None, closed: bool = True) -> Made:
        """Only what timers and the end of tables lead to is detected here, and that feeds nobody elsewhere."""
        border = Border()
        made = self._graph.finish(state, until, closed, border)
        if any(len(some.of_types(self._read)) for some in border.made if len(some)):
            raise RuntimeError("the end of the input has led to a detection that another stage reads")
        return Made(made)

    def _made(self, shown: EventBatch, border: Border, numbering: Numbering) -> Made:
        read = [made.of_types(self._read) for made in border.made if len(made)] if self._read else []
        return Made(shown, [numbering.departing(event) for made in read if len(made) for event in made.events])


@lru_cache(maxsize=16)
def _stage_graph(graph: Graph, read: frozenset[str]) -> StageGraph:
    return StageGraph(graph, read)


@dataclass(frozen=True)
class StageTask:
    """What a worker must know of a group that feeds others, or is fed."""

    task: Task
    listeners: tuple[Listener, ...] = ()

    # What a bucket asks for (bucket.py)

    @property
    def graph(self) -> StageGraph:
        return _stage_graph(self.task.graph, frozenset().union(*(listener.reader.types for listener in self.listeners)))

    @property
    def shows_late(self) -> bool:
        return self.task.shows_late

    def rules(self) -> bytes:
        return self.task.rules()

    def graph_of_rules(self, data: bytes) -> StageGraph:
        return _stage_graph(self.task.graph_of_rules(data), frozenset())

    def order(self, table: pa.Table) -> Any:
        """Events in total order; behind them, in any, detections, which have places."""
        if MADE not in table.column_names:
            return self.task.order(table)
        events, others = _parted(table)
        order = self.task.order(table.take(pa.array(events))) if len(events) else None
        return np.concatenate([events if order is None else events[order], others])

    def check_waiting(self, table: pa.Table) -> None:
        events, _ = _parted(table)
        if len(events):
            self.task.check_waiting(table)

    def batch(self, table: pa.Table | None) -> Any:
        return self._meeting(table, self.task.batch)

    def logged(self, table: pa.Table) -> Any:
        return self._meeting(table, self.task.logged)

    def _meeting(self, table: pa.Table | None, read: Any) -> Meeting:
        if table is None:
            return Meeting(NO_EVENTS)
        if MADE not in table.column_names:
            return Meeting(read(table).table)
        events, others = _parted(table)
        given = table.column(MADE).take(pa.array(others)).to_pylist()
        known = table.drop_columns([MADE]).take(pa.array(events))
        return Meeting(read(known).table if len(events) else NO_EVENTS, tuple(received(data)[1] for data in given))

    def rows(self, made: list[Made], late: Any, set_aside: pa.ChunkedArray | None = None) -> list[pa.RecordBatch]:
        shown = EventBatch(table=late.events) if isinstance(late, Meeting) and len(late.events) else EMPTY
        return self.task.rows([some.shown for some in made], shown, set_aside)

    def leaving(self, made: Sequence[Made]) -> Iterator[tuple[Listener, dict[int, bytes]]]:
        """For each group that reads it, what goes to which of its buckets."""
        events = [event for some in made for event in some.leaving]
        for listener in self.listeners:
            parts: dict[int, list[tuple[int, int, bytes]]] = {}
            for event in events:
                if listener.reader.wants(event):
                    bucket, page = listener.place(event)
                    parts.setdefault(bucket, []).append((event.place[0], page, sent(HERE, event)))
            yield listener, {bucket: _arriving(rows) for bucket, rows in parts.items()}


def _arriving(rows: Sequence[tuple[int, int, bytes]]) -> bytes:
    columns = [pa.array(values, kind.type) for values, kind in zip(zip(*rows, strict=True), ARRIVING, strict=True)]
    return to_bytes(pa.table(columns, schema=ARRIVING))


def _parted(table: pa.Table) -> tuple[Any, Any]:
    """The rows of events, and those of detections."""
    if MADE not in table.column_names:
        return np.arange(len(table)), np.empty(0, np.int64)
    others = pc.is_valid(table.column(MADE)).to_numpy()
    return np.flatnonzero(~others), np.flatnonzero(others)


def listeners(groups: Groups, roads: Sequence[Road], divisions: Sequence[Division]) -> list[tuple[Listener, ...]]:
    """For each group, those of later stages that read what it makes."""
    return [tuple(Listener(reader, roads[reader.tag], divisions[reader.tag]) for reader in own) for own in readers(groups)]


def feeders(roads: Sequence[Road], heard: Sequence[Sequence[Listener]]) -> Mapping[str, list[str]]:
    """By the name of each group that is fed, the buckets that feed it."""
    found: dict[str, list[str]] = {}
    for road, own in zip(roads, heard, strict=True):
        for listener in own:
            found.setdefault(listener.road.name, []).extend(sender(road.name, bucket) for bucket in road.buckets)
    return found
