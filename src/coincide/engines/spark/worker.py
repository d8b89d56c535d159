"""What runs in Spark's Python workers. Rules travel as texts and are compiled once a process; tables that they look things up in
are read on the driver and broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.columns import is_number, number_values
from coincide.adapters.nestedcolumns import is_list, may_be_ranges, ranges_of_structs, sets_of_lists
from coincide.adapters.tableorder import taken, total_order
from coincide.attachments import TEXT, giving
from coincide.detection.base import DetectorPlan, in_tier, paying_sizes
from coincide.detection.snapshots import damaged
from coincide.engines.graph import Graph
from coincide.engines.identity import Keys
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.tables import Tables
from coincide.languages.registry import is_rule_file
from coincide.model.batch import EMPTY, EventBatch, merged
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook, load
from coincide.source import Reading, SourceText

SOME = 1 << 16
"""Rows that show whether texts repeat."""

Sources = tuple[tuple[str | None, ...], ...]
"""Names and texts of rule files, and how they are to be read; and of other files that are part of them."""


@dataclass(frozen=True)
class Task:
    """All that a worker must know of a group of detectors."""

    sources: Sources
    members: tuple[int, ...]
    tier: str
    layout: Layout
    outputs: Outputs
    tables: Tables | None = None

    # What a bucket asks for (bucket.py)

    @property
    def graph(self) -> Graph:
        return graph_of(self.sources, self.members, self._tier, self.tables)

    @property
    def _tier(self) -> str:
        return "kernel" if self.tier == "auto" else self.tier

    @property
    def shows_late(self) -> bool:
        return self.outputs.late is not None

    def rules(self) -> bytes:
        return msgspec.msgpack.encode([self.sources, self.members])

    def graph_of_rules(self, data: bytes) -> Graph:
        sources, members = msgspec.msgpack.decode(data, type=tuple[Sources, tuple[int, ...]])
        return graph_of(sources, members, self._tier, self.tables)

    def order(self, table: pa.Table) -> Any:
        """The total order of events, as numbers of rows; None: they stand so."""
        columns = {name: table.column(name).combine_chunks() for name in ("hi", "lo", "id") if name in table.column_names}
        hi = columns["hi"].to_numpy()
        contents = None if self.layout.ranked else map(table.column, sorted(table.column_names))
        return total_order(columns["lo"].to_numpy() if "lo" in columns else hi, hi, columns["id"], contents)

    def check_waiting(self, table: pa.Table) -> None:
        """Are these events that this query could have kept?"""
        kind = table.column("id").type if "id" in table.column_names else pa.null()
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):  # given ids are texts, generated ones whole numbers too
            damaged("its events have no 'id'")

    def batch(self, table: pa.Table | None) -> EventBatch:
        if table is None:
            return EMPTY
        there = set(table.column_names)  # events that were kept before rules needed a field do not have it
        fields = self.layout.fields
        columns = {n: table.column(n).combine_chunks() if n in there else pa.nulls(len(table)) for n in fields}
        return EventBatch(table=events_of(self.layout, columns))

    def logged(self, table: pa.Table) -> EventBatch:
        """A batch that was kept, with the fields that it had then."""
        columns: dict[str, Any] = {name: table.column(name).combine_chunks() for name in table.column_names}
        return EventBatch(table=events_of(Layout(tuple(columns)), columns))

    def rows(self, made: list[EventBatch], late: EventBatch, set_aside: pa.ChunkedArray | None = None) -> list[pa.RecordBatch]:
        """Rows of the resulting frame."""
        detections = merged(made)
        rows = [self.outputs.record_batch(detections)] if len(detections) else []
        rows += [self.outputs.late_batch(late.table)] if len(late) else []
        return rows + ([self.outputs.rejected_batch(set_aside)] if set_aside else [])

    def leaving(self, made: list[EventBatch]) -> Iterator[Any]:
        """Nobody of another stage reads its detections."""
        return iter(())


@dataclass(frozen=True)
class Span:
    """The clock of a whole batch run, where timers need it: hi of the first event and of the last, and how far to go on."""

    start: int | None = None
    last: int | None = None
    until: float | None = None
    closed: bool = True


def sources_of(rules: Rulebook) -> Sources:
    others = ((key[1], text) for key, text in rules.attachments.items() if key[0] == TEXT)
    return (*(_packed(source) for source, _ in rules.files), *others)


def _packed(source: SourceText) -> tuple[str | None, ...]:
    if source.reading == Reading():
        return source.name, source.text
    mapping, keep_going, level = source.reading.mapping, source.reading.keep_going, source.reading.level
    named = (None, None) if mapping is None else (mapping.name, mapping.text)
    return source.name, source.text, *named, "keep going" if keep_going else None, level


def _unpacked(name: str, text: str, *reading: str | None) -> SourceText:
    if not reading:
        return SourceText(name, text)
    mapping, content, keep_going, level = reading
    file = None if mapping is None or content is None else SourceText(mapping, content)
    return SourceText(name, text, Reading(file, keep_going is not None, level))


@lru_cache(maxsize=8)
def _rules(sources: Sources, tables: Tables | None) -> Rulebook:
    given = {} if tables is None else tables.read()
    texts: list[Any] = [*sources]
    given.update(((TEXT, text[0]), text[1]) for text in texts if not is_rule_file(text[0]))
    with giving(given):
        return load(*(_unpacked(*text) for text in texts if is_rule_file(text[0])))


def rules_of(sources: Sources) -> Rulebook:
    """Rules as they were sent, or kept in a checkpoint."""
    return _rules(sources, None)


def rules_for(task: Task) -> Rulebook:
    return _rules(task.sources, task.tables)


@lru_cache(maxsize=16)
def _plans(sources: Sources, members: tuple[int, ...], tables: Tables | None) -> list[DetectorPlan]:
    rules = _rules(sources, tables)
    wanted = set(members)
    return rules.compiled.plans_for([d for d in rules.detectors if d.order in wanted])


@lru_cache(maxsize=16)
def graph_of(sources: Sources, members: tuple[int, ...], tier: str, tables: Tables | None = None, size: int = 0) -> Graph:
    return Graph(in_tier(_plans(sources, members, tables), tier, size))


def graph_for(task: Task, rows: int) -> Graph:
    """Sizes between which no plan changes its tier have one graph."""
    sizes = paying_sizes(_plans(task.sources, task.members, task.tables))
    reached = max((size for size in sizes if size <= rows), default=0)
    return graph_of(task.sources, task.members, task.tier, task.tables, reached)


def events_of(layout: Layout, columns: dict[str, Any]) -> EventTable:
    """The wire's columns as events."""
    hi = _instants(columns["hi"])
    lo = _instants(columns["lo"]) if "lo" in columns else hi
    fields = {
        name.removeprefix("."): _values(columns[name]) if name.startswith(".") else columns[name]
        for name in layout.fields
        if name not in ("lo", "hi")
    }
    return EventTable(lo, hi, fields)


