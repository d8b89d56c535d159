"""A batch in stages: detectors whose keys differ and that feed one another, each spread by its own key.

    rows, tagged for groups of all stages      one scan (tags.py)
    exchange                                   by tag and key
    stage 1                                    detects; rows of later groups pass; detections go on as rows for who reads them
    exchange, stage 2 …

What is to be given out goes through the later exchanges, packed, as rows that no group wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.detection.base import DetectorPlan
from coincide.engines.graph import Border
from coincide.engines.identity import Keys
from coincide.engines.spark.crossing import AFTER, HERE, NO_EVENTS, Numbering, Reader, received, roots_of, sent
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.groups import Group
from coincide.engines.spark.packing import MADE, from_bytes, to_bytes
from coincide.engines.spark.tags import SPREAD, TAG, Tagging
from coincide.engines.spark.worker import Span, Task, by_tag, detect_partition, events_in, graph_for, in_order, named, written
from coincide.model.batch import EventBatch
from coincide.model.event import Event

OUT = -1
"""The tag of what is given out."""


def staged(tagging: Tagging, works: Sequence[tuple[Task, Span]]) -> DataFrame:
    rows = tagging.exchanged()
    fields = [
        T.StructField(field.name, field.dataType) for field in rows.schema.fields
    ]  # in detections, columns of events are null
    passed = T.StructType([*fields, T.StructField(MADE, T.BinaryType())])
    for stage in stages(tagging.layout, tagging.groups, works):
        rows = rows.mapInArrow(stage, works[0][0].outputs.spark() if stage.last else passed)
        rows = rows if stage.last else rows.repartition(TAG, SPREAD)
    return rows


Groups = Sequence[tuple[Group, Sequence[DetectorPlan]]]


def stages(layout: Layout, groups: Groups, works: Sequence[tuple[Task, Span]]) -> list[Stage]:
    """What is to be done after each exchange."""
    every = [Work(*work, own) for work, own in zip(works, readers(groups), strict=True)]
    count = 1 + max(group.stage for group, _ in groups)
    here = [tuple((tag, every[tag]) for tag, (group, _) in enumerate(groups) if group.stage == n) for n in range(count)]
    return [Stage(layout, own, number + 1 == count) for number, own in enumerate(here)]


def readers(groups: Groups) -> list[tuple[Reader, ...]]:
    """For each group, those of later stages that read what it makes."""
    every = [
        (group.stage, Reader(tag, group.key or (), group.null_keys, frozenset().union(*(p.inputs.detections for p in plans))))
        for tag, (group, plans) in enumerate(groups)
    ]
    found = []
    for group, plans in groups:
        made: frozenset[str] = frozenset().union(*(plan.outputs | plan.makes.keys() for plan in plans))
        found.append(tuple(reader for stage, reader in every if stage > group.stage and reader.types & made))
    return found


@dataclass(frozen=True)
class Work:
    task: Task
    span: Span
    readers: tuple[Reader, ...]


@dataclass(frozen=True)
class Stage:
    """Sent to workers. Rows have the layout's columns, tag and spread, and behind the first stage MADE."""

    layout: Layout
    works: tuple[tuple[int, Work], ...]
    last: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        works = dict(self.works)
        held: dict[int, list[pa.RecordBatch]] = {}
        schema: pa.Schema | None = None
        for batch in batches:
            for tag, rows in by_tag(batch, len(self.layout.fields)):
                schema = schema or _with_made(batch).schema
                if tag in works:
                    held.setdefault(tag, []).append(rows)
                elif self.last:
                    yield from unpacked(rows)
                else:
                    yield _with_made(rows)
        for tag in sorted(held):
            assert schema is not None
            yield from self._detected(works[tag], held.pop(tag), schema)

    def _detected(self, work: Work, rows: Sequence[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        events = named(self.layout, [events_in(some, self.layout) for some in rows], work.task.layout.fields)
        given = [received(data) for some in rows for data in _made(some)]
        crossing = Crossing(work, events, given) if given or work.readers else None
        found = detect_partition(work.task, work.span, events) if crossing is None else crossing.shown()
        for shown in found:
            yield shown if self.last else _packed(schema, shown)
        if crossing is not None and crossing.leaving:
            yield _rows(schema, crossing.leaving)


class Crossing:
    """What a group makes of the events and the detections of earlier stages that a task holds for it. `leaving` are detections
    that later groups read: tag, spread and bytes of each."""

    def __init__(self, work: Work, columns: dict[str, Any], given: Sequence[tuple[int, Event]]) -> None:
        self.work = work
        self.events = in_order(work.task.layout, columns).table if len(columns["hi"]) else NO_EVENTS
        self.given = given
        self.numbering = Numbering(self.events, roots_of(event for _, event in given))
        self.leaving: list[tuple[int, int, bytes]] = []

    def shown(self) -> Iterator[pa.RecordBatch]:
        """What is given out."""
        task, span = self.work.task, self.work.span
        if not len(self.events) and not self.given and span.start is None:
            return
        graph = graph_for(task, len(self.events) + len(self.given))
        keys = None if task.outputs.digests is None else Keys(task.outputs.digests)
        state = graph.initial()
        state.start = self.numbering.first if span.start is None else span.start
        border = self._border(HERE)
        made = graph.advance(state, self.numbering.placed(self.events), span.last, border=border)
        self._send(HERE, border)
        yield from written(task, made, keys)
        state.hi = max(state.hi, self.numbering.last if span.last is None else span.last)
        border = self._border(AFTER)
        made = graph.finish(state, span.until, span.closed, border)
        self._send(AFTER, border)
        yield from written(task, made, keys)

    def _border(self, phase: int) -> Border:
        arrived = [self.numbering.arrived(event) for when, event in self.given if when == phase]
        return Border(EventBatch(sorted(arrived, key=lambda event: event.place)))

    def _send(self, phase: int, border: Border) -> None:
        for reader in self.work.readers:
            for made in border.made:
                for event in made.of_types(reader.types).events if len(made) else ():
                    if reader.wants(event):
                        data = sent(phase, self.numbering.departing(event))
                        self.leaving.append((reader.tag, reader.spread(event), data))


def _with_made(rows: pa.RecordBatch) -> pa.RecordBatch:
    if rows.schema.names[-1] == MADE:
        return rows
    return rows.append_column(MADE, pa.nulls(rows.num_rows, pa.binary()))


def _made(rows: pa.RecordBatch) -> list[bytes]:
    if rows.schema.names[-1] != MADE:
        return []
    found: list[bytes] = pc.drop_null(rows.column(rows.num_columns - 1)).to_pylist()
    return found


def unpacked(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """What earlier stages give out."""
    for blob in _made(rows):
        yield from from_bytes(blob).to_batches()


def _packed(schema: pa.Schema, shown: pa.RecordBatch) -> pa.RecordBatch:
    """What is given out, on its way through later stages: anywhere, but to the same task if it is made again."""
    blob = to_bytes(pa.Table.from_batches([shown]))
    return _rows(schema, [(OUT, crc32(blob), blob)])


def _rows(schema: pa.Schema, made: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Rows that hold no event."""
    tags, spreads, blobs = zip(*made, strict=True)
    told = {TAG: tags, SPREAD: spreads, MADE: blobs}
    columns = [
        pa.array(told[field.name], field.type) if field.name in told else pa.nulls(len(made), field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