def in_order(layout: Layout, columns: dict[str, Any]) -> EventBatch:
    """The wire's columns as events in total order. Rows that are equal in stamp and id, which Spark has in any order, have here
    the same one every time."""
    table = events_of(layout, columns)
    rows = total_order(table.lo, table.hi, table.fields["id"], None if layout.ranked else map(columns.get, sorted(columns)))
    return EventBatch(table=table if rows is None else taken(table, rows))


def _values(array: pa.Array) -> pa.Array:
    if is_list(array.type):
        return sets_of_lists(array)
    if pa.types.is_struct(array.type) and may_be_ranges(array.type):
        return ranges_of_structs(array)
    return number_values(array) if is_number(array.type) else array


def _instants(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    values: np.ndarray[Any, np.dtype[np.int64]] = array.to_numpy(zero_copy_only=False)
    return values


def named(layout: Layout, batches: Iterable[pa.RecordBatch], fields: Iterable[str] | None = None) -> dict[str, Any]:
    """One array for each of these fields, or of all, of all batches."""
    table = pa.Table.from_batches(list(batches))
    wanted = layout.fields if fields is None else fields
    return {name: _whole(name, table.column(layout.fields.index(name))) for name in wanted}


def _whole(name: str, column: pa.ChunkedArray) -> pa.Array:
    if name == "type" or (name != "id" and pa.types.is_string(column.type) and _repeats(column)):
        column = column.dictionary_encode()  # texts are taken, sorted and compared as small numbers
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _repeats(column: pa.ChunkedArray) -> bool:
    """Are there few distinct values, as far as the first ones show?"""
    some = column.slice(0, SOME)
    return 2 * len(some.unique()) < len(some)


def tagged(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """The events of each tag, which is the column behind the layout's. Rows without an event only name their tag."""
    parts: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        for tag, rows in by_tag(batch, len(layout.fields)):
            parts.setdefault(tag, []).append(events_in(rows, layout))
    for tag in sorted(parts):
        yield tag, parts.pop(tag)


def by_tag(batch: pa.RecordBatch, column: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    tags = batch.column(column)
    found = tags.unique().to_pylist()
    for tag in found:
        yield tag, batch.filter(pc.equal(tags, tag)) if len(found) > 1 else batch


def events_in(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Those rows that have an event."""
    events = rows.select(range(len(layout.fields)))
    return events.filter(pc.is_valid(events.column(0))) if events.column(0).null_count else events


def detect_partition(task: Task, span: Span, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Detections of one partition of a batch job, which holds all events of its keys."""
    rows = len(columns["hi"])
    if not rows and span.start is None:
        return
    graph = graph_for(task, rows)
    keys = None if task.outputs.digests is None else Keys(task.outputs.digests)
    state = graph.initial()
    state.start = span.start
    if rows:
        made = graph.advance(state, in_order(task.layout, columns))
        yield from written(task, made, keys)
    state.hi = state.hi if span.last is None else max(state.hi, span.last)
    yield from written(task, graph.finish(state, span.until, span.closed), keys)


def written(task: Task, made: EventBatch, keys: Keys | None) -> Iterator[pa.RecordBatch]:
    if len(made):
        yield task.outputs.record_batch(made, keys=keys)
